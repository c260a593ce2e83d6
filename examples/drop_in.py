"""Trains a graph attention network with tempergat's layer in place of PyG's."""

import torch
import torch.nn.functional as F

from tempergat.data import load
from tempergat.nn import TemperGATConv, gate_penalty

data = load("csbm", seed=0).data


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = TemperGATConv(data.num_features, 8, heads=4)
        self.conv2 = TemperGATConv(32, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.conv2(F.elu(self.conv1(x, edge_index)), edge_index)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(100):
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    (loss + 1e-5 * gate_penalty(model)).backward()
    optimizer.step()

with torch.no_grad():
    right = model(data.x, data.edge_index).argmax(-1) == data.y
print(f"test accuracy {100 * right[data.test_mask].float().mean():.1f} %")
print(
    f"learned temperatures {model.conv1.temperature:.2f}, {model.conv2.temperature:.2f}"
)

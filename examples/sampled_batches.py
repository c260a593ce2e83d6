"""Trains on sampled neighbourhoods, for graphs whose full batch does not fit."""

import torch
import torch.nn.functional as F

from tempergat import NeighborSampler
from tempergat.data import load
from tempergat.nn import TemperGATConv
from tempergat.sampling import LayerGraphs

data = load("csbm", seed=0).data


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = TemperGATConv(data.num_features, 8, heads=4)
        self.conv2 = TemperGATConv(32, 2)

    def forward(self, x: torch.Tensor, graphs: LayerGraphs) -> torch.Tensor:
        # Each layer computes only what the seeds of the batch need.
        first, second = graphs.for_layers(2, self_loops=True)
        return self.conv2(F.elu(self.conv1(x, first)), second)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
train = NeighborSampler(data, [10, 5], 64, data.train_mask, shuffle=True)
for _ in range(20):
    for batch in train:
        optimizer.zero_grad()
        out = model(batch.x, batch.graph)
        F.cross_entropy(out, batch.y[: batch.batch_size]).backward()
        optimizer.step()

# All neighbours: the same outputs as on the whole graph.
test = NeighborSampler(data, [-1, -1], 256, data.test_mask, training=False)
with torch.no_grad():
    right = [
        model(batch.x, batch.graph).argmax(-1) == batch.y[: batch.batch_size]
        for batch in test
    ]
print(f"test accuracy {100 * torch.cat(right).float().mean():.1f} %")

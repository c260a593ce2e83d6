"""Adds temperatures and gates to a trained PyG model and continues training."""

import torch
import torch.nn.functional as F
from torch_geometric.nn import GAT

from tempergat.data import load
from tempergat.nn import upgrade

data = load("csbm", seed=0).data
torch.manual_seed(0)
model = GAT(data.num_features, 32, 2, 2, heads=4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)


def train(epochs: int) -> None:
    for _ in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()


train(50)
before = model(data.x, data.edge_index)
optimizer.add_param_group({"params": upgrade(model, temperature="layer", gate="post")})
change = (model(data.x, data.edge_index) - before).abs().max()
print(f"the upgrade changed the outputs by at most {change:.0e}")
train(50)
print("temperatures now:", [f"{conv.temperature:.2f}" for conv in model.convs])

# %% [markdown]
# # Temperatures and gates for a model that is already trained
#
# First a trained PyG model, as a file. Yours is already there.

# %%
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric.nn import GAT

from tempergat import load, upgrade

data = load("csbm", seed=0).data
file = Path(tempfile.mkdtemp()) / "gat.pt"


def make_model() -> GAT:
    return GAT(data.num_features, 32, num_layers=2, out_channels=2, heads=4)


def train(model: GAT, optimizer: torch.optim.Optimizer, epochs: int) -> None:
    for _ in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()


torch.manual_seed(0)
old = make_model()
train(old, torch.optim.Adam(old.parameters(), lr=0.01, weight_decay=5e-4), 50)
torch.save(old.state_dict(), file)

# %% [markdown]
# The weights go into the model they were saved from, then `upgrade` replaces its
# layers. It computes the same function as before.

# %%
model = make_model()
model.load_state_dict(torch.load(file, weights_only=True))
before = model(data.x, data.edge_index)
new_parameters = upgrade(model)
change = (model(data.x, data.edge_index) - before).abs().max()
print(f"the upgrade changed the outputs by at most {change:.0e}")

# %% [markdown]
# Training goes on, and the new parts learn.

# %%
train(model, torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4), 50)
print("temperatures now:", [f"{conv.temperature:.2f}" for conv in model.convs])

# %% [markdown]
# The state dict of the new model is loaded in the same way: make the model, `upgrade`
# it, then load.

# %%
torch.save(model.state_dict(), file)
restored = make_model()
upgrade(restored)
restored.load_state_dict(torch.load(file, weights_only=True))
equal = torch.equal(restored(data.x, data.edge_index), model(data.x, data.edge_index))
print("restored:", "the same outputs" if equal else "other outputs")
model

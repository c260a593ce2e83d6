# %% [markdown]
# # A layer in the place of PyG's `GATConv`
#
# The graph is made up: two classes, features that are partly noise.

# %%
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv

from tempergat import TemperGATConv, gate_penalty, load

data = load("csbm", seed=0).data
data

# %% [markdown]
# The model is written as with PyG. Only the class of the layers is chosen by the
# caller.


# %%
class Net(torch.nn.Module):
    def __init__(self, layer: type[torch.nn.Module]) -> None:
        super().__init__()
        self.conv1 = layer(data.num_features, 8, heads=4)
        self.conv2 = layer(32, 2)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.conv2(F.elu(self.conv1(x, edge_index)), edge_index)


def train(model: Net) -> float:
    """The test accuracy after 100 epochs, in percent."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(100):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        # Zero for layers without gates.
        (loss + 1e-5 * gate_penalty(model)).backward()
        optimizer.step()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(-1) == data.y
    return 100 * right[data.test_mask].float().mean().item()


# %%
torch.manual_seed(0)
print(f"GATConv        test accuracy {train(Net(GATConv)):.1f} %")
torch.manual_seed(0)
model = Net(TemperGATConv)
print(f"TemperGATConv  test accuracy {train(model):.1f} %")

# %% [markdown]
# One seed of one graph says little: `tempergat.compare` runs several and tests the
# difference. What the layers have learned:

# %%
print(f"temperatures {model.conv1.temperature:.2f}, {model.conv2.temperature:.2f}")
print(f"mean gate    {model.conv1.gate_values(data.x).mean():.2f}")
model

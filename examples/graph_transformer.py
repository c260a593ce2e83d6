"""A graph transformer on molecules: edge features, a gated skip, many graphs at once.

Made-up molecules are rings and chains of atoms. The target is a sum over bonds that
depends on the kind of bond and on both of its atoms, so a model has to use the edge
features. Run: python examples/graph_transformer.py
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool

from tempergat import TemperTransformerConv, gate_penalty, ops

ATOM_KINDS, BOND_KINDS, HIDDEN = 6, 3, 32


def make_molecule(generator: torch.Generator) -> Data:
    """A chain of atoms, closed to a ring in half of the cases."""
    count = int(torch.randint(5, 12, (), generator=generator))
    atom = torch.randint(ATOM_KINDS, (count,), generator=generator)
    first = torch.arange(count - 1)
    bonds = torch.stack([first, first + 1])
    if torch.rand((), generator=generator) < 0.5:
        bonds = torch.cat([bonds, torch.tensor([[count - 1], [0]])], dim=1)
    kind = torch.randint(BOND_KINDS, (bonds.size(1),), generator=generator)
    # Only bonds between atoms of kinds that differ much count.
    distance = (atom[bonds[0]] - atom[bonds[1]]).abs()
    y = ((kind + 1) * (distance > 2)).sum().float().view(1)
    return Data(
        x=nn.functional.one_hot(atom, ATOM_KINDS).float(),
        edge_index=torch.cat([bonds, bonds.flip(0)], dim=1),
        edge_attr=nn.functional.one_hot(kind, BOND_KINDS).float().repeat(2, 1),
        y=y,
    )


class GraphTransformer(nn.Module):
    """Two attention layers, a sum over the atoms, and a linear map."""

    def __init__(self) -> None:
        super().__init__()
        options = {"heads": 4, "beta": True, "edge_dim": BOND_KINDS, "qk_norm": True}
        self.first = TemperTransformerConv(ATOM_KINDS, HIDDEN // 4, **options)
        self.second = TemperTransformerConv(HIDDEN, HIDDEN // 4, **options)
        self.last = nn.Linear(HIDDEN, 1)

    def forward(self, batch: Data) -> Tensor:
        h = self.first(batch.x, batch.edge_index, batch.edge_attr).relu()
        h = self.second(h, batch.edge_index, batch.edge_attr).relu()
        return self.last(global_add_pool(h, batch.batch, batch.num_graphs)).flatten()


torch.manual_seed(0)
molecules = [make_molecule(torch.Generator().manual_seed(k)) for k in range(600)]
batches = [Batch.from_data_list(molecules[k : k + 100]) for k in range(0, 600, 100)]
*training, test = batches

model = GraphTransformer()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(1, 31):
    for batch in training:
        optimizer.zero_grad()
        loss = mse_loss(model(batch), batch.y) + 1e-5 * gate_penalty(model)
        loss.backward()
        optimizer.step()
    if epoch % 10 == 0:
        with torch.no_grad():
            error = mse_loss(model(test), test.y)
        print(f"epoch {epoch}: mean squared error {error:.2f} of {test.y.var():.2f}")

# The attention as a function of tensors: no layer, no edge vectors in memory.
graph = ops.Graph(test.edge_index, test.num_nodes)
q, k, v = torch.randn(3, test.num_nodes, 4, 8)
out, _ = ops.dot_product(graph, q, k, v, test.edge_attr, torch.randn(4, 8, BOND_KINDS))
print(f"ops.dot_product on {graph.num_edges} edges: {list(out.shape)}")

"""Trains any of the methods on batches, those of others too, and predicts exactly."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph

from tempergat.data import load
from tempergat.nn import build_model, gate_penalty
from tempergat.sampling import LayerGraphs
from tempergat.training import infer_layerwise

data = load("csbm", seed=0).data
seeds = data.train_mask.nonzero().squeeze(1)


def batches_of_others():
    """Batches as any loader gives them: `Data` with the seeds first."""
    for some in seeds[torch.randperm(len(seeds))].split(64):
        nodes, edges, place, _ = k_hop_subgraph(
            some, 2, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes
        )
        others = torch.ones(len(nodes), dtype=torch.bool)
        others[place] = False
        order = torch.cat([place, others.nonzero().squeeze(1)])
        new = torch.empty_like(order)
        new[order] = torch.arange(len(order))
        nodes = nodes[order]
        batch = Data(data.x[nodes], new[edges], y=data.y[nodes], batch_size=len(some))
        yield batch


torch.manual_seed(0)
model = build_model("temp_gated", data.num_features, 32, 2, heads=4, dropout=0.2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(15):
    for batch in batches_of_others():
        optimizer.zero_grad()
        # The batches of tempergat.NeighborSampler have this as batch.graph.
        out = model(batch.x, LayerGraphs.of_batch(batch))[: batch.batch_size]
        loss = F.cross_entropy(out, batch.y[: batch.batch_size])
        (loss + 1e-4 * gate_penalty(model)).backward()
        optimizer.step()

# Every node with all of its neighbours, 1,000 nodes at a time.
scores = infer_layerwise(model, data.x, data.edge_index, chunk=1000)
right = (scores.argmax(1) == data.y)[data.test_mask]
print(f"test accuracy {100 * right.float().mean():.1f} %")

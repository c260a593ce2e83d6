"""A small typed graph whose classes can be learned."""

import torch
from torch_geometric.data import HeteroData


def typed_graph(papers: int = 60, authors: int = 15, venues: int = 4) -> HeteroData:
    """Papers with a class, authors without features, and venues with features.

    A paper's venue says its class, and its own features do so in part.
    """
    generator = torch.Generator().manual_seed(7)
    data = HeteroData()
    y = torch.arange(papers) % 2
    data["author"].num_nodes = authors
    data["paper"].x = torch.randn(papers, 6, generator=generator) + y.view(-1, 1)
    data["paper"].y = y
    data["venue"].x = torch.eye(venues)
    venue = torch.randint(0, venues // 2, (papers,), generator=generator) * 2 + y
    author = torch.randint(0, authors, (papers,), generator=generator)
    numbers = torch.arange(papers)
    for other, kind in ((author, "author"), (venue, "venue")):
        data["paper", "to", kind].edge_index = torch.stack([numbers, other])
        data[kind, "to", "paper"].edge_index = torch.stack([other, numbers])
    # Nothing leads from a review to a paper.
    data["review"].x = torch.randn(5, 2, generator=generator)
    ends = torch.stack([numbers[:5], torch.arange(5)])
    data["paper", "has", "review"].edge_index = ends
    return data

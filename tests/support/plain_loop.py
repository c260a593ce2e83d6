"""A simple training loop of one run, to compare seeds trained at once with."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.data import Dataset, normalize_rows
from tempergat.nn import build_model, gate_penalty
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.ops.random import fold_in
from tempergat.training.settings.config import RunConfig


def train_plainly(dataset: Dataset, config: RunConfig, seed: int) -> dict[str, Tensor]:
    """Training losses, validation losses and scores after every epoch."""
    data = dataset.data
    x = normalize_rows(data.x) if config.normalize_features else data.x
    if x.layout != torch.strided:
        x = SparseFeatures.from_torch(x)
    torch.manual_seed(seed)
    model = build_model(
        in_channels=x.size(1),
        out_channels=dataset.predicted.width,
        **config.model_arguments(),
    )
    optimizer = torch.optim.Adam(
        model.parameters(),
        lr=config.learning_rate,
        weight_decay=config.weight_decay,
        foreach=False,
    )
    rows = []
    for epoch in range(config.epochs):
        model.train()
        optimizer.zero_grad()
        dropout_seed = fold_in(torch.tensor(seed), epoch)
        logits = model(x, data.edge_index, dropout_seed=dropout_seed)
        loss = F.cross_entropy(logits[data.train_mask], data.y[data.train_mask])
        loss = loss + config.gate_penalty * gate_penalty(model)
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, data.edge_index)
        correct = (logits.argmax(1) == data.y).double()
        val_loss = F.cross_entropy(logits[data.val_mask], data.y[data.val_mask])
        masks = (data.train_mask, data.val_mask, data.test_mask)
        scores = [correct[mask].mean().item() for mask in masks]
        rows.append([loss.item(), val_loss.item(), *scores])
    history = torch.tensor(rows, dtype=torch.float64)
    return {
        "history": history,
        **{name: value.detach() for name, value in model.state_dict().items()},
    }

"""Forecasts sensors on a fixed graph: many time steps of many windows at once.

A layer takes x of [batch, time, sensors, features]: the edges are sorted once, and no
edge is copied for a window or a time step. The data are made up: a wave moves along the
roads between sensors, so that the past of its neighbours tells what a sensor will show.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.nn import TemperGATv2Conv

SENSORS, STEPS, PAST = 40, 400, 8
torch.manual_seed(0)

# Sensors in a square, joined where they are near; roads have a length.
place = torch.rand(SENSORS, 2)
distance = torch.cdist(place, place)
near = (distance < 0.25) & (distance > 0)
edge_index = near.nonzero().t()
length = distance[near].unsqueeze(-1)


def measure() -> Tensor:
    """What the sensors show, [STEPS, SENSORS]: a daily wave, jams that move, noise."""
    time = torch.arange(STEPS).unsqueeze(-1)
    daily = torch.sin(2 * torch.pi * (time / 96 - place[:, 0]))
    jams, level = [], torch.zeros(SENSORS)
    spread = near / near.sum(0).clamp(min=1)
    for _ in range(STEPS):
        new = (torch.rand(SENSORS) < 0.02).float() * 2
        level = 0.3 * level + 0.65 * level @ spread + new
        jams.append(level)
    return daily + torch.stack(jams) + 0.05 * torch.randn(STEPS, SENSORS)


class Forecaster(torch.nn.Module):
    """Attention between sensors in every step, then a recurrent net over time."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.space = TemperGATv2Conv(1, width // 4, heads=4, edge_dim=1, residual=True)
        self.time = torch.nn.GRU(width, width, batch_first=True)
        self.read_out = torch.nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        # [batch, time, sensors, 1] -> [batch, time, sensors, width]
        h = F.elu(self.space(x, edge_index, length))
        # Each sensor of each window is a series of its own.
        series = h.transpose(1, 2).flatten(0, 1)
        last = self.time(series)[0][:, -1]
        change = self.read_out(last).view(x.size(0), SENSORS)
        return x[:, -1, :, 0] + change


values = measure()
windows = values.unfold(0, PAST + 1, 1).transpose(1, 2).unsqueeze(-1)
past, following = windows[:, :PAST], windows[:, PAST, :, 0]
end = int(0.8 * len(windows))

model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(6):
    for batch in torch.randperm(end).split(32):
        optimizer.zero_grad()
        F.mse_loss(model(past[batch]), following[batch]).backward()
        optimizer.step()
    with torch.no_grad():
        error = (model(past[end:]) - following[end:]).abs().mean()
    print(f"epoch {epoch + 1}: mean error {error:.3f}")

unchanged = (past[end:, -1, :, 0] - following[end:]).abs().mean()
print(f"if nothing changed: {unchanged:.3f}")

# The attention of the last window: [time, edges, heads]; edges are those of one step.
with torch.no_grad():
    _, (edges, weights) = model.space(
        past[-1], edge_index, length, return_attention_weights=True
    )
print(f"attention {list(weights.shape)} of {edges.size(1)} edges, loops included")

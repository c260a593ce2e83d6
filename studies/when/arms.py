"""The arms of the study: what is added to a plain attention layer."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from studies.when.controls import ConstantGate, FixedNorm, NeighbourGate
from tempergat.nn import NodeClassifier
from tempergat.ops import Graph
from tempergat.training import Condition, Preparation, RunConfig


@dataclass(frozen=True)
class Arm:
    """One way to change a plain attention layer.

    Attributes:
        words: What it is.
        method: The method it is built from, on the backbone gat.
        residual: Whether layers add a linear map of their input.
        control: What is put in place of the method's gate or attention vector.
    """

    words: str
    method: str
    residual: bool = False
    control: str | None = None

    def method_on(self, backbone: str) -> str:
        """The method it is built from, on any backbone."""
        if backbone == "gat":
            return self.method
        return backbone if self.method == "gat" else f"{self.method}_v2"

    def config(self, config: RunConfig, backbone: str) -> RunConfig:
        """Settings of this arm's runs, from those of any method."""
        method = self.method_on(backbone)
        return config.with_changes(method=method, residual=self.residual)

    @property
    def preparation(self) -> Preparation | None:
        """Puts the control into every layer of a model, where there is one."""
        if self.control is None:
            return None
        change = partial(put_control, control=self.control)
        return Preparation(Condition(change=self.control), model=change)


ARMS = {
    "plain": Arm("the backbone alone", "gat"),
    "residual": Arm("adds a linear map of the input", "gat", residual=True),
    "post_gate": Arm("the paper's gate on the output", "gated"),
    "gate_first": Arm("the paper's gate before attention", "gated_first"),
    "constant_gate": Arm(
        "a gate of one number per channel", "gated", control="constant gate"
    ),
    "neighbour_gate": Arm(
        "the gate on the output, fed by the neighbours' mean",
        "gated",
        control="neighbour gate",
    ),
    "post_gate_residual": Arm("gate and linear map", "gated", residual=True),
    "temperature": Arm("a learned temperature", "temp_only"),
    "temperature_post_gate": Arm("temperature and gate", "temp_gated"),
    "fixed_norm": Arm("attention vectors of fixed norm", "gat", control="fixed norm"),
    "fixed_norm_temperature": Arm(
        "attention vectors of fixed norm, and a learned temperature",
        "temp_only",
        control="fixed norm",
    ),
}


def put_control(model: NodeClassifier, edges: Graph, control: str) -> None:
    """Puts a control into every layer of a model, before its weights are drawn."""
    others = edges.src != edges.dst
    neighbours = Graph(
        torch.stack([edges.src[others], edges.dst[others]]), edges.num_dst
    )
    layer: Any
    for layer in model.convs:
        if control == "constant gate":
            layer.lin_gate = ConstantGate(layer.lin_gate)
        elif control == "neighbour gate":
            # Another class and not another map: a new one would draw random numbers.
            layer.lin_gate.__class__ = NeighbourGate
            layer.lin_gate.neighbours = neighbours
        else:
            layer.__class__ = type("FixedNorm", (FixedNorm, type(layer)), {})

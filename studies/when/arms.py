"""The arms of the study: what is added to a plain attention layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from tempergat.study.when.controls import ConstantGate, FixedNorm, NeighbourGate

from tempergat.data import Dataset
from tempergat.nn import BackboneName, NodeClassifier
from tempergat.ops import Graph
from tempergat.training import RunConfig

Control = Literal["constant gate", "neighbour gate", "fixed norm"]

STUDIED_BACKBONES: tuple[BackboneName, ...] = ("gat", "gatv2")


@dataclass(frozen=True)
class Arm:
    """One way to change a plain attention layer.

    Attributes:
        name: Its name in tables.
        method: The method it is built from, without the suffix of the backbone; "plain"
            for the backbone itself.
        residual: Whether layers add a linear map of their input.
        control: What is put in place of the method's gate or attention vector.
        words: What it is, in words.
    """

    name: str
    method: str
    words: str
    residual: bool = False
    control: Control | None = None

    def config(self, config: RunConfig, backbone: BackboneName) -> RunConfig:
        """Settings of this arm's runs.

        Args:
            config: Settings of a run of any method.
            backbone: What the arm is built on.
        """
        method: str = backbone
        if self.method != "plain":
            method = self.method if backbone == "gat" else f"{self.method}_v2"
        return config.with_changes(method=method, residual=self.residual)

    def change_model(self, model: NodeClassifier, neighbours: Graph) -> None:
        """Puts the arm's control into every layer of a model.

        Args:
            model: The model of `config`, before its weights are drawn.
            neighbours: The edges without self-loops, where the model will run.
        """
        if self.control is None:
            return
        for layer in model.convs:
            _put_control(layer, self.control, neighbours)


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("plain", "plain", "the backbone alone"),
        Arm("residual", "plain", "adds a linear map of the input", residual=True),
        Arm("post_gate", "gated", "the paper's gate on the output"),
        Arm("gate_first", "gated_first", "the paper's gate before attention"),
        Arm(
            "constant_gate",
            "gated",
            "a gate of one number per channel",
            control="constant gate",
        ),
        Arm(
            "neighbour_gate",
            "gated",
            "the gate on the output, fed by the neighbours' mean",
            control="neighbour gate",
        ),
        Arm("post_gate_residual", "gated", "gate and linear map", residual=True),
        Arm("temperature", "temp_only", "a learned temperature"),
        Arm("temperature_post_gate", "temp_gated", "temperature and gate"),
        Arm(
            "fixed_norm",
            "plain",
            "attention vectors of fixed norm",
            control="fixed norm",
        ),
        Arm(
            "fixed_norm_temperature",
            "temp_only",
            "attention vectors of fixed norm, and a learned temperature",
            control="fixed norm",
        ),
    )
}


def neighbours_of(dataset: Dataset, device: torch.device) -> Graph:
    """The edges of a graph without self-loops, as `NeighbourGate` takes them."""
    edges = dataset.data.edge_index
    kept = edges[:, edges[0] != edges[1]]
    return Graph(kept.to(device), dataset.data.num_nodes)


def _put_control(layer: Any, control: Control, neighbours: Graph) -> None:
    if control == "fixed norm":
        given = layer.softmax_temperature
        layer.softmax_temperature = FixedNorm(given.kind, given.init_temp)
        return
    bias_init = layer.feature_gate.bias_init
    if control == "neighbour gate":
        layer.feature_gate = NeighbourGate(neighbours, bias_init)
        return
    layer.feature_gate = ConstantGate(bias_init)
    width = layer.heads * layer.out_channels
    layer.feature_gate.add_to(layer, layer.in_channels, width)

"""A trained model with its preprocessing."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, write_bytes, write_into
from tempergat.data import Dataset, GraphInput, ReadOptions, Target, warn_of_notes
from tempergat.nn import GraphCall
from tempergat.training.metrics import metric_of_settings
from tempergat.training.record import Run
from tempergat.training.single import checkpoint
from tempergat.training.single.graph_inputs import read_for_prediction
from tempergat.training.single.inference import PreparedModule
from tempergat.training.single.metadata import Metadata

# The tensors of a checkpoint that record a run's progress.
_PROGRESS = ("epoch", "failed_epoch", "history")


class TrainedModel(PreparedModule):
    """A trained node classifier that prepares its input as in training.

    Made by `tempergat.train` and `tempergat.load_model`.

    Args:
        module: The classifier, with the weights of the selected epoch.
        metadata: The settings and the origin of its run.
        progress: The tensors ``epoch``, ``failed_epoch`` and ``history`` of the run.
        run: The record of the run.

    Attributes:
        module: The classifier without the preprocessing.
        run: The record of the run: scores, selected epoch, learned temperatures.
    """

    def __init__(
        self,
        module: nn.Module,
        metadata: Metadata,
        progress: Mapping[str, Tensor],
        run: Run,
    ) -> None:
        super().__init__(module, metadata)
        self.run = run
        self._progress = {name: progress[name].detach().cpu() for name in _PROGRESS}
        self.eval()

    @property
    def predicted(self) -> Target:
        """What is predicted of a node: how many classes, and their words."""
        return self._metadata.predicted

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return self.predicted.width

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The word of each class in the training table; None for plain numbers."""
        return self.predicted.names

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The name of each feature in the training table; None where it had none."""
        return self._metadata.feature_names

    def read_graph(
        self,
        data: GraphInput,
        read_options: ReadOptions | None = None,
        *,
        labelled: bool = False,
    ) -> Dataset:
        """Reads a graph as the training graph was read.

        Its features are put into the order of training by their names. Where the model
        or the graph has no names, they are used in the order in which they come. They
        are not scaled yet; ``scaling`` is that of the training graph.

        Args:
            data: A PyG ``Data``, a dataset, or the name or path of a graph with the
                features of the training graph. It needs no labels.
            read_options: Options that differ from those of the training graph.
            labelled: Whether to read its labels and its split too.

        Returns:
            The graph; its ``notes`` say where it differs from the training graph.

        Raises:
            UserError: The graph does not fit the model, or the run has failed.
        """
        checkpoint.refuse_failed("the run", self.run.failed_epoch)
        return read_for_prediction(data, self._metadata, read_options, labelled)

    def predict(
        self, data: GraphInput, read_options: ReadOptions | None = None
    ) -> Tensor:
        """The class of every node, int64, on the CPU.

        Args:
            data: What `read_graph` reads.
            read_options: Options that differ from those of the training graph.

        Raises:
            UserError: The graph does not fit the model, or the run has failed.
        """
        return self._on_graph(self._logits, data, read_options).argmax(dim=-1).cpu()

    def predict_proba(
        self, data: GraphInput, read_options: ReadOptions | None = None
    ) -> Tensor:
        """The probability of every class for every node, on the CPU.

        Args:
            data: What `read_graph` reads.
            read_options: Options that differ from those of the training graph.

        Returns:
            [num_nodes, num_classes]; every row sums to 1.

        Raises:
            UserError: The graph does not fit the model, or the run has failed.
        """
        return self._on_graph(self._logits, data, read_options).softmax(dim=-1).cpu()

    def embed(
        self, data: GraphInput, read_options: ReadOptions | None = None
    ) -> Tensor:
        """The last hidden features of every node, on the CPU.

        They are what the layer that gives the class scores takes, after normalisation
        and activation.

        Args:
            data: What `read_graph` reads.
            read_options: Options that differ from those of the training graph.

        Returns:
            [num_nodes, hidden_channels].

        Raises:
            UserError: The graph does not fit the model, the run has failed, or the
                model has one layer or is a user's own module.
        """
        return self._on_graph(self._embeddings, data, read_options).cpu()

    def graph_call(self, graph: Any) -> GraphCall:
        """How the classifier is called, for `tempergat.attention`.

        Args:
            graph: What `read_graph` reads, or a batch of `NeighborSampler`.
        """
        is_object = isinstance(graph, Data | HeteroData)
        if is_object and hasattr(graph.get("graph"), "for_layers"):
            return self._call_on_batch(graph)
        return self._call_on_dataset(self.read_graph(graph), graph)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a checkpoint that `tempergat.load_model` reads.

        Args:
            path: The file, or an existing folder for a file of the usual name. The
                file is replaced as a whole or not at all.

        Returns:
            The path of the file.

        Raises:
            UserError: The file cannot be written.
        """
        file = checkpoint.file_at(path)
        if file == Path(path):
            write_bytes(file, self.to_bytes())
            return file
        return write_into(file.parent, file.name, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The content of the checkpoint that `save` writes."""
        weights = checkpoint.weights_of(self.module)
        metadata = self._metadata.model_dump(mode="json")
        return checkpoint.to_bytes({**weights, **self._progress}, metadata)

    def __repr__(self) -> str:
        sizes, outcome = self._in_words()
        return f"TrainedModel({self.config.method}, {sizes}, {outcome})"

    def _repr_html_(self) -> str:
        run, (sizes, outcome) = self.run, self._in_words()

        def means(values: Sequence[float]) -> str:
            return ", ".join(f"{value:.3f}" for value in values)

        rows = {
            "graph": run.dataset,
            "size": sizes,
            "parameters": ""
            if run.parameter_count is None
            else f"{run.parameter_count:,}",
            "result": outcome,
            "temperature of each layer": means(run.selected.temperatures),
            "mean gate of each layer": means(run.selected.gate_means),
            "device": run.device,
        }
        body = "".join(
            f'<tr><th style="text-align: left">{name}</th>'
            f'<td style="text-align: left">{html.escape(value)}</td></tr>\n'
            for name, value in rows.items()
            if value
        )
        return (
            f"<table>\n<caption><strong>{html.escape(run.method)}</strong>, "
            f"seed {run.seed}</caption>\n<tbody>\n{body}</tbody>\n</table>\n"
        )

    def _in_words(self) -> tuple[str, str]:
        """The sizes of the model, and how its run ended."""
        metadata, run = self._metadata, self.run
        outcome = f"failed at epoch {run.failed_epoch}"
        if run.status == "done":
            metric = metric_of_settings(self.config.metric)
            test = metric.with_unit(run.scores[self.config.selection].test)
            outcome = f"test score {test} at epoch {run.selected_epoch}"
        inputs = f"{metadata.in_channels} features"
        if metadata.node_types is not None:
            inputs = f"{len(metadata.node_types)} node types"
        return f"{inputs}, {metadata.predicted.width} classes", outcome

    def _on_graph(
        self,
        compute: Callable[[Dataset], Tensor],
        data: GraphInput,
        read_options: ReadOptions | None,
    ) -> Tensor:
        """What is computed for every node of a graph, all of it finite."""
        dataset = self.read_graph(data, read_options)
        known = data.notes if isinstance(data, Dataset) else ()
        new = tuple(note for note in dataset.notes if note not in known)
        warn_of_notes(replace(dataset, notes=new))
        self.eval()
        with torch.no_grad():
            values = compute(dataset)
        unknown = int((~values.isfinite().all(dim=-1)).sum())
        if unknown:
            raise UserError(
                f"the model gives no finite scores for {unknown} of {values.size(0)} "
                f"nodes of {dataset.name}; scale its features like those it was "
                "trained on"
            )
        return values

"""What a checkpoint says about its run besides the tensors: its metadata."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Self

import torch
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)
from typing_extensions import TypedDict

import tempergat
from tempergat.base import UserError, first_validation_error
from tempergat.data import (
    ColumnScale,
    Dataset,
    ReadOptions,
    Target,
    scale_of,
    tensors,
)
from tempergat.nn import NodeType
from tempergat.training.devices.choice import device_name
from tempergat.training.graphs.inputs import edge_dim_of, in_channels_of, types_of
from tempergat.training.record import SparseCounts
from tempergat.training.results import versions
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.fields import Count
from tempergat.training.single.checkpoint import TRAIN_AGAIN

_OPTIONS = TypeAdapter(ReadOptions)


@dataclass(frozen=True)
class StoredNodeType(NodeType):
    """A node type in a checkpoint; further attributes as of `NodeType`.

    Attributes:
        feature_names: The name of each feature; None where they had none.
        nodes_hash: As of `TypeNames`, where every node has a learned vector.
    """

    num_nodes: Annotated[int, Field(ge=0, le=10**14)]
    num_features: Annotated[int, Field(ge=0, le=10**14)]
    feature_names: tuple[str, ...] | None = None
    nodes_hash: str | None = None


class Cells(TypedDict):
    """A confusion matrix, as `SparseCounts` takes it."""

    classes: int
    cells: list[list[int]]


class Metadata(BaseModel):
    """The settings and the origin of a run.

    Attributes:
        config: The settings.
        seed: The run's seed.
        fingerprint: The fingerprint of the dataset.
        in_channels: Features per node; the width of the shared space of a typed graph.
        num_classes: Number of classes.
        dataset: The name of the dataset.
        device: The name of the device.
        versions: Versions of the packages that took part.
        gate_means: The mean gate of each layer at the selected epoch.
        confusion: The confusion matrix, by rows or, of many classes, by cells; None
            until the run is finished.
        feature_names: The name of each feature; None where they had none.
        class_names: The word of each class; None where the labels were numbers from 0.
        label_name: The column that held the labels.
        undirected: Whether every edge was there in both directions; None if unknown.
        edge_feature_names: The names of the edge features that were used.
        edge_weight_name: The name of the edge weight that was used.
        read_options: How the user graph was read; None for datasets by name.
        node_types: The node types of a typed graph, the one to classify first; None
            for a graph of one type.
        scaling: How the columns of the training graph were scaled, as of `Dataset`;
            empty where they were used as given.
        columns: The mean and deviation of all columns that have a name, edge weights
            too, by the same names; empty in older checkpoints.
        time_s: Seconds spent so far. The checkpoint of a finished run does not keep
            them, so that the same run always makes the same file.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    config: RunConfig
    seed: int
    fingerprint: str
    in_channels: Count
    num_classes: Count
    dataset: str
    device: str
    versions: dict[str, str]
    gate_means: list[float | None] = []
    confusion: list[list[int]] | Cells | None = None
    feature_names: tuple[str, ...] | None
    class_names: tuple[str, ...] | None
    label_name: str | None
    undirected: bool | None
    edge_feature_names: tuple[str, ...]
    edge_weight_name: str | None
    read_options: ReadOptions | None
    node_types: tuple[StoredNodeType, ...] | None = None
    scaling: dict[str, ColumnScale] = {}
    columns: dict[str, ColumnScale] = {}
    time_s: float = 0.0

    @field_validator("read_options", mode="before")
    @classmethod
    def _options_from_json(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        unknown = sorted(set(value) - {field.name for field in fields(ReadOptions)})
        if unknown:
            raise ValueError(f"no such option {unknown[0]!r}")
        try:
            # JSON has lists in place of tuples, which strict settings refuse.
            return _OPTIONS.validate_python(value, strict=False)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{first['loc'][0]}: {first['msg']}") from error

    @property
    def predicted(self) -> Target:
        """What the model predicts."""
        return Target(self.num_classes, self.class_names)

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        for names, count, what in (
            (self.feature_names, self.in_channels, "features"),
            (self.class_names, self.num_classes, "classes"),
        ):
            if names is not None and len(names) != count:
                raise ValueError(f"{len(names)} names for {count} {what}")
        if bool(self.scaling) != self.config.scale_features:
            raise ValueError("scale_features and the scaling of columns disagree")
        widths = {".x": self.in_channels, ".edge_attr": len(self.edge_feature_names)}
        widths[".edge_weight"] = 1
        if self.node_types is not None:
            widths = {f"{kind.name}.x": kind.num_features for kind in self.node_types}
        for name, scale in (*self.scaling.items(), *self.columns.items()):
            fits = len(scale.mean) == len(scale.deviation) == widths.get(name)
            fits &= all(map(math.isfinite, scale.mean))
            # A column that is not scaled may be constant.
            least = 0.0 if scale is self.columns.get(name) else math.ulp(0.0)
            if not fits or not all(least <= d < math.inf for d in scale.deviation):
                raise ValueError(f"the scaling of {name} does not fit its columns")
        # Refuses cells outside of the matrix.
        _ = self.confusion_rows
        return self

    @property
    def confusion_rows(self) -> Sequence[Sequence[int]] | None:
        """The confusion matrix as runs have it."""
        if isinstance(self.confusion, dict):
            return SparseCounts(**self.confusion)
        return self.confusion and tuple(map(tuple, self.confusion))

    @property
    def edge_dim(self) -> int | None:
        """Features per edge that the model takes; None where it takes none."""
        return edge_dim_of(self.config, self.edge_feature_names)

    @model_serializer(mode="wrap")
    def _without_empty_values(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        values: dict[str, Any] = serialize(self)
        for name in ("node_types", "scaling", "columns"):
            if not values.get(name):
                values.pop(name, None)
        return values


def metadata_of(
    dataset: Dataset, config: RunConfig, seed: int, device: torch.device
) -> Metadata:
    """The metadata of a run before its first epoch."""
    types = types_of(dataset)
    stored = (_stored_type(dataset, kind) for kind in types or ())
    return Metadata(
        config=config,
        seed=seed,
        fingerprint=dataset.fingerprint,
        in_channels=in_channels_of(dataset, config),
        num_classes=dataset.predicted.width,
        dataset=dataset.name,
        device=device_name(device),
        versions=versions(),
        feature_names=dataset.feature_names if types is None else None,
        class_names=dataset.predicted.names,
        label_name=dataset.label_name,
        undirected=dataset.undirected,
        edge_feature_names=dataset.edge_feature_names,
        edge_weight_name=dataset.edge_weight_name,
        read_options=dataset.read_options,
        node_types=None if types is None else tuple(stored),
        scaling=dict(dataset.scaling) if config.scale_features else {},
        columns={
            name: scale_of(x)
            for name, x in tensors(dataset.data)
            if len(x) and dataset.column_names(name)
        },
    )


def _stored_type(dataset: Dataset, kind: NodeType) -> StoredNodeType:
    names = dataset.type_names.get(kind.name)
    if names is None:
        return StoredNodeType(**asdict(kind))
    if kind.num_features:
        return StoredNodeType(**asdict(kind), feature_names=names.features)
    return StoredNodeType(**asdict(kind), nodes_hash=names.nodes_hash)


def read_metadata(path: Path, values: Mapping[str, Any]) -> Metadata:
    """The metadata of the checkpoint at a path, from its plain JSON values.

    Raises:
        UserError: A value is missing or out of its range, or a setting is unknown.
    """
    try:
        # Strict validation of JSON takes lists for tuples, that of Python does not.
        return Metadata.model_validate_json(json.dumps(values))
    except ValidationError as error:
        reason, remedy = first_validation_error(error, Metadata), TRAIN_AGAIN
        versions, ours = values.get("versions"), tempergat.__version__
        made_by = versions.get("tempergat") if isinstance(versions, dict) else None
        if isinstance(made_by, str) and made_by != ours:
            remedy = (
                f"it was made by tempergat {made_by[:40]} and this is {ours}, so use "
                f"that version, or {TRAIN_AGAIN}"
            )
        raise UserError(
            f"{path} is not a checkpoint that this version can use ({reason}); {remedy}"
        ) from error

"""What an attention is, and the records that kernels take.

Letters of shapes: S source nodes, T target nodes, E edges in the graph's order,
H heads, C channels per head, D features per edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat.ops import reference
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.graphs.rows import Rows


class Call(NamedTuple):
    """What a backend knows of a call before it runs it.

    Attributes:
        op: The name of the op: an attention's, or "gate", "dropout", "aggregate",
            "outer".
        backends: The names of the backends that have kernels for the op.
        tensors: All tensors of the call, the features first.
        graph: The graph of an attention; None for the other ops.
    """

    op: str
    backends: tuple[str, ...]
    tensors: tuple[Tensor | None, ...]
    graph: Graph | None = None


class Input(NamedTuple):
    """A tensor that an attention takes.

    Attributes:
        name: Its name in messages and in the op's schema.
        shape: A letter per dimension, such as "SHC". The inputs with the letter D are
            given together or not at all. One of shape "H" may be a single number. One
            with the letter E first has the edges of all copies of a graph, or of one,
            which then serve all.
        optional: Whether it may be None.
        working: Whether it is held in the working type, float32 or float64, in which
            logits and sums are computed; otherwise in the type the features have.
    """

    name: str
    shape: str
    optional: bool = False
    working: bool = False

    @property
    def is_of_edges(self) -> bool:
        """Whether it has a row for every edge."""
        return self.shape[0] == "E"


Expand = Callable[..., tuple[Tensor | None, ...]]
# What every attention takes after its own inputs: a factor of the attention weights,
# and what is added to the logits.
EDGE_INPUTS = (
    Input("edge_weight", "EH", optional=True, working=True),
    Input("edge_bias", "EH", optional=True, working=True),
)
# What the epilogue takes and backward needs again; a skip has the output's gradient.
EPILOGUE_INPUTS = (
    Input("gate_logit", "THC", optional=True),
    Input("bias", "HC", optional=True),
)
# What a reference returns: the logits [E, H], or the logits and for every edge what is
# summed [E, H, C].
Logits = Tensor | tuple[Tensor, Tensor]


class Attention:
    """One kind of attention: its inputs, its reference, and the backends with kernels.

    Args:
        name: Its name.
        inputs: Its tensors. The first is what is summed over the edges, of shape "SHC".
            `EDGE_INPUTS` are added to them.
        reference: Called as ``reference(graph, *inputs, *settings)`` with its own
            inputs; returns `Logits`.
        settings: Its numbers, with their defaults.
        backends: The names of the backends with kernels for it: the modules
            ``tempergat.ops.<backend>.<name>``, with ``forward`` and ``backward``.
        expand: Gives the same inputs in a form that needs more memory; called where no
            backend takes them as they are.
        state: The shapes of what ``forward`` computes beside its results and keeps
            for ``backward``, in the working type.
    """

    def __init__(
        self,
        name: str,
        inputs: tuple[Input, ...],
        reference: Callable[..., Logits],
        settings: dict[str, float],
        backends: tuple[str, ...],
        expand: Expand | None = None,
        state: tuple[str, ...] = (),
    ) -> None:
        if not inputs or inputs[0].shape != "SHC" or inputs[0].optional:
            raise ValueError(
                f"the first input of attention {name!r} is what is summed over the "
                f"edges and has shape 'SHC'; got {inputs[:1]}"
            )
        for spec in inputs:
            if not spec.shape or not set(spec.shape) <= set("STEHCD"):
                raise ValueError(
                    f"the shape of {spec.name!r} is {spec.shape!r}; write one letter "
                    "per dimension (S, T, E, H, C, D)"
                )
        self.name = name
        # The torch ops, if there are kernels.
        self.forward_name, self.backward_name = f"{name}_forward", f"{name}_backward"
        self.inputs = inputs = (*inputs, *EDGE_INPUTS)
        self.reference = reference
        self.settings = settings
        self.backends = backends
        self.expand = expand
        self.state = state
        # The inputs with the letter D, and where in their shapes it stands.
        self.width_at = tuple(
            (k, spec.shape.index("D"))
            for k, spec in enumerate(inputs)
            if "D" in spec.shape
        )
        # The inputs with a row for every edge.
        self.edges_at = [k for k, spec in enumerate(inputs) if spec.is_of_edges]
        # For each input, its shape from a dictionary of sizes by letter.
        self.shape_of = tuple(_sizes_of(spec.shape) for spec in inputs)
        count, numbers, rows = len(inputs), len(settings), len(Rows._fields)
        edges = {"by_target": rows, "by_source": rows}
        self.forward_arguments = FlatArguments(
            inputs=count,
            epilogue=3,
            dropout_seed=None,
            **edges,
            copies=None,
            settings=numbers,
            dropout=None,
            weights=None,
            gate_sum=None,
        )
        self.saved_tensors = FlatArguments(
            inputs=count,
            gate_logit=None,
            bias=None,
            dropout_seed=None,
            attended=None,
            lse=None,
            state=len(state),
            **edges,
        )
        self.backward_arguments = FlatArguments(
            dout=None,
            dweights=None,
            dgate_sum=None,
            saved=self.saved_tensors.length,
            copies=None,
            settings=numbers,
            dropout=None,
            wanted=None,
        )

    def by_reference(
        self,
        graph: Graph,
        inputs: Sequence[Tensor | None],
        settings: Sequence[float],
        dropout: float,
        dropout_seed: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Output and weights in plain PyTorch, from all inputs."""
        if graph.copies > 1:
            inputs = [
                repeat_edges(x, graph) if spec.is_of_edges else x
                for x, spec in zip(inputs, self.inputs, strict=True)
            ]
        *own, edge_weight, edge_bias = inputs
        found = self.reference(graph, *own, *settings)
        if isinstance(found, Tensor):
            assert own[0] is not None
            found = found, reference.at_source(graph, own[0])
        logit, value = found
        return reference.attend(
            graph, logit, value, edge_weight, edge_bias, dropout, dropout_seed
        )


class FlatArguments:
    """Where the parts of a flat list of arguments stand: an index or a slice each.

    Args:
        **widths: The parts in order, with their lengths; None for a single argument.
    """

    def __init__(self, **widths: int | None) -> None:
        parts: list[Any] = []
        self.length = 0
        for width in widths.values():
            single = width is None
            end = self.length + (1 if width is None else width)
            parts.append(self.length if single else slice(self.length, end))
            self.length = end
        # The parts of a flat list.
        self.split = itemgetter(*parts)


def _sizes_of(shape: str) -> Callable[[Any], tuple[int, ...]]:
    """Picks the sizes of a shape's letters from a dictionary, as a tuple."""
    if len(shape) > 1:
        return itemgetter(*shape)
    # For a single letter, itemgetter would give a bare number.
    return lambda sizes: (sizes[shape],)


class Epilogue(NamedTuple):
    """What follows attention: ``out * sigmoid(gate_logit) + skip + bias``.

    Attributes:
        gate_logit: The gate before its sigmoid, [T, H, C]; None for no gate.
        skip: What is added to every row, [T, H, C]; None for nothing.
        bias: What is added to all rows alike, [H, C]; None for nothing.
        gate_sum: Whether the sum of the gate is wanted too.
    """

    gate_logit: Tensor | None = None
    skip: Tensor | None = None
    bias: Tensor | None = None
    gate_sum: bool = False


NO_EPILOGUE = Epilogue()


def changes_output(epilogue: Epilogue) -> bool:
    """Whether there is anything to do."""
    # A function: torch 2.6 does not compile a property of a named tuple.
    logit, skip, bias, _ = epilogue
    return logit is not None or skip is not None or bias is not None


class Attended(NamedTuple):
    """What an attention returns.

    Attributes:
        out: The output, [T, H, C].
        weights: The attention weights, [E, H], if they are wanted.
        gate_sum: A tensor whose elements add up to the sum of the gate, if it is
            wanted.
    """

    out: Tensor
    weights: Tensor | None
    gate_sum: Tensor | None


class Forward(NamedTuple):
    """A forward call as kernels take it.

    ``by_source`` is None where no gradient is wanted. The rows are those of one of
    ``copies`` copies of a graph; tensors of nodes have one copy after the other.
    """

    inputs: tuple[Any, ...]
    dropout_seed: Tensor | None
    by_target: Rows
    by_source: Rows | None
    copies: int
    settings: tuple[float, ...]
    dropout: float
    weights: bool
    epilogue: Epilogue = NO_EPILOGUE

    @classmethod
    def of(cls, attention: Attention, arguments: Any) -> Forward:
        """From the flat arguments of the torch op."""
        inputs, epilogue, seed, by_target, by_source, *rest, gate_sum = (
            attention.forward_arguments.split(arguments)
        )
        rows = Rows(*by_target), _rows(by_source)
        after = Epilogue(*epilogue)._replace(gate_sum=gate_sum)
        return cls(inputs, seed, *rows, *rest)._replace(epilogue=after)


class Saved(NamedTuple):
    """The tensors that a forward call saves for its backward call.

    ``attended`` is attention's output before the epilogue.
    """

    inputs: tuple[Any, ...]
    dropout_seed: Tensor | None
    attended: Tensor
    lse: Tensor
    state: tuple[Tensor, ...]
    by_target: Rows
    by_source: Rows | None
    gate_logit: Tensor | None = None
    bias: Tensor | None = None

    @property
    def given(self) -> tuple[Any, ...]:
        """All that has a gradient: the inputs, then `EPILOGUE_INPUTS`."""
        return *self.inputs, self.gate_logit, self.bias

    @classmethod
    def of(cls, attention: Attention, tensors: Any) -> Saved:
        """From the flat tensors that autograd has saved."""
        inputs, logit, bias, *rest, by_target, by_source = (
            attention.saved_tensors.split(tensors)
        )
        given = (inputs, *rest, Rows(*by_target), _rows(by_source), logit, bias)
        return cls(*given)


class Backward(NamedTuple):
    """A backward call as kernels take it.

    ``dout`` is the gradient of the output, ``dweights`` that of the weights and
    ``dgate_sum`` that of the gate's sum, if any. ``wanted`` says of each input whether
    its gradient is asked for, ``wants_bias`` that of the bias; one that is not need not
    be computed where that saves time.
    """

    dout: Tensor
    dweights: Tensor | None
    saved: Saved
    copies: int
    settings: tuple[float, ...]
    dropout: float
    wanted: tuple[bool, ...]
    wants_bias: bool = False
    dgate_sum: Tensor | None = None

    @classmethod
    def of(cls, attention: Attention, arguments: Any) -> Backward:
        """From the flat arguments of the torch op."""
        dout, dweights, dgate_sum, saved, *numbers, bits = (
            attention.backward_arguments.split(arguments)
        )
        *wanted, wants_bias = (
            bool(bits >> k & 1) for k in range(len(attention.inputs) + 1)
        )
        kept = Saved.of(attention, saved)
        given = (dout, dweights, kept, *numbers, tuple(wanted), wants_bias, dgate_sum)
        return cls(*given)


def _rows(tensors: Any) -> Rows | None:
    return None if tensors[0] is None else Rows(*tensors)


def working_dtype(stored: torch.dtype) -> torch.dtype:
    """The type of logits and sums for features of a type."""
    return torch.float64 if stored == torch.float64 else torch.float32


def repeat_edges(values: Tensor | None, graph: Graph) -> Tensor | None:
    """Values of the edges of all copies of a graph, from those of one or of all."""
    if values is None or values.size(0) == graph.num_all_edges:
        return values
    return values.repeat(graph.copies, *[1] * (values.dim() - 1))


def sum_copies(gradient: Any, x: Tensor | None) -> Any:
    """The gradient of an input whose edges serve all copies, from that of each."""
    if x is None or gradient is None or gradient.shape[:1] in ((), x.shape[:1]):
        return gradient
    return gradient.view(-1, *x.shape).sum(0)

"""Graph attention with a learnable softmax temperature and feature gates."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tempergat.ops import Graph

__all__ = ["Graph"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The command must answer --help, and choose how threads wait, before torch loads.
    if name == "Graph":
        from tempergat.ops import Graph

        return Graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

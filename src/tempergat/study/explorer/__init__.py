"""The explorer: what a trained model does at single nodes."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.explorer.node_picture import NodePicture, draw_node

__all__ = ["NodePicture", "draw_node"]

__getattr__, __dir__ = lazy_names(__name__)

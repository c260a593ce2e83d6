"""The explorer: what a trained model does at single nodes."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.explorer.node_picture import NodePicture, draw_node
    from tempergat.study.explorer.page import explorer_page, explorer_section
    from tempergat.study.explorer.recording import Recorded, record

__all__ = [
    "NodePicture",
    "Recorded",
    "draw_node",
    "explorer_page",
    "explorer_section",
    "record",
]

__getattr__, __dir__ = lazy_names(__name__)

"""Gate or residual? A factorial study of what is added to plain attention."""

from tempergat.study.when.arms import ARMS, STUDIED_BACKBONES, Arm, neighbours_of

__all__ = ["ARMS", "STUDIED_BACKBONES", "Arm", "neighbours_of"]

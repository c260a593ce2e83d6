"""The paper's published numbers beside our runs."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.paper.claims import (
        Claim,
        DatasetReproduction,
        reproduce_dataset,
    )
    from tempergat.study.paper.numbers import (
        BACKBONE_OF,
        HETEROGENEOUS,
        HOMOGENEOUS,
        PAPER_METHODS,
        PLAIN_METHODS,
        PaperCell,
        read_paper,
    )
    from tempergat.study.paper.page import (
        Reproduction,
        reproduce_heterogeneous,
        reproduce_homogeneous,
        reproduction_json,
    )
    from tempergat.study.paper.ranks import below_backbone
    from tempergat.study.paper.ranks_page import (
        RanksReport,
        ranks_json,
        reproduce_ranks,
    )
    from tempergat.study.paper.summary import RULE_WORDS

__all__ = [
    "BACKBONE_OF",
    "HETEROGENEOUS",
    "HOMOGENEOUS",
    "PAPER_METHODS",
    "PLAIN_METHODS",
    "RULE_WORDS",
    "Claim",
    "DatasetReproduction",
    "PaperCell",
    "RanksReport",
    "Reproduction",
    "below_backbone",
    "ranks_json",
    "read_paper",
    "reproduce_dataset",
    "reproduce_heterogeneous",
    "reproduce_homogeneous",
    "reproduce_ranks",
    "reproduction_json",
]

__getattr__, __dir__ = lazy_names(__name__)

"""The plan of the study, read from results/when/plan.yaml."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tempergat.base import UserError, read_yaml, validated
from tempergat.nn import BackboneName
from tempergat.study.when.arms import ARMS
from tempergat.training import RunConfig

PLAN_FILE = "when/plan.yaml"

Factor = Literal["homophily", "degree", "mu", "sigma", "rho", "label_rate"]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GeneratedPlan(_Part):
    """The generated graphs: each factor is varied by itself around each centre.

    Attributes:
        nodes: Nodes of a graph.
        features: Features per node.
        classes: Number of classes.
        tau: Standard deviation of the value in place of a lost coordinate.
        validation_rate: Percentage of validation nodes.
        test_rate: Percentage of test nodes.
        centre: The value of every factor but homophily where it is not varied.
        centres: The homophily of each centre, by name.
        levels: Further values of each factor.
        graph_seed: Seed of the first graph; the others follow it.
        seeds: The seeds of the runs.
        settings: Settings of the runs, the same for every arm.
    """

    nodes: int
    features: int
    classes: int
    tau: float
    validation_rate: float
    test_rate: float
    centre: dict[Factor, float]
    centres: dict[str, Share]
    levels: dict[Factor, tuple[float, ...]]
    graph_seed: int
    seeds: tuple[int, ...]
    settings: dict[str, Any]

    def config(self) -> RunConfig:
        """The settings, of a run of any method."""
        return validated(RunConfig, {"method": "gat", **self.settings}, "settings")


class RealGraph(_Part):
    """A real graph.

    Attributes:
        name: Its name in the catalogue.
        family: Graphs of one family count as one in tests across graphs.
        splits: Whether its own splits are used, or ten made ones.
        part: The part of the study it is trained in; part 1 is the generated graphs.
        adjusted_homophily: As `diagnose` measures it, without test labels.
        file: Where a mirror has it, for a graph without a name in the catalogue.
    """

    name: str
    family: str
    splits: Literal["own", "made"]
    part: int
    adjusted_homophily: float
    file: str | None = None


class SearchPlan(_Part):
    """The search that every arm has on every real graph.

    Attributes:
        learning_rate: Values that are tried.
        dropout: Values that are tried, of features and attention alike.
        weight_decay: Values that are tried.
        seeds: The seeds of each setting; on a graph with several splits, one split
            each.
    """

    learning_rate: tuple[float, ...]
    dropout: tuple[float, ...]
    weight_decay: tuple[float, ...]
    seeds: tuple[int, ...]

    def changes(self) -> list[dict[str, float]]:
        """The changes to a configuration that are tried, in the order of their number.

        Returns:
            Every combination of the values.
        """
        combinations = itertools.product(
            self.learning_rate, self.dropout, self.weight_decay
        )
        return [
            {
                "learning_rate": rate,
                "feature_dropout": dropout,
                "attention_dropout": dropout,
                "weight_decay": decay,
            }
            for rate, dropout, decay in combinations
        ]


class RealPlan(_Part):
    """The real graphs.

    Attributes:
        graphs: The graphs.
        made_split: Percentages of splits that are made.
        made_splits: How many are made.
        search: The search of every arm.
        seeds: The seeds of the runs that are reported; on a graph with several splits,
            one split each.
        settings: Settings that are not searched.
    """

    graphs: tuple[RealGraph, ...]
    made_split: str
    made_splits: int
    search: SearchPlan
    seeds: tuple[int, ...]
    settings: dict[str, Any]

    def config(self) -> RunConfig:
        """The settings that are not searched, of a run of any method."""
        first = self.search.changes()[0]
        values = {"method": "gat", **self.settings, **first}
        return validated(RunConfig, values, "settings")


class Contrast(_Part):
    """Two arms that are compared.

    Attributes:
        arm: The arm.
        against: What it is compared with.
        asks: The question.
    """

    arm: str
    against: str
    asks: str

    @property
    def name(self) -> str:
        """The two arms with a minus sign between them."""
        return f"{self.arm} - {self.against}"


class Bounds(_Part):
    """What counts as support; differences are in points.

    Attributes:
        equivalence: Two arms are called equivalent where the 90 % interval of their
            mean difference over graphs lies within this many points of 0.
        shared_gain: A control has the gate's gain where it gains this share of it.
    """

    equivalence: float
    shared_gain: Share


class Rule(_Part):
    """Which arm of gatv2 to take, by a measurement that needs no test labels.

    Attributes:
        threshold: A value of adjusted homophily.
        below: The arm for graphs below it.
        otherwise: The arm for all others.
    """

    threshold: float
    below: str
    otherwise: str


class WhenPlan(_Part):
    """The study: arms, graphs, searches, seeds, comparisons and what counts.

    Attributes:
        reasons: Why the study is as it is.
        backbones: The backbones of every arm.
        arms: Keys of `ARMS`.
        contrasts: The arms that are compared, fixed beforehand.
        bounds: What counts as support.
        rule: The rule that is judged on the real graphs.
        generated: The generated graphs.
        real: The real graphs.
    """

    reasons: tuple[str, ...]
    backbones: tuple[BackboneName, ...]
    arms: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    bounds: Bounds
    rule: Rule
    generated: GeneratedPlan
    real: RealPlan

    @model_validator(mode="after")
    def _known_arms(self) -> Self:
        named = [name for c in self.contrasts for name in (c.arm, c.against)]
        for name in (*self.arms, *named):
            if name not in ARMS:
                raise ValueError(f"unknown arm {name!r}; arms are {', '.join(ARMS)}")
        return self


def load_plan(results: Path) -> WhenPlan:
    """Reads the plan below a folder of results.

    Raises:
        UserError: It cannot be read or is not such a plan.
    """
    path = results / PLAN_FILE
    what = f"the plan {path}"
    remedy = "run this in the project's folder, or name its results with --results"
    values = read_yaml(path, what, remedy)
    if not isinstance(values, dict):
        raise UserError(f"{what} is not a table of settings")
    return validated(WhenPlan, values, what)

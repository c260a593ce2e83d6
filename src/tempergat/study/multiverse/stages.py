"""What is trained for the joint calibration and the multiverse, in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tempergat.study.multiverse.cells import Cell, is_near
from tempergat.study.multiverse.plan import MultiversePlan, Training
from tempergat.training import RunConfig


@dataclass(frozen=True)
class Stage:
    """Configurations that are trained together on one dataset."""

    dataset: str
    configs: tuple[RunConfig, ...]


def baseline_stage(
    plan: MultiversePlan, dataset: str, cells: Sequence[Cell]
) -> Stage | None:
    """The baselines on one dataset, in every training that may still be near.

    Args:
        plan: The plan.
        dataset: One of the plan's. It is asked for after those before it were run.
        cells: The cells as judged by the datasets that were run so far.

    Returns:
        The stage; None where no training may still be near.
    """
    far = {cell.training for cell in cells}
    far -= {cell.training for cell in cells if is_near(cell, plan)}
    if dataset == plan.datasets[0]:
        far = set()
    configs = [
        plan.config(training, dataset, method)
        for training in plan.trainings()
        if training not in far
        for method in plan.baselines
    ]
    return Stage(dataset, tuple(configs)) if configs else None


def variant_stages(
    plan: MultiversePlan, trainings: Sequence[Training]
) -> Iterator[Stage]:
    """The variants in some trainings, and the variations in the nearest of these.

    The variations come after the second training, and those on the last dataset, the
    largest, at the end.

    Args:
        plan: The plan.
        trainings: The trainings, nearest to the paper first.
    """
    small, last = plan.datasets[:-1], plan.datasets[-1:]
    for training in trainings[:2]:
        yield from _variants(plan, training)
    yield from _variations(plan, trainings[:1], small)
    for training in trainings[2:]:
        yield from _variants(plan, training)
    yield from _variations(plan, trainings[:1], last)


def _variants(plan: MultiversePlan, training: Training) -> Iterator[Stage]:
    for dataset in plan.datasets:
        configs = [plan.config(training, dataset, m) for m in plan.variants]
        yield Stage(dataset, tuple(configs))


def _variations(
    plan: MultiversePlan, trainings: Sequence[Training], datasets: Sequence[str]
) -> Iterator[Stage]:
    for training in trainings:
        for dataset in datasets:
            configs = [
                plan.config(training, dataset, method, variation)
                for variation in plan.variations
                for method in plan.varied_methods(variation)
            ]
            yield Stage(dataset, tuple(configs))

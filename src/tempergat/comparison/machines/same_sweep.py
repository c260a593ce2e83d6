"""Whether stores are shards of one sweep."""

from collections.abc import Collection, Sequence

from tempergat.base import UserError
from tempergat.comparison.machines.store_content import RunKey, StoreContent


def refuse_other_sweeps(
    contents: Sequence[StoreContent], finished: Collection[RunKey]
) -> None:
    """Refuse stores that cannot be shards of one sweep.

    Every shard plans the whole sweep and trains a part of it. Where a planned run is in
    none of the stores, although another one has the same method on the same graph, that
    one must have planned the run too. Stores without missing runs may hold anything.

    Args:
        contents: The stores.
        finished: The runs that are in any of them.

    Raises:
        UserError: Two stores planned different runs, and some are missing.
    """
    plans = [(content.path, content.planned) for content in contents]
    for path, plan in plans:
        missing = sorted(plan - set(finished))
        for other_path, other_plan in plans:
            others = {(key.fingerprint, key.method) for key in other_plan}
            for run in missing:
                if run in other_plan or (run.fingerprint, run.method) not in others:
                    continue
                raise UserError(
                    f"{path} and {other_path} are not shards of one comparison: "
                    f"{_difference(run, plan, other_plan)}; run the shards with the "
                    "same arguments"
                )


def _difference(run: RunKey, plan: set[RunKey], other_plan: set[RunKey]) -> str:
    """By what two plans differ, as seen from a run that only the first one has."""
    others = [
        key
        for key in other_plan
        if (key.fingerprint, key.method) == (run.fingerprint, run.method)
    ]
    if run.device not in {key.device for key in others}:
        return f"one is for {run.device}, the other for {others[0].device}"
    if run.numerics not in {key.numerics for key in others}:
        return "they were trained by versions of tempergat that round differently"
    if run.config_hash not in {key.config_hash for key in others}:
        return f"they have other settings for {run.method}"
    counts = sorted(
        len({key.seed for key in found if key.method == run.method})
        for found in (plan, other_plan)
    )
    return f"one has {counts[0]} seeds of {run.method}, the other {counts[1]}"

"""How runs are cut into groups that train together."""

from collections.abc import Sequence

from tempergat.base import even_groups

# The configuration hashes and the seeds of a group.
GroupContent = tuple[Sequence[str], Sequence[int]]


def cut_runs(
    hashes: Sequence[str], seeds: Sequence[int], size: int
) -> list[GroupContent]:
    """All runs of these configurations and seeds, cut into groups of at most `size`."""
    if not hashes or not seeds:
        return []
    if len(seeds) > size or len(hashes) == 1:
        return [((key,), part) for key in hashes for part in even_groups(seeds, size)]
    return [(part, seeds) for part in even_groups(hashes, size // len(seeds))]

"""The result of one shard of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tempergat.base import UserError, counted
from tempergat.comparison.sweeps.shards import Shard
from tempergat.training import Run


def refuse_tuned_shard(shard: Shard | None) -> None:
    """Refuse a shard of a comparison whose settings are searched, before any work.

    Raises:
        UserError: There is a shard.
    """
    if shard is not None:
        raise UserError(
            f"shard {shard} cannot be tuned: what a search tries depends on the scores "
            "of all runs before; give tune or shard, or use a Ray cluster"
        )


@dataclass(frozen=True, repr=False)
class FinishedShard:
    """The runs that one shard of a comparison has trained; there is no table yet.

    Attributes:
        shard: Which of how many.
        runs: Its runs, failed ones included.
        total_runs: The runs of all shards together.
        store: The file that keeps its runs.
    """

    shard: Shard
    runs: list[Run]
    total_runs: int
    store: Path

    @classmethod
    def together(cls, parts: Sequence["FinishedShard"]) -> "FinishedShard":
        """One shard of the comparisons on several graphs, from that of each graph."""
        return replace(
            parts[0],
            runs=[run for part in parts for run in part.runs],
            total_runs=sum(part.total_runs for part in parts),
        )

    @property
    def failed(self) -> int:
        """How many of its runs failed."""
        return sum(run.status == "failed" for run in self.runs)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "shard": self.shard.number,
            "shards": self.shard.of,
            "runs": len(self.runs),
            "failed": self.failed,
            "total_runs": self.total_runs,
            "store": str(self.store),
        }

    def __repr__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"shard {self.shard}: {len(self.runs)} of {counted(self.total_runs, 'run')}"
            f"{failed}, in {self.store}; the table comes after the shards are merged: "
            "tempergat merge STORE... --out FOLDER"
        )

"""Under which name each graph of a store has its tables."""

from collections.abc import Collection

from tempergat.base import file_stem
from tempergat.comparison.storage.checked_values import text
from tempergat.comparison.storage.database import Database
from tempergat.comparison.storage.encoding import check_row
from tempergat.comparison.storage.schema import NAME_COLUMNS, insert_statement, sealed

# Digits of a graph's fingerprint that tell it from another of the same name.
_DIGITS = 6


class Names(Database):
    """The names under which graphs have their tables."""

    def table_name(
        self, dataset: str, graph: str, fingerprints: Collection[str]
    ) -> str:
        """The name of a graph's tables, the same in every later call.

        The first graph of a name has its tables under that name. Another graph of the
        same name has `-` and six digits of its fingerprint added.

        Args:
            dataset: The name of the graph.
            graph: Fingerprint of the graph without a split.
            fingerprints: Fingerprints of the graph with each of its splits.
        """
        stem = file_stem(dataset)
        with self._user_errors(), self._transaction():
            owner = self._owner(stem)
            if owner is None and self._is_first(stem, fingerprints):
                self._add_name(stem, graph)
                owner = graph
        return stem if owner == graph else f"{stem}-{graph[:_DIGITS]}"

    def all_names(self) -> dict[str, str]:
        """The fingerprint of the graph that has its tables under each name."""
        columns = ", ".join(NAME_COLUMNS)
        with self._user_errors():
            rows = self._connection.execute(f"SELECT {columns} FROM names").fetchall()
        with self._altered_rows():
            for row in rows:
                check_row(row, f"of the name {row[0]}")
            return {text(name): text(graph) for name, graph, _ in rows}

    def _add_name(self, stem: str, graph: str) -> None:
        statement = insert_statement("names", NAME_COLUMNS)
        self._connection.execute(
            f"{statement} ON CONFLICT DO NOTHING", sealed((stem, graph))
        )

    def _owner(self, stem: str) -> str | None:
        row = self._connection.execute(
            f"SELECT {', '.join(NAME_COLUMNS)} FROM names WHERE name = ?", (stem,)
        ).fetchone()
        if row is None:
            return None
        with self._altered_rows():
            check_row(row, f"of the name {stem}")
            return text(row[1])

    def _is_first(self, stem: str, fingerprints: Collection[str]) -> bool:
        """Whether no other graph of this name has runs from before names were kept."""
        rows = self._connection.execute(
            "SELECT dataset, fingerprint FROM runs "
            "GROUP BY dataset, fingerprint ORDER BY min(group_id)"
        )
        found = [content for dataset, content in rows if file_stem(dataset) == stem]
        return not found or found[0] in fingerprints

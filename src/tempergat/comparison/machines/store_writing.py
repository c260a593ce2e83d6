"""The store that takes the runs of others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tempergat.base import UserError
from tempergat.comparison.machines.store_content import RunKey, StoreContent, keys_of
from tempergat.comparison.storage.store import Group, Store
from tempergat.training import Run


class MergedStore(Store):
    """A store that takes the groups, runs and names of others."""

    def take(
        self,
        contents: Sequence[StoreContent],
        groups: Sequence[Group],
        runs: Mapping[RunKey, Run],
    ) -> int:
        """Write everything in one transaction: all of it, or nothing.

        Args:
            contents: What the stores hold; the first is what this store holds.
            groups: The groups of all of them, in the order they were cut.
            runs: The runs of all of them.

        Returns:
            How many runs were new.

        Raises:
            UserError: Another process has changed the store since it was read.
        """
        names: dict[str, str] = {}
        for content in contents:
            names = {**content.names, **names}
        with self._user_errors(), self._transaction():
            runs_there = self._connection.execute("SELECT COUNT(*) FROM runs")
            if self._read_groups() != contents[0].groups or runs_there.fetchone()[
                0
            ] != len(contents[0].runs):
                raise UserError(
                    f"another process has changed {self.path} during the merge; wait "
                    "until it ends, and merge again"
                )
            numbers = self._put_groups(groups)
            for stem, graph in names.items():
                self._add_name(stem, graph)
            return self._insert(
                [replace(run, group_id=numbers.get(key)) for key, run in runs.items()]
            )

    def _put_groups(self, groups: Sequence[Group]) -> dict[RunKey, int]:
        """Write groups that are not there, and drop planned ones that are not given.

        Returns:
            The number of the group that each run belongs to.
        """
        wanted = {replace(group, id=0): group for group in groups}
        there = self._read_groups()
        for group in there:
            if replace(group, id=0) not in wanted:
                self._connection.execute("DELETE FROM groups WHERE id = ?", (group.id,))
        known = {replace(group, id=0) for group in there}
        for content, group in wanted.items():
            if content not in known:
                self._add_groups(group.study, [(group.config_hashes, group.seeds)])
        return {
            key: group.id
            for group in reversed(self._read_groups())
            for key in keys_of(group)
        }

"""What the paper has of each study: its datasets, tables, figures and theorems."""

from tempergat.base import UserError
from tempergat.comparison.paper import HETEROGENEOUS, HOMOGENEOUS

DATASETS = {
    "homogeneous": HOMOGENEOUS,
    "heterogeneous": HETEROGENEOUS,
    "noise": HOMOGENEOUS[:4],
}
# The study that answers an item, or the command that shows it.
ITEMS = {
    "table1": "tempergat methods",
    "table2": "tempergat recipe cora",
    "table3": "homogeneous",
    "table4": "tempergat recipe pokec",
    "table5": "heterogeneous",
    "table6": "tempergat data list",
    "table7": "tempergat data list",
    "figure1": "python docs/method/figures.py",
    "figure2": "ranks",
    "figure3": "ranks",
    "figure4": "noise",
    "theorem1": "theory",
    "theorem2": "theory",
}


def study_of(name: str, studies: list[str]) -> str:
    """The study that a user names by itself or by an item of the paper.

    Raises:
        UserError: There is no such study or item, or another command shows the item.
    """
    item = name.lower().replace(" ", "")
    found = ITEMS.get(item, name)
    if found in studies:
        return found
    if item in ITEMS:
        raise UserError(f"{item} of the paper is no study; `{found}` shows it")
    raise UserError(
        f"there is no study or item of the paper {name!r}; studies are "
        f"{', '.join(studies)}; items are {', '.join(ITEMS)}"
    )

"""What the shell offers when a user presses the tab key.

Where no name fits, the shell offers files, which are graphs too.
"""


def complete_method(typed: str) -> list[str]:
    """The methods whose name starts with what was typed."""
    from tempergat.nn import METHODS

    return [name for name in METHODS if name.startswith(typed)]


def complete_methods(typed: str) -> list[str]:
    """The same for the last name of a list like `gat,temp`."""
    before, comma, last = typed.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_method(last)]


def complete_dataset(typed: str) -> list[str]:
    """The datasets whose name starts with what was typed."""
    from tempergat.data import CATALOG

    return [name for name in CATALOG if name.startswith(typed)]

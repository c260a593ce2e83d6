"""What `pip install tempergat` leaves out, and how to get it.

Layers, ops and sampling need torch, PyTorch Geometric and numpy. All else needs the
extra `compare`, and asks for it before it does anything.
"""

from importlib.util import find_spec

from tempergat.base.text import listed

# As they are imported. annotated_types comes with pydantic.
_COMPARE = "scipy pydantic typer rich yaml safetensors jinja2 matplotlib pandas"


def what_is_missing(who: str) -> str | None:
    """One line on what someone needs of `compare` and lacks; None if nothing."""
    missing = [name for name in _COMPARE.split() if find_spec(name) is None]
    if not missing:
        return None
    return (
        f"{who} needs packages that are not installed ({listed(missing)}); run pip "
        "install 'tempergat[compare]' (in a clone: pip install '.[compare]')"
    )


def require_compare(package: str) -> None:
    """Refuses to import a package of ours where a package of `compare` is missing."""
    if line := what_is_missing(package):
        raise ModuleNotFoundError(line)

"""Reports what the features of a user graph are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tempergat.base import listed
from tempergat.data.features import column_blocks, column_kinds

_SHOWN_FEATURES = 20


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes:
        subject: What it is about.
        value: What was found: a number, a text, or several by name.
        action: What loading will do about it; "" where nothing needs doing.
    """

    subject: str
    value: Any
    action: str = ""


def feature_findings(store: Any, names: Sequence[str] | None) -> list[Finding]:
    """What the features of one node type are.

    Args:
        store: The nodes.
        names: The names of the features; None where they have none.
    """
    where = "" if store._key is None else f" of {store._key}"
    x = store.get("x")
    if not isinstance(x, Tensor):
        action = "training needs some; --make-features degree makes them"
        if where:
            action = "each node gets a learned vector"
        return [Finding(f"features{where}", "none", action)]
    values = x.values() if x.layout == torch.sparse_csr else x
    finite = values[torch.isfinite(values)]
    zeros = x.numel() - int(torch.count_nonzero(values))
    findings = [
        Finding(f"features{where}", x.shape[1]),
        *_kinds(x, names, where),
        Finding(
            f"values that are not finite{where}",
            values.numel() - finite.numel(),
            "compare refuses them: fill or drop them",
        ),
    ]
    if finite.numel():
        low, high = float(finite.min()), float(finite.max())
        if x.layout == torch.sparse_csr and zeros:
            low, high = min(low, 0.0), max(high, 0.0)
        # Six digits: what float32 holds.
        ends = {"least": float(f"{low:.6g}"), "most": float(f"{high:.6g}")}
        findings.append(Finding(f"range of features{where}", ends))
        findings.append(
            Finding(f"share of zeros{where}", round(zeros / x.numel(), 4), "kept")
        )
    return findings


def _kinds(x: Tensor, names: Sequence[str] | None, where: str) -> list[Finding]:
    """How many features are numbers, 0 or 1, or constant, and their names."""
    if not x.shape[1] or not len(x):
        return []
    flat = [kind for block in column_blocks(x) for kind in column_kinds(block)]
    if names is not None:
        flat = [
            "one-hot" if "=" in name and kind != "number" else kind
            for name, kind in zip(names, flat, strict=True)
        ]
    findings = [Finding(f"kinds of features{where}", dict(Counter(flat)))]
    if names is not None:
        words = [f"{name} ({kind})" for name, kind in zip(names, flat, strict=True)]
        shown = listed(words, _SHOWN_FEATURES)
        findings.insert(0, Finding(f"names of features{where}", shown))
    return findings

"""Arrays as short text for the page's script, which unpacks them."""

import base64

import numpy as np

# With fewer numbers than this, exact ones are as short as matters.
_FEW = 4096
_LEVELS = 2**16 - 1

Packed = dict[str, object]


def whole_numbers(values: np.ndarray) -> Packed:
    """Whole numbers, in the smallest type that holds them."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for kind in ("uint8", "int16", "uint16", "int32"):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return _packed(kind, values.astype(kind))
    raise OverflowError(f"{high} needs more than 32 bits")


def numbers(values: np.ndarray) -> Packed:
    """Numbers to 1/131,070 of their range; few of them in single precision."""
    if values.size <= _FEW:
        return _packed("float32", values.astype("<f4"))
    low, high = float(values.min()), float(values.max())
    step = (high - low) / _LEVELS or 1.0
    levels = np.rint((values - low) / step).astype("<u2")
    return _packed("levels", levels) | {"low": low, "step": step}


def logits(values: np.ndarray) -> Packed:
    """Differences from the largest logit of a row, in half precision.

    The error of a coefficient exp(d / T) is then below 0.0002 at any temperature T,
    because it is at most 2^-11 times d/T exp(d/T).
    """
    return _packed("float16", np.maximum(values, -60000.0).astype("<f2"))


def _packed(kind: str, array: np.ndarray) -> Packed:
    little = array.astype(array.dtype.newbyteorder("<"))
    text = base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")
    return {"kind": kind, "text": text}

"""Which names say that a column, a file or an array is a part of a split."""

import re

from tempergat.data.dataset import MASKS

# Written out, and as they are abbreviated beside a word like mask.
_WORDS = {
    MASKS[0]: "train|training",
    MASKS[1]: "val|valid|validation|dev",
    MASKS[2]: "test|testing",
}
_SHORT = {MASKS[0]: "trn|tr", MASKS[1]: "vld|vl|va", MASKS[2]: "tst|te"}
_KIND = "masks?|msk|set|split|flag|idx|index|indices|ids|nodes?"


def plain_name(name: str) -> str:
    """A name in lower case, without spaces, dots, dashes and underscores."""
    return re.sub(r"[\s._-]", "", name).lower()


def split_part(name: str) -> str | None:
    """The mask that a name like `is_train`, `tr_mask` or `idx_train` stands for.

    None where the name does not sound like a part of a split.
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    plain = re.sub(r"[\s._-]+", "_", apart).lower()
    # Without the separator, `in` would make a split of `invalid`.
    before = f"(?:(?:is|{_KIND})_?|(?:in|for)_)"
    for mask, words in _WORDS.items():
        either = f"(?:{words}|{_SHORT[mask]})"
        forms = (words, f"{before}{either}", f"(?:{before})?{either}_?(?:{_KIND})")
        if any(re.fullmatch(form, plain) for form in forms):
            return mask
    return None


def is_mask_name(name: str) -> bool:
    """Whether a name can only be that of a mask, like `train_mask` or `mask_val_3`."""
    plain = name.rstrip("0123456789_ -")
    return re.search("(?i)mask|msk", plain) is not None and bool(split_part(plain))

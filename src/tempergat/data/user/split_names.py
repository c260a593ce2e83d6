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
# Words for 0 and 1 in a mask.
TRUTH = {"yes": 1, "y": 1, "t": 1, "no": 0, "n": 0, "f": 0}
_KIND = "masks?|msk|set|split|flag|bool|idx|index|indices|ids|nodes?"


def plain_name(name: str) -> str:
    """A name in lower case, without spaces, dots, dashes and underscores."""
    return re.sub(r"[\s._-]", "", name).lower()


def split_part(name: str) -> str | None:
    """The mask that a name like `is_train`, `tr_mask` or `idx_train` stands for.

    None where the name does not sound like a part of a split.
    """
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.rstrip("?"))
    plain = re.sub(r"[\s._-]+", "_", apart).lower()
    # Without the separator, `in` would make a split of `invalid`.
    before = f"(?:(?:is|{_KIND})_?|(?:in|for|used_for)_)"
    for mask, words in _WORDS.items():
        either = f"(?:{words}|{_SHORT[mask]})"
        forms = (words, f"{before}{either}", f"(?:{before})?{either}_?(?:{_KIND})")
        if any(re.fullmatch(form, plain) for form in forms):
            return mask
    return None


def unnumbered(name: str) -> str:
    """A name without the number at its end."""
    return name.rstrip("0123456789_ -")


def column_part(name: str) -> str | None:
    """The mask that a column beside those of other parts stands for.

    Besides what `split_part` knows, that may be numbered or short: `train_0` or `tr`.
    """
    plain = unnumbered(name)
    return split_part(plain) or split_part(f"{plain}_mask")


def is_split_name(name: str) -> bool:
    """Whether a name is that of a split even where no other part is beside it.

    `train_set` and `is_train` are; `valid` and `is_test` may be ordinary features.
    """
    plain = unnumbered(name)
    kind = re.search("(?i)mask|msk|idx|index|indices|split|set", plain) is not None
    is_train = split_part(plain) == MASKS[0] and re.match("(?i)(is|in|for|used)", plain)
    return split_part(plain) is not None and (kind or bool(is_train))


def is_mask_name(name: str) -> bool:
    """Whether a name can only be that of a mask, like `train_mask` or `mask_val_3`."""
    plain = unnumbered(name)
    return re.search("(?i)mask|msk", plain) is not None and bool(split_part(plain))

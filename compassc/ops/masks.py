"""Constant mask forms: strings, lists and NumPy arrays of bools, as a bit pattern (lane i is bit i)."""

from __future__ import annotations

import re
from typing import TypeGuard

from compass_core.arrays import Array
from compass_core.errors import CompassError

_GROUP = re.compile(r"(\d*)([TF]+)")


def mask_error(message: str) -> CompassError:
    return CompassError(message, code="mask", help='write a mask as "3T5F", a list of bools, or a comparison')


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a value is an array or a scalar of NumPy, which is not loaded for the question."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and hasattr(value, "tolist")


def expand_mask_string(text: str) -> list[bool]:
    """The lanes of a mask string: groups of a count and a pattern, `4TF` = TFTFTFTF, `_` separates."""
    if len(text) < 2:
        raise mask_error(f"mask string {text!r} is shorter than 2 characters")
    if bad := re.search(r"[^TF_0-9]", text):
        raise mask_error(f"mask string {text!r} has the character {bad.group()!r}; only digits, T, F and _ are allowed")
    if text[-1] not in "TF":
        raise mask_error(f"mask string {text!r} must end in T or F")
    if text[0] == "_" or re.search(r"(?<![TF])_", text):
        raise mask_error(f"in mask string {text!r} each _ must follow T or F")
    lanes: list[bool] = []
    for part in text.split("_"):
        position = 0
        for group in _GROUP.finditer(part):
            count = int(group.group(1) or 1)
            if group.start() != position or count < 1:
                raise mask_error(f"mask string {text!r} has a count below 1")
            position = group.end()
            lanes += [letter == "T" for letter in group.group(2)] * count
    return lanes


def mask_lanes(value: object) -> list[bool] | None:
    """The lanes of a constant mask form; None when `value` is not one."""
    if isinstance(value, str):
        return expand_mask_string(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            if type(item) is not bool:
                raise mask_error(f"a mask list holds bools, got {type(item).__name__}")
        return list(value)
    if is_array(value):
        if value.dtype != bool or value.ndim != 1:
            raise mask_error(f"a mask array is 1-D of bool, got {value.ndim}-D of {value.dtype}")
        found: list[bool] = value.tolist()
        return found
    return None


def mask_bits(value: object, lanes: int) -> int:
    """Bit pattern of a constant mask form for `lanes` lanes; missing upper lanes are inactive."""
    found = mask_lanes(value)
    if found is None:
        raise mask_error(f"{type(value).__name__} is not a mask")
    if len(found) > lanes:
        raise mask_error(f"the mask has {len(found)} lanes, its vector {lanes}")
    return sum(1 << i for i, on in enumerate(found) if on)

"""Whether the arguments of a step are of the types that its signature says, before anything is done."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import Any

from compass_core.namedtuple import NamedTuple
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Expr


class Check(NamedTuple):
    """What an argument is: the words for it, and whether a value is one. `several`: a list or tuple of them."""

    words: str
    fits: Callable[[object], bool]
    several: bool = False


def _is_number(value: object) -> bool:
    return isinstance(value, (numbers.Integral, Expr)) and not isinstance(value, bool)


def _is_weight(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


_CHECKS: Mapping[str, Check] = {
    "int": Check("an int", _is_number),
    "str": Check("a str", lambda v: isinstance(v, str)),
    "bool": Check("a bool", lambda v: isinstance(v, numbers.Integral) and v in (0, 1)),
    "Sequence[int]": Check("an int", _is_number, several=True),
    "Sequence[float]": Check("a number", _is_weight, several=True),
    "Sequence[object]": Check("anything", lambda v: True, several=True),
}
_OPTIONAL = " | None"


def check_argument(step: str, name: str, annotation: str, value: Any, is_symbol: Callable[[object], bool]) -> None:
    """ExpressionTypeError for an argument that is not what the annotation of its parameter says; annotations without a
    check of their own hold for anything. `is_symbol`: whether a value stands for a number of the schedule."""
    optional = annotation.endswith(_OPTIONAL)
    check = _CHECKS.get(annotation.removesuffix(_OPTIONAL))
    if check is None or (optional and value is None):
        return
    if check.several and not isinstance(value, (list, tuple)):
        raise ExpressionTypeError(f"{step}: {name} is a list, got {type(value).__name__}")
    numbers_too = check.fits is _is_number
    for i, one in enumerate(value if check.several else [value]):
        if check.fits(one) or (numbers_too and is_symbol(one)) or (check.several and optional and one is None):
            continue
        what = f"{name}[{i}]" if check.several else name
        raise ExpressionTypeError(f"{step}: {what} is {check.words}, got {type(one).__name__}")

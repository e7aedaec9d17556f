"""Layouts of tensors: what the axes are, in order. `NCHW16c` has the channels in blocks of 16, which are the last axis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property

from compass_core.dataclass import dataclass
from compassc.ir.errors import ExpressionError
from compassc.operators.calls import CallOperator, X
from compassc.relay.types import Dim, Open

UNDEFINED = "__undef__"
_AXIS = re.compile(r"([A-Z])|([1-9][0-9]*)([a-z])")


@dataclass(frozen=True)
class Axis:
    """An axis: its letter, lower case for the inner part of a split axis, and how long that is (0 for the outer one)."""

    letter: str
    factor: int = 0

    @property
    def primal(self) -> str:
        """The letter of the axis that it is (a part of)."""
        return self.letter.upper()


@dataclass(frozen=True)
class Layout:
    """The axes of a layout, from the outermost on."""

    name: str
    axes: tuple[Axis, ...]

    @cached_property
    def primals(self) -> str:
        """The axes that are not parts of others, in order."""
        return "".join(a.letter for a in self.axes if not a.factor)

    def parts(self, primal: str) -> list[int]:
        """The places of an axis and of its parts, outermost first."""
        return self._places.get(primal, [])

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {a.primal: [] for a in self.axes}
        for n in sorted(range(len(self.axes)), key=lambda n: bool(self.axes[n].factor)):
            found[self.axes[n].primal].append(n)
        return found

    def index_of(self, letter: str) -> int:
        """The place of an axis, -1 where it is not there."""
        return next((n for n, a in enumerate(self.axes) if a.letter == letter), -1)

    def factor_of(self, letter: str) -> int:
        """How long the blocks of an axis are, -1 where it is not split."""
        found = [a.factor for a in self.axes if a.letter == letter.lower()]
        return found[0] if found else -1

    def __contains__(self, letter: str) -> bool:
        return self.index_of(letter) >= 0

    def __len__(self) -> int:
        return len(self.axes)


@cache
def layout(name: str) -> Layout:
    """The layout of a name. ExpressionError for a name that is none."""
    if name in ("", UNDEFINED):
        return Layout(name, ())
    axes: list[Axis] = []
    at = 0
    while at < len(name):
        found = _AXIS.match(name, at)
        if found is None:
            raise ExpressionError(
                f"'{name}' is no layout: '{name[at:]}' does not begin with an axis",
                "axes are upper-case letters, parts of them a length and the lower-case letter: NCHW16c",
            )
        upper, factor, lower = found.groups()
        axes.append(Axis(upper) if upper else Axis(lower, int(factor)))
        at = found.end()
    letters = [a.letter for a in axes]
    for n, a in enumerate(axes):
        if a.letter in letters[:n]:
            raise ExpressionError(f"layout '{name}' has axis {a.letter} twice")
        if a.primal not in letters:
            raise ExpressionError(f"layout '{name}' has blocks of {a.primal} without an axis {a.primal}")
    return Layout(name, tuple(axes))


def convertible(source: str, to: str) -> bool:
    """Whether tensors of one layout can be brought into the other: both have the same axes."""
    try:
        return set(layout(source).primals) == set(layout(to).primals)
    except ExpressionError:
        return False


def converted(shape: Sequence[Dim], source: str, to: str) -> list[Dim]:
    """A shape in another layout. Blocks that are not full are filled up."""
    old, new = layout(source), layout(to)
    if not convertible(source, to):
        raise ExpressionError(f"layout {source} cannot be converted to {to}", "both need the same axes")
    if len(shape) != len(old):
        raise ExpressionError(f"a shape of {len(shape)} dimensions has no layout {source}")
    whole = {p: _times([shape[n] for n in old.parts(p)]) for p in old.primals}
    made: list[Dim] = []
    for axis in new.axes:
        size = whole[axis.primal]
        block = 1
        for n in new.parts(axis.primal):
            block *= new.axes[n].factor or 1
        made.append(axis.factor or (-(-size // block) if isinstance(size, int) else Open() if block > 1 else size))
    return made


def _times(dims: Sequence[Dim]) -> Dim:
    if len(dims) == 1:
        return dims[0]
    found = 1
    for d in dims:
        if not isinstance(d, int):
            return Open()
        found *= d
    return found


def transform(call: CallOperator[X], x: X, shape: Sequence[int], source: str, to: str) -> X:
    """A tensor of a shape in another layout, in calls of operators of tensors. Blocks are filled up with zeros."""
    if source == to:
        return x
    old, new = layout(source), layout(to)
    made = converted(shape, source, to)
    order = [n for p in new.primals for n in old.parts(p)]
    if order != list(range(len(shape))):
        x = call("transpose", x, order)
    whole = {p: _times([shape[n] for n in old.parts(p)]) for p in new.primals}
    if len(old) > len(whole):
        x = call("reshape", x, list(whole.values()))
    after = [_times([made[n] for n in new.parts(p)]) - whole[p] for p in new.primals]  # type: ignore[operator]  # numbers
    if any(after):
        x = call("pad", x, [0] * len(after), after)
    inner = [n for p in new.primals for n in new.parts(p)]
    if len(inner) > len(whole):
        x = call("reshape", x, [made[n] for n in inner])
    back = [inner.index(n) for n in range(len(inner))]
    return call("transpose", x, back) if back != list(range(len(back))) else x

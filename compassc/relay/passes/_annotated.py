"""Regions: what lies between the annotations `compiler_begin` and `compiler_end` of one compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.relay.attributes import Attrs
from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.operators import op_name
from compassc.relay.visit import children, post_order

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"
DEFAULT = "default"
"""The compiler of what no other one takes."""
_CLOSED = ("Compiler", "Composite", "Primitive")


def is_closed(e: Expr) -> bool:
    """Whether an expression is a function that annotations stay out of: a kernel, composite, or for a compiler."""
    return isinstance(e, Function) and any(e.attrs.get(key) for key in _CLOSED)


def annotation(name: str, e: Expr, compiler: str) -> Call:
    """An expression with an annotation, which has its type."""
    made = call(name, e, compiler=compiler)
    return made.typed(e.checked_type) if e.checked_type_ is not None else made  # type: ignore[return-value]  # itself


def compiler_of(e: Expr) -> str:
    """The compiler of an annotation."""
    assert isinstance(e, Call) and isinstance(e.attrs, Attrs)
    return str(e.attrs["compiler"])


@dataclass(eq=False)
class Region:
    """What lies between annotations. `number` counts the beginnings before it, `begins` and `ends` are its annotations."""

    number: int
    compiler: str
    begins: list[Expr] = field(default_factory=list)
    ends: list[Expr] = field(default_factory=list)
    joined: Region | None = None

    def find(self) -> Region:
        """The region that this one has become a part of."""
        found = self
        while found.joined is not None:
            found = found.joined
        return found

    def join(self, other: Region) -> None:
        """Become a part of another region."""
        other.begins += self.begins
        other.ends += self.ends
        self.joined = other


class RegionSet:
    """The regions of an annotated expression, in the order of their first annotations."""

    def __init__(self, root: Expr) -> None:
        self._of: dict[int, Region] = {}
        self._all: list[Region] = []
        for e in post_order(root, is_closed):
            self._place(e)

    def _place(self, e: Expr) -> None:
        if op_name(e) == BEGIN:
            region = self._of[id(e)] = Region(len(self._all), compiler_of(e), [e])
            self._all.append(region)
            return
        open_ones = [self._of[id(c)].find() for c in children(e) if op_name(c) != END and id(c) in self._of]
        if not open_ones:
            return
        region = self._of[id(e)] = open_ones[0]
        for other in open_ones[1:]:
            if other.find() is not region.find():
                other.find().join(region)
        if op_name(e) == END:
            region.ends.append(e)

    def region_of(self, e: Expr) -> Region | None:
        """The region that an expression lies in, also one of its annotations."""
        found = self._of.get(id(e))
        return found.find() if found is not None else None

    def __iter__(self) -> Iterator[Region]:
        return (r for r in self._all if r.joined is None)


def sources(e: Expr) -> Iterator[Expr]:
    """The annotated values that an expression outside of regions consists of."""
    return (x for x in post_order(e, lambda x: op_name(x) == END) if op_name(x) == END)

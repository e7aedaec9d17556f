"""What partial evaluation knows of values, and when it goes on to follow calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TypeAlias

from compass_core.dataclass import dataclass
from compassc.relay.expr import Constant, Constructor, Expr, Function, Let, Tuple, Var
from compassc.relay.interpreter import ConstructorValue
from compassc.relay.operators import Op
from compassc.relay.type_visit import substituted
from compassc.relay.types import Type


@dataclass(eq=False)
class Region:
    """A scope of the program that is made. `depth`: of how many branches and functions it is a part that may not run. Bindings of a
    region that is `part_of` another one are among those of that one."""

    parent: Region | None = None
    depth: int = 0
    bindings: list[tuple[Var, Expr]] = field(default_factory=list)
    part_of: Region | None = None

    def whole(self) -> Region:
        """The region that its bindings stand in."""
        found = self
        while found.part_of is not None:
            found = found.part_of
        return found

    def within(self, other: Region) -> bool:
        """Whether what is bound in another region is defined here."""
        wanted = other.whole()
        at: Region | None = self
        while at is not None:
            at = at.whole()
            if at is wanted:
                return True
            at = at.parent
        return False

    def around(self, body: Expr) -> Expr:
        """An expression in the bindings."""
        for v, value in reversed(self.bindings):
            body = Let(v, value, body)
        return body


class Frame:
    """The values of the variables of one call, and the types that it gives type variables (by `id`)."""

    __slots__ = ("outer", "types", "values")

    def __init__(self, outer: Frame | None = None, types: dict[int, Type] | None = None) -> None:
        self.outer = outer
        self.values: dict[int, Known] = {}
        self.types: dict[int, Type] = {**(outer.types if outer is not None else {}), **(types or {})}

    def find(self, v: Var) -> Known | None:
        """The value of a variable."""
        frame: Frame | None = self
        while frame is not None:
            if id(v) in frame.values:
                return frame.values[id(v)]
            frame = frame.outer
        return None

    def typed(self, t: Type) -> Type:
        """A type in the terms of who calls."""
        return substituted(t, self.types) if self.types else t


class Closure:
    """A function with the values that it uses."""

    __slots__ = ("frame", "function")

    def __init__(self, function: Function, frame: Frame) -> None:
        self.function, self.frame = function, frame


class Cell:
    """A reference that was made here."""


class Data(ConstructorValue):
    """A value of a data type whose constructor is known."""

    __slots__ = ("size", "types")

    def __init__(self, constructor: Constructor, fields: Sequence[Known], types: Sequence[Type]) -> None:
        super().__init__(constructor.tag, fields, constructor)
        self.types = tuple(types)
        self.size = 1 + sum(f.size for f in fields)


Static: TypeAlias = "Constant | tuple[Known, ...] | Data | Closure | Cell | Op | Constructor | None"


class Known:
    """A value: what is known of it (`static`, None: nothing), and the atom that stands for it in a region and those within it,
    if there is one."""

    __slots__ = ("atom", "region", "size", "static")

    def __init__(self, static: Static = None, atom: Expr | None = None, region: Region | None = None) -> None:
        self.static, self.atom, self.region = static, atom, region
        self.size: int = 0 if static is None else 1
        if isinstance(static, Data):
            self.size = static.size
        elif isinstance(static, tuple):
            self.size = 1 + sum(f.size for f in static)

    def atom_in(self, region: Region) -> Expr | None:
        """The atom that stands for it in a region."""
        if self.region is None or region.within(self.region):
            return self.atom
        return None

    def constant(self) -> Expr | None:
        """It as a constant, or a tuple of constants."""
        if isinstance(self.static, Constant):
            return self.static
        if isinstance(self.static, tuple):
            fields = [f.constant() for f in self.static]
            return Tuple([f for f in fields if f is not None]) if None not in fields else None
        return None


def known(e: Expr) -> Known:
    """The value of a constant, or a tuple of constants."""
    if isinstance(e, Tuple):
        return Known(tuple([known(f) for f in e.fields]))
    return Known(e, e) if isinstance(e, Constant) else Known(atom=e)


@dataclass(eq=False)
class Activation:
    """A call of a function that is being followed. `unfolds`: its value takes the place of the call; else the function itself is
    being written, of arguments that are not known."""

    function: Function
    args: Sequence[Known]
    depth: int
    unfolds: bool

    def met_again(self, function: Function, args: Sequence[Known], depth: int) -> bool:
        """Whether a call within it is no step towards an end: of none of its arguments more or less is known, none is a smaller
        value of a data type, another function, or, where both calls run for certain, another constant."""
        return function is self.function and all(_no_step(a, b, depth == self.depth) for a, b in zip(self.args, args))


def _no_step(before: Known, now: Known, certain: bool) -> bool:
    a, b = before.static, now.static
    if type(a) is not type(b):
        return False
    if isinstance(a, Constant) and isinstance(b, Constant):
        return not certain or _same(a, b)
    if isinstance(a, Closure) and isinstance(b, Closure):
        return a.function is b.function
    if isinstance(a, (Op, Constructor)):
        return a is b
    return before.size <= now.size


def _same(a: Constant, b: Constant) -> bool:
    x, y = a.array, b.array
    return x is y or (x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes())

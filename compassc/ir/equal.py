"""Structural equality: the same program up to the names of variables and buffers. Spans do not count."""

from __future__ import annotations

import math
from typing import Any

from compass_core.errors import CompassError

from . import exprs as E
from . import stmts as S
from .dtypes import DataType, PointerType
from .node import Node

TOLERANCE = 1e-9
"""How far numbers may be apart."""
Path = str


class StructuralMismatch(CompassError, ValueError, AssertionError):
    """Two programs are not the same; the message says where."""


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False, *, exact: bool = False) -> bool:
    """Whether two nodes, bodies, functions or modules are the same program.

    Variables are paired where they are defined; a buffer that is met first defines its storage and the variables of its
    shape. Others must be identical or, with `map_free_vars`, stand at the same places everywhere. The order of
    annotations and attributes does not count. `exact`: floats have the same bits, else they may differ by `TOLERANCE`.
    """
    return _Compared(map_free_vars, exact).difference(lhs, rhs) is None


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """StructuralMismatch (a ValueError) with the place and both texts, unless two programs are the same."""
    found = get_first_structural_mismatch(lhs, rhs, map_free_vars)
    if found is not None:
        raise StructuralMismatch(f"not structurally equal at {found[0]}:\n{lhs}\n{rhs}", code="structural-equal")


def get_first_structural_mismatch(lhs: object, rhs: object, map_free_vars: bool = False) -> tuple[Path, Path] | None:
    """The place in each of two programs where they differ first, such as `<root>.body[0].value`; None where they do not."""
    found = _Compared(map_free_vars).difference(lhs, rhs)
    return None if found is None else (f"<root>{found}", f"<root>{found}")


def structural_hash(obj: object, map_free_vars: bool = False) -> int:
    """A number that equal programs share."""
    return hash(_shape(obj, {}, map_free_vars))


def _defined(node: Node) -> tuple[E.Var, ...]:
    """The variables that a node defines."""
    return node.params if isinstance(node, S.PrimFunc) else S.defined(node)


_COMPARED: dict[type[Node], tuple[tuple[str, bool], ...]] = {}
"""What `_compared` has found."""


def _compared(kind: type[Node]) -> tuple[tuple[str, bool], ...]:
    """The fields of a class that count, and whether they are annotations: not the names of blocks, as little as those of
    variables."""
    if kind in _COMPARED:
        return _COMPARED[kind]
    counted = [f for f in kind.declared if f.compared and not (f.name == "name_hint" and issubclass(kind, S.Block))]
    _COMPARED[kind] = tuple([(f.name, f.annotation == "Notes") for f in counted])
    return _COMPARED[kind]


class _Compared:
    """Compares two trees, pairing the variables of one with those of the other."""

    def __init__(self, map_free_vars: bool, exact: bool = False) -> None:
        self.map_free_vars, self.exact = map_free_vars, exact
        self.forward: dict[E.Var, E.Var] = {}
        self.backward: dict[E.Var, E.Var] = {}

    def difference(self, a: object, b: object) -> Path | None:
        """Where two trees differ first, behind their own place; None where they do not. Places are spelled on the way back,
        for trees are mostly equal."""
        if isinstance(a, Node):
            if isinstance(a, E.Var) and isinstance(b, E.Var):
                return None if self._paired(a, b) else ""
            if type(a) is type(b):
                return self._of_nodes(a, b)
        elif isinstance(a, tuple) and isinstance(b, tuple):
            for i, (x, y) in enumerate(zip(a, b)):
                found = self.difference(x, y)
                if found is not None:
                    return f"[{i}]{found}"
            return None if len(a) == len(b) else f"[{min(len(a), len(b))}]"
        return None if _same(a, b, self.exact) else ""

    def _of_nodes(self, a: Node, b: Node) -> Path | None:
        """As `difference`, of nodes of one class."""
        for x, y in zip(_defined(a), _defined(b)):
            self._pair(x, y)
        before = self.map_free_vars
        self.map_free_vars = before or isinstance(a, E.Buffer)
        for name, is_notes in _compared(type(a)):
            compare = self._of_notes if is_notes else self.difference
            found = compare(getattr(a, name), getattr(b, name))
            if found is not None:
                return f".{name}{found}"
        self.map_free_vars = before
        return None

    def _of_notes(self, a: Any, b: Any) -> Path | None:
        """As `difference`, of annotations, whose order does not count."""
        mine, theirs = dict(a), dict(b)
        for key in {**mine, **theirs}:
            if key not in mine or key not in theirs:
                return f"[{key!r}]"
            found = self.difference(mine[key], theirs[key])
            if found is not None:
                return f"[{key!r}]{found}"
        return None

    def _pair(self, a: E.Var, b: E.Var) -> None:
        self.forward[a], self.backward[b] = b, a

    def _paired(self, a: E.Var, b: E.Var) -> bool:
        if a.dtype is not b.dtype or a.nonneg != b.nonneg:
            return False
        if a in self.forward or b in self.backward:
            return self.forward.get(a) is b and self.backward.get(b) is a
        if self.map_free_vars:
            self._pair(a, b)
        return a is b or self.map_free_vars


def _same(a: object, b: object, exact: bool) -> bool:
    """Whether two plain values are the same."""
    if isinstance(a, (DataType, PointerType)):
        return a is b
    if isinstance(a, float) and isinstance(b, float):
        if exact:
            return repr(a) == repr(b)
        return a == b or abs(a - b) <= TOLERANCE or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and a == b


def _shape(value: object, places: dict[E.Var, int], map_free_vars: bool) -> object:
    """What two equal programs have in common, with variables by the order in which they are defined."""
    if isinstance(value, E.Var):
        if map_free_vars or value in places:
            return str(value.dtype), places.setdefault(value, len(places))
        return value
    if isinstance(value, (tuple, list)):
        return tuple([_shape(x, places, map_free_vars) for x in value])
    if isinstance(value, dict):
        return tuple([(k, _shape(x, places, map_free_vars)) for k, x in sorted(value.items())])
    if isinstance(value, Node):
        for v in _defined(value):
            places[v] = len(places)
        map_free_vars = map_free_vars or isinstance(value, E.Buffer)
        parts = ((is_notes, getattr(value, name)) for name, is_notes in _compared(type(value)))
        return type(value).__name__, *(
            _shape(dict(x) if is_notes else x, places, map_free_vars) for is_notes, x in parts
        )
    return "float" if isinstance(value, float) else value

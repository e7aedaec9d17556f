"""The register width in which each mask variable is kept.

A mask has lanes but no element width; the data it is used with decides into how many registers it is cut. The width of
a mask variable is the number of lanes of one register of that data (8, 16 or 32). It comes from the comparison that
makes the mask, else from the first operation that uses it, in program order; through `&`, `|`, `~` and copies it
spreads to the masks a mask was computed from. A variable assigned from itself is no problem: each gets a width once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.visit import walk_exprs, walk_stmts
from ..ops import spelling

WIDTHS = (8, 16, 32)


def register_width(lanes: int) -> int:
    """The narrowest register that holds `lanes` lanes of a mask; the widest when none does."""
    return next((w for w in WIDTHS if lanes <= w), WIDTHS[-1])


class MaskTypes:
    """The register width of every mask variable of a module."""

    def __init__(self, module: S.IRModule) -> None:
        self.of: dict[E.Var, int] = {}
        self._values: dict[E.Var, list[E.Expr]] = {}
        self._functions = {f.name: f for f in module.functions}
        self._done: set[str] = set()
        for f in module.functions:
            self._function(f)

    def width(self, mask: E.Expr) -> int:
        """The register width of a mask: that of its variables or comparison, else the narrowest it fits in."""
        return self._natural(mask) or register_width(mask.dtype.lanes)

    def _function(self, f: S.PrimFunc) -> None:
        if f.name in self._done:
            return
        self._done.add(f.name)
        statements = list(walk_stmts(f.body))
        for s in statements:
            if isinstance(s, (S.Let, S.Assign)) and s.var.dtype.is_mask:
                self._values.setdefault(s.var, []).append(s.value)
        if not self._values and not any(p.dtype.is_mask for p in f.params):
            return
        for s in statements:
            if isinstance(s, (S.Let, S.Assign)) and s.var.dtype.is_mask:
                self._record(s.var, self._natural(s.value))
            for root in s.exprs():
                if root.flags & (E.F_VECTOR | E.F_FUNC):
                    self._uses(root)

    def _uses(self, root: E.Expr) -> None:
        for e in walk_exprs(root, E.F_CALL | E.F_FUNC):
            if type(e) is E.Call:
                for mask, width in _masks_of(e):
                    self._record(mask, width)
            elif type(e) is E.FuncCall and e.func in self._functions:
                self._function(self._functions[e.func])
                for param, arg in zip(self._functions[e.func].params, e.args, strict=False):
                    if param.dtype.is_mask:
                        self._record(arg, self.width(param))

    def _record(self, mask: E.Expr, width: int | None) -> None:
        """Record a width for a mask and for the masks it is computed from; a width recorded earlier is kept."""
        pending = [mask] if width is not None else []
        while pending:
            e = pending.pop()
            if type(e) is E.Var:
                if e not in self.of and width is not None:
                    self.of[e] = width
                    pending += self._values.get(e, ())
            elif type(e) is not E.Call or not _is_comparison(e):
                pending += [c for c in e.children() if c.dtype.is_mask]

    def _natural(self, mask: E.Expr) -> int | None:
        """The width that a mask has by the way it is computed; None for constants and unknown variables."""
        for e in walk_exprs(mask):
            if type(e) is E.Var and e in self.of:
                return self.of[e]
            if type(e) is E.Call and _is_comparison(e):
                return e.args[0].dtype.native_lanes
        return None


def _is_comparison(e: E.Call) -> bool:
    return e.dtype.is_mask and bool(e.args) and e.args[0].dtype.is_vector and not e.args[0].dtype.is_mask


def _masks_of(e: E.Call) -> Iterator[tuple[E.Expr, int]]:
    """The masks of a call that works on data, with the lanes of one register of that data."""
    if e.mask is None:
        return
    data = spelling.mask_dtype(e)
    if data.is_vector and not data.is_mask:
        yield e.mask, data.native_lanes

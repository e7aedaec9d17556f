"""The role of each kernel parameter: input, output, constant, descriptor or attribute; and whether an output is read.

A pointer's possible origins are tracked flow-insensitively: every definition and assignment of a pointer variable adds
to the set of parameters it may derive from. That is a superset of the real origins, which is the safe side.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import PointerType
from ..ir.visit import placed_exprs, walk_stmts
from ..ops.effects import touched

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import ParamFields

DESCRIPTOR_OPS = ("aiff", "async_aiff")


@dataclass
class Summary:
    """Parameter positions of a function that it writes, reads, uses as descriptors, or may return."""

    writes: set[int] = field(default_factory=set)
    reads: set[int] = field(default_factory=set)
    descriptors: set[int] = field(default_factory=set)
    returns: set[int] = field(default_factory=set)


class _Analysis:
    def __init__(self, module: S.IRModule) -> None:
        self.functions = {f.name: f for f in module.functions}
        self.summaries: dict[str, Summary] = {}

    def summary(self, name: str) -> Summary:
        if name not in self.summaries:
            self.summaries[name] = Summary()  # recursion is refused by the parser; this ends it anyway
            self.summaries[name] = self._summarize(self.functions[name])
        return self.summaries[name]

    def _summarize(self, f: S.PrimFunc) -> Summary:
        origins: dict[E.Var, set[int]] = {p: {i} for i, p in enumerate(f.params) if isinstance(p.dtype, PointerType)}
        statements = list(walk_stmts(f.body))
        moves = [s for s in statements if isinstance(s, (S.Let, S.Assign)) and isinstance(s.var.dtype, PointerType)]
        changed = True
        while changed:
            changed = False
            for move in moves:
                known = origins.setdefault(move.var, set())
                found = self.origins(move.value, origins)
                if not found <= known:
                    known |= found
                    changed = True
        result = Summary()
        for s in statements:
            self._statement(s, f, origins, result)
        return result

    def origins(self, e: E.Expr, known: dict[E.Var, set[int]]) -> set[int]:
        """Parameter positions a pointer expression may derive from."""
        if type(e) is E.Var:
            return known.get(e, set())
        if type(e) is E.Pointer:
            return self.origins(e.base, known)
        if type(e) is E.FuncCall:
            returned = self.summary(e.func).returns
            return set().union(*(self.origins(e.args[i], known) for i in returned))
        if isinstance(e, (E.Reinterpret, E.Select)):
            return set().union(*(self.origins(c, known) for c in e.children()))
        return set()

    def _statement(self, s: S.Stmt, f: S.PrimFunc, known: dict[E.Var, set[int]], out: Summary) -> None:
        if type(s) is S.BufferStore:
            out.writes |= known.get(s.buffer.data, set())
        if type(s) is S.Return and s.value is not None and isinstance(f.ret_type, PointerType):
            found = self.origins(s.value, known)
            if not found:
                raise CompassError(
                    f"{f.name} returns a stack pointer: its own storage ends with it",
                    s.span,
                    code="return-local",
                    help="let the caller allocate it and pass the pointer",
                )
            out.returns |= found
        for e in placed_exprs(s):
            self._expr(e, known, out)

    def _expr(self, e: E.Expr, known: dict[E.Var, set[int]], out: Summary) -> None:
        if type(e) is E.BufferLoad:
            out.reads |= known.get(e.buffer.data, set())
        elif type(e) is E.Call:
            for index, kind, _ in touched(e):
                found = self.origins(e.args[index], known)
                if kind == "w":
                    out.writes |= found
                else:
                    out.reads |= found
            if e.op in DESCRIPTOR_OPS:
                for a in e.args[:3]:
                    out.descriptors |= self.origins(a, known)
        elif type(e) is E.FuncCall:
            inner = self.summary(e.func)
            for name in ("writes", "reads", "descriptors"):
                for i in getattr(inner, name):
                    getattr(out, name).update(self.origins(e.args[i], known))


def parameters(module: S.IRModule) -> list[ParamFields]:
    """The `params` of NAME.params.json for the module's entry function. Values, and shapes not given by S.match_buffer, are unknown yet."""
    entry = module.entry_func
    summary = _Analysis(module).summary(module.entry)
    shapes = entry.attr("shapes", {})
    counts: dict[str, int] = {}
    out: list[ParamFields] = []
    for i, p in enumerate(entry.params):
        if not isinstance(p.dtype, PointerType):
            out.append({"name": p.name, "kind": "scalar", "dtype": str(p.dtype), "role": "attr", "value": None})
            continue
        role = _role(i, p, summary, entry)
        index = counts.get(role, 0)
        counts[role] = index + 1
        shape, dims = _dims(p, shapes)
        out.append(
            {
                "name": p.name,
                "kind": "pointer",
                "dtype": str(p.dtype.elem),
                "scope": p.dtype.scope,
                "role": role,
                "index": index,
                "read": i in summary.reads,
                "shape": shape,
            }
        )
        if dims is not None:
            out[-1]["dims"] = dims
    return out


def _role(i: int, p: E.Var, summary: Summary, entry: S.PrimFunc) -> str:
    if i in summary.descriptors:
        if str(p.pointer_type.elem) not in ("uint32", "int32"):
            raise CompassError(
                f"descriptor parameter {p.name!r} of {entry.name} points to {p.pointer_type.elem}; it must be uint32 or int32",
                entry.span,
                code="descriptor",
                help='declare it as S.ptr("uint32", ...)',
            )
        return "descriptor"
    if i in summary.writes:
        return "output"
    return "const" if p.pointer_type.scope == "global.1" else "input"


def _dims(p: E.Var, shapes: dict[str, list[int | str | None]]) -> tuple[list[int] | None, list[int | str] | None]:
    """The shape S.match_buffer gave: `shape` when constant, else `dims` with names of scalar parameters."""
    dims = shapes.get(p.name)
    known = [d for d in dims or () if d is not None]
    if dims is None or len(known) < len(dims):
        return None, None
    if p.pointer_type.elem.is_vector:
        known.append(p.pointer_type.elem.lanes)
    sizes = [d for d in known if isinstance(d, int)]
    if len(sizes) == len(known):
        return sizes, None
    return None, known

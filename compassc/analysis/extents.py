"""Slicing a kernel down to the program of `compass_core.extents`: what its addresses depend on."""

from __future__ import annotations

from typing import Any

from compass_core.extents import fold

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import DataType, PointerType
from ..ir.visit import walk_exprs
from ..ops.effects import accesses

UNKNOWN = ["?"]


class _Slicer:
    """Turns one function into statements of the extents program, keeping everything scalar."""

    def __init__(self, f: S.PrimFunc) -> None:
        self.names: dict[E.Var, str] = {}
        self.taken: set[str] = set()
        self.f = f
        self.params = [self.name(p) for p in f.params]

    def name(self, v: E.Var) -> str:
        found = self.names.get(v)
        if found is None:
            found, n = v.name, 0
            while found in self.taken:
                n += 1
                found = f"{v.name}~{n}"
            self.taken.add(found)
            self.names[v] = found
        return found

    # -- expressions

    def expr(self, e: E.Expr) -> Any:
        """The JSON of a scalar expression; data-dependent parts become unknown."""
        method = _EXPRS.get(type(e))
        return UNKNOWN if method is None else method(self, e)

    def _cast(self, e: E.Cast) -> Any:
        inner = self.expr(e.value)
        if e.dtype.is_integer and not e.dtype.is_bool:
            return ["int", inner] if e.value.dtype.is_floating else inner
        return inner if e.dtype.is_bool else ["float", inner]

    def _call(self, e: E.Call) -> Any:
        if e.op == "get_local_id":
            return ["tid"]
        if e.op == "get_local_size":
            return ["tecs"]
        if e.op in ("ceildiv", "max", "min", "abs") and e.dtype.is_scalar:
            return fold(e.op, *map(self.expr, e.args))
        return UNKNOWN

    def _pointer(self, e: E.Pointer) -> Any:
        if type(e.base) is E.AddressOf:
            return ["local"]
        offset = self.expr(e.offset)
        size = e.elem.total_bytes if e.elem.bits else 0
        return ["addr", self.expr(e.base), fold("mul", offset, size)]

    # -- statements

    def body(self, body: S.Body) -> list[Any]:
        out: list[Any] = []
        for s in body:
            for root in s.exprs():
                if root.flags & (E.F_CALL | E.F_LOAD | E.F_FUNC):
                    self._accesses(root, out)
            self._statement(s, out)
        return out

    def _accesses(self, root: E.Expr, out: list[Any]) -> None:
        for e in walk_exprs(root):
            if type(e) is E.Load:
                self._element(e.buffer, e.indices, out)
            elif type(e) is E.Call:
                for first, size in accesses(e, self.mask_count):
                    out.append(["access", self.expr(first), 0, self.extent(size)])
            elif type(e) is E.FuncCall:
                out.append(["do", self._function(e)])

    def extent(self, size: Any) -> Any:
        """A byte count given as an int, an expression, or an operator list over them."""
        if isinstance(size, E.Expr):
            return self.expr(size)
        if isinstance(size, list):
            return fold(size[0], *map(self.extent, size[1:]))
        return size

    def mask_count(self, mask: Any, lanes: int) -> Any:
        """How many leading lanes a mask can reach."""
        if type(mask) is E.ConstMask:
            return mask.bits.bit_length()
        if type(mask) is E.TailMask:
            return ["max", 0, ["min", mask.count, lanes]]
        if type(mask) is E.Var and mask in self.names:
            return ["min", mask, lanes]
        return lanes

    def _element(self, buffer: E.Buffer, indices: tuple[E.Expr, ...], out: list[Any]) -> None:
        size = buffer.dtype.total_bytes
        index: Any = 0
        for k, i in enumerate(indices):
            lanes = i.dtype.lanes
            one = self.expr(i.base) if type(i) is E.Ramp else self.expr(i)
            if type(i) is E.Ramp:
                one = fold("add", one, fold("mul", self.expr(i.stride), lanes - 1))
            if len(indices) > 1:
                index = fold("add", fold("mul", index, self.expr(buffer.shape[k])), one)
            else:
                index = one
        out.append(["access", self.name(buffer.data), fold("mul", index, size), size])

    def _function(self, e: E.FuncCall) -> Any:
        return ["call", e.func, *map(self.expr, e.args)]

    def _statement(self, s: S.Stmt, out: list[Any]) -> None:
        kind = type(s)
        if kind in (S.Let, S.Assign):
            self._define(s, out, "let" if kind is S.Let else "set")
        elif kind is S.Store:
            self._element(s.buffer, s.indices, out)
        elif kind in (S.Alloc, S.AllocConst):
            out.append(["let", self.name(s.buffer.data), ["local"]])
        elif kind is S.If:
            out.append(["if", self.expr(s.cond), self.body(s.then), self.body(s.orelse)])
        elif kind is S.For:
            self._for(s, out)
        elif kind is S.While:
            out.append(["while", self.expr(s.cond), self.body(s.body)])
        elif kind is S.Break:
            out.append(["break"])
        elif kind is S.Return:
            out.append(["return", None if s.value is None or s.value.dtype.is_vector else self.expr(s.value)])

    def _define(self, s: Any, out: list[Any], word: str) -> None:
        kind = s.var.dtype
        if isinstance(kind, PointerType) or (isinstance(kind, DataType) and kind.is_scalar):
            out.append([word, self.name(s.var), self.expr(s.value)])
        elif kind.is_mask and type(s.value) is E.TailMask:
            out.append([word, self.name(s.var), self.extent(["max", 0, s.value.count])])
        elif s.var in self.names:  # a mask that stops being a tail mask
            out.append([word, self.name(s.var), kind.lanes])

    def _for(self, s: Any, out: list[Any]) -> None:
        start, stop, var = self.expr(s.start), self.expr(s.stop), self.name(s.var)
        if s.kind == "tec":
            out.append(["tec", var, start, stop, self.body(s.body)])
        else:
            out.append(["for", var, start, stop, self.expr(s.step), self.body(s.body)])


_EXPRS: dict[type, Any] = {
    E.Var: _Slicer.name,
    E.IntImm: lambda m, e: e.value,
    E.FloatImm: lambda m, e: e.value,
    E.Cast: _Slicer._cast,
    E.Binary: lambda m, e: fold(e.op, m.expr(e.a), m.expr(e.b)),
    E.Unary: lambda m, e: [e.op, m.expr(e.a)],
    E.Select: lambda m, e: fold("select", m.expr(e.cond), m.expr(e.a), m.expr(e.b)),
    E.Call: _Slicer._call,
    E.FuncCall: _Slicer._function,
    E.Pointer: _Slicer._pointer,
}


def _used(e: Any, into: set[str]) -> None:
    if isinstance(e, str):
        into.add(e)
    elif isinstance(e, list):
        for x in e[1:]:
            _used(x, into)


def _prune(body: list[Any], needed: set[str]) -> list[Any]:
    """The body without definitions nobody needs, and without branches and loops that do nothing."""
    out: list[Any] = []
    for s in reversed(body):
        kind = s[0]
        if kind in ("let", "set"):
            if s[1] not in needed and not _calls(s[2]):
                continue
            _used(s[2], needed)
        elif kind in ("if", "for", "tec", "while"):
            s = _prune_nested(s, needed)
            if s is None:
                continue
        else:
            for x in s[1:]:
                _used(x, needed)
        out.append(s)
    return out[::-1]


def _prune_nested(s: list[Any], needed: set[str]) -> list[Any] | None:
    first_body = {"if": 2, "for": 5, "tec": 4, "while": 2}[s[0]]
    loop = s[0] in ("for", "while")
    before = -1
    bodies: list[Any] = []
    while before != len(needed):  # a loop's body may need what the body itself sets
        before = len(needed)
        bodies = [_prune(b, needed) for b in s[first_body:]]
        if not any(bodies):
            return None
        head = s[1:first_body] if s[0] in ("if", "while") else s[2:first_body]
        for x in head:
            _used(x, needed)
        if not loop:
            break
    return [*s[:first_body], *bodies]


def _calls(e: Any) -> bool:
    return isinstance(e, list) and (e[0] == "call" or any(_calls(x) for x in e[1:]))


def program(module: S.IRModule) -> dict[str, Any]:
    """The extents program of a lowered module, for `compass_core.extents.evaluate`."""
    functions = {}
    for f in module.functions:
        slicer = _Slicer(f)
        body = slicer.body(f.body)
        functions[f.name] = {"params": slicer.params, "body": _prune(body, set())}
    params = {}
    for p in module.entry_func.params:
        if isinstance(p.dtype, PointerType):
            params[p.name] = max(1, p.dtype.elem.bytes)
    return {"entry": module.entry, "params": params, "functions": functions}

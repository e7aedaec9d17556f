"""Slicing a kernel down to the program of `compass_core.extents`: what its addresses depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import cast

from compass_core.extents import fold
from compass_core.extents.structure import Code, Function, Program, Term
from compass_core.operators import wrap

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, DataType, PointerType
from ..ir.names import NamePool
from ..ir.rules import method, table
from ..ir.visit import all_exprs
from ..ops.effects import Extent, accesses
from . import prefetches

UNKNOWN: Term = ["?"]
_RING = frozenset(("add", "sub", "mul", "shl"))
"""Operators whose operands need not be cut to their type where their result is."""
_SMALL = 8
"""Bits of data that are an index with useful bounds: that of a table."""


class _Slicer:
    """Turns one function into statements of the extents program, keeping everything scalar."""

    def __init__(self, f: S.PrimFunc, scopes: AbstractSet[str]) -> None:
        self.scopes = scopes
        """The memory that the kernel's parameters point to: accesses elsewhere are of its own arrays."""
        self.names: dict[E.Var, str] = {}
        self.pool = NamePool(variant="{}~{}".format)
        self.f = f
        self.addressed = {e.var for e in all_exprs(f.body, E.F_POINTER) if type(e) is E.AddressOf}
        """Variables that stores through pointers may change: their values are not followed."""
        self.left: list[str | None] = [None]  # of the loops around: the variable that says that a break left it
        self.params = [self.name(p) for p in f.params]

    def name(self, v: E.Var) -> str:
        found = self.names.get(v)
        if found is None:
            found = self.names[v] = self.pool.take(v.name)
        return found

    # -- expressions

    def expr(self, e: E.Expr) -> Term:
        """The JSON of a scalar expression; data-dependent parts become unknown."""
        method = _EXPRS.get(type(e))
        return _data(e.dtype) if method is None else method(self, e)

    def _cast(self, e: E.Cast) -> Term:
        inner, source, to = self.expr(e.value), e.value.data_type, e.dtype
        if inner == UNKNOWN or not to.is_scalar:
            return _data(to)
        if to.is_bool:
            return inner if source.is_bool else ["ne", inner, 0]
        if to.is_floating:
            return ["float", inner] if to == "float32" else UNKNOWN
        low, high = to.range()
        if source.is_floating:
            low, high = (to if to.bits >= 32 else INT32).range()  # smaller types take the low bits of an int32
            whole: Term = ["max", low, ["min", high, ["int", inner]]]
            return whole if to.bits >= 32 else [_cut_name(to), whole]
        if source.is_bool or (source.range()[0] >= low and source.range()[1] <= high):
            return inner
        # a name, too, which has the range of the type it is cast from
        return _cut(inner, to) if isinstance(inner, int) else [_cut_name(to), inner]

    def _binary(self, e: E.Binary) -> Term:
        kind = e.a.dtype
        if kind.is_floating and kind != "float32":
            return _data(e.dtype)
        if e.op in _RING and kind.is_integer and not kind.is_bool:
            return _cut(self._ring(e), e.a.data_type)
        return fold(e.op, self.expr(e.a), self.expr(e.b))

    def _ring(self, e: E.Expr) -> Term:
        """A sum or product before it is cut to its type."""
        if type(e) is not E.Binary or e.op not in _RING:
            return self.expr(e)
        amount = self._ring(e.b) if e.op != "shl" else fold("bitand", self.expr(e.b), 31)
        return fold(e.op, self._ring(e.a), amount)

    def _unary(self, e: E.Unary) -> Term:
        inner = self.expr(e.a)
        if e.op != "bitnot":
            return [e.op, inner]
        return ["not", inner] if e.dtype.is_bool else _cut(["bitnot", inner], e.data_type)

    def _call(self, e: E.Call) -> Term:
        if e.op == "get_local_id":
            return ["tid"]
        if e.op == "get_local_size":
            return ["tecs"]
        if e.op == "abs" and e.dtype.is_scalar and e.dtype.is_integer:
            return _cut(["abs", self.expr(e.args[0])], e.data_type)  # the least number stays what it is
        if e.op in ("ceildiv", "max", "min", "abs") and e.dtype.is_scalar:
            return [e.op, *map(self.expr, e.args)]
        return _data(e.dtype)

    def _pointer(self, e: E.Pointer) -> Term:
        if type(e.base) is E.AddressOf:
            return ["local"]
        offset = self.expr(e.offset)
        size = e.elem.total_bytes if e.elem.bits else 0
        return ["addr", self.expr(e.base), fold("mul", offset, size)]

    # -- statements

    def body(self, body: S.Body) -> list[Code]:
        out: list[Code] = []
        for s in body:
            for root in s.exprs():
                if root.flags & (E.F_CALL | E.F_LOAD | E.F_FUNC):
                    self._accesses(root, out)
            self._statement(s, out)
        return out

    def _accesses(self, root: E.Expr, out: list[Code]) -> None:
        stack = [root]
        while stack:
            e = stack.pop()
            if not e.flags & (E.F_CALL | E.F_LOAD | E.F_FUNC):
                continue
            if type(e) is E.Select and e.condition.dtype.is_scalar:
                stack.append(e.condition)
                self._chosen(e.condition, e.true_value, e.false_value, out)
                continue
            if type(e) is E.Binary and e.op in E.LOGICAL:  # the left side may decide
                stack.append(e.a)
                then, other = (e.b, None) if e.op == "and" else (None, e.b)
                self._chosen(e.a, then, other, out)
                continue
            stack.extend(reversed(e.children()))
            if type(e) is E.BufferLoad:
                self._element(e.buffer, e.indices, e.mask, out)
            elif type(e) is E.Call:
                for first, size in accesses(e, self.mask_count):
                    if self._outside(first.dtype):
                        out.append(["access", self.expr(first), 0, self.extent(size)])
            elif type(e) is E.FuncCall:
                out.append(["do", self._function(e)])

    def _outside(self, pointer: object) -> bool:
        return not isinstance(pointer, PointerType) or pointer.scope in self.scopes

    def _chosen(self, cond: E.Expr, then: E.Expr | None, other: E.Expr | None, out: list[Code]) -> None:
        """The accesses of expressions of which one is evaluated."""
        sides: list[list[Code]] = [[], []]
        for e, side in zip((then, other), sides):
            if e is not None:
                self._accesses(e, side)
        if any(sides):
            out.append(["if", self.expr(cond), *sides])

    def extent(self, size: Extent) -> Term:
        """A byte count given as an int, an expression, or an operator list over them."""
        if isinstance(size, E.Expr):
            return self.expr(size)
        if isinstance(size, list):
            return fold(size[0], *map(self.extent, size[1:]))
        return cast(Term, size)

    def mask_count(self, mask: object, lanes: int) -> Extent:
        """The number of lanes up to the last one that a mask may activate."""
        if mask is None:
            return lanes
        if type(mask) is E.ConstMask:
            return mask.bits.bit_length()
        if type(mask) is E.TailMask:
            return ["max", 0, ["min", mask.count, lanes]]
        if type(mask) is E.Var and mask in self.names:
            return ["min", mask, lanes]
        return ["between", 0, lanes]

    def _element(self, buffer: E.Buffer, indices: tuple[E.Expr, ...], mask: object, out: list[Code]) -> None:
        """A subscript, or a vector of them where the last index is a Ramp."""
        if not self._outside(buffer.data.dtype):
            return
        size: Term = buffer.dtype.total_bytes
        index: Term = 0
        for k, i in enumerate(indices):
            one = self.expr(i.base if type(i) is E.Ramp else i)
            if len(indices) > 1:
                index = fold("add", fold("mul", index, self.expr(buffer.shape[k])), one)
            else:
                index = one
        first, last = fold("mul", index, size), indices[-1]
        if type(last) is E.Ramp:
            reach = self.extent(self.mask_count(mask, last.dtype.lanes))
            steps = fold("mul", fold("sub", reach, 1), self.expr(last.stride))
            span = fold("mul", fold("max", 1, fold("add", steps, 1)), size)
            size = fold("select", fold("gt", reach, 0), span, 0)
        out.append(["access", self.name(buffer.data), first, size])

    def _function(self, e: E.FuncCall) -> Term:
        return ["call", e.func, *map(self.expr, e.args)]

    def _statement(self, s: S.Stmt, out: list[Code]) -> None:
        if isinstance(s, (S.Let, S.Assign)):
            self._define(s, out, "let" if type(s) is S.Let else "set")
        elif type(s) is S.BufferStore:
            self._element(s.buffer, s.indices, s.mask, out)
        elif isinstance(s, (S.Alloc, S.AllocConst)):
            out.append(["let", self.name(s.buffer.data), ["local"]])
        elif type(s) is S.IfThenElse:
            out.append(["if", self.expr(s.condition), self.body(s.then_case), self.body(s.else_case or ())])
        elif type(s) is S.For:
            self._for(s, out)
        elif type(s) is S.While:
            out.append(["while", self.expr(s.condition), self._turn(s.body)])
        elif type(s) is S.Break:
            if self.left[-1] is not None:
                out.append(["set", self.left[-1], 1])
            out.append(["break"])
        elif type(s) is S.Continue:
            out.append(["break"])
        elif type(s) is S.Return:
            out.append(["return", None if s.value is None or s.value.dtype.is_vector else self.expr(s.value)])

    def _define(self, s: S.Let | S.Assign, out: list[Code], word: str) -> None:
        kind = s.var.dtype
        if isinstance(kind, PointerType) or (isinstance(kind, DataType) and kind.is_scalar):
            out.append([word, self.name(s.var), self.expr(s.value)])
        elif kind.is_mask and type(s.value) is E.TailMask:
            out.append([word, self.name(s.var), self.extent(["max", 0, s.value.count])])
        elif s.var in self.names:  # a mask that stops being a tail mask
            out.append([word, self.name(s.var), ["between", 0, kind.lanes]])

    def _for(self, s: S.For, out: list[Code]) -> None:
        start, stop, var = self.expr(s.min), self.expr(s.stop), self.name(s.loop_var)
        if s.kind == "tec":
            out.append(["tec", var, start, stop, self.body(s.body)])
        else:
            out.append(["for", var, start, stop, self.expr(s.step), self._turn(s.body)])

    def _turn(self, body: S.Body) -> list[Code]:
        """The body of a loop. One that a `continue` ends is a loop of one turn itself, which the `continue` leaves; a
        `break` leaves that too, and says so."""
        jumps = set(_own_jumps(body))
        if S.Continue not in jumps:
            self.left.append(None)
            made = self.body(body)
        else:
            left = self.name(E.Var("left", INT32)) if S.Break in jumps else None
            self.left.append(left)
            made = [["for", self.name(E.Var("turn", INT32)), 0, 1, 1, self.body(body)]]
            if left is not None:
                made = [["let", left, 0], *made, ["if", ["ne", left, 0], [["break"]], []]]
        self.left.pop()
        return made


def _own_jumps(body: S.Body) -> Iterator[type]:
    """The kinds of jumps (Break, Continue) in a loop's body that are of that loop."""
    for s in body:
        if isinstance(s, (S.Break, S.Continue)):
            yield type(s)
        elif s.flags & E.F_JUMP and not isinstance(s, (S.For, S.While)):
            for inner in s.bodies():
                yield from _own_jumps(inner)


_EXPRS: dict[type, Callable[[_Slicer, E.Expr], Term]] = table(
    method(E.Var, lambda m, e: _data(e.dtype) if e in m.addressed else m.name(e)),
    method(E.IntImm, lambda m, e: e.value),
    method(E.FloatImm, lambda m, e: e.value),
    method(E.Cast, _Slicer._cast),
    method(E.Binary, _Slicer._binary),
    method(E.Unary, _Slicer._unary),
    method(E.Select, lambda m, e: fold("select", m.expr(e.condition), m.expr(e.true_value), m.expr(e.false_value))),
    method(E.Call, _Slicer._call),
    method(E.FuncCall, _Slicer._function),
    method(E.Pointer, _Slicer._pointer),
)


def _data(dtype: object) -> Term:
    """A number that depends on data."""
    if isinstance(dtype, DataType) and dtype.is_scalar and dtype.is_integer and dtype.bits <= _SMALL:
        return ["?", 0, 1] if dtype.is_bool else ["?", *dtype.range()]
    return UNKNOWN


def _cut(e: Term, dtype: DataType) -> Term:
    """The value a type holds of the result of whole-number arithmetic on its values; a name has one already."""
    if type(e) is int:
        return wrap(e, dtype.bits, dtype.is_int)
    return e if isinstance(e, str) else [_cut_name(dtype), e]


def _cut_name(dtype: DataType) -> str:
    """The operator that cuts whole numbers to a type."""
    return f"{'i' if dtype.is_int else 'u'}{dtype.bits}"


def _used(e: object, into: set[str]) -> None:
    if isinstance(e, str):
        into.add(e)
    elif isinstance(e, list):
        for x in e[1:]:
            if type(x) is not int:
                _used(x, into)


_FIRST_BODY = {"if": 2, "for": 5, "tec": 4, "while": 2}
"""Where the bodies of a statement of the extents program begin."""


def _prune(body: list[Code], needed: set[str]) -> list[Code]:
    """The body without unused definitions and without empty branches and loops."""
    out: list[Code] = []
    for s in reversed(body):
        kind = s[0]
        if kind in ("let", "set"):
            if s[1] not in needed and not _calls(s[2]):
                continue
            _used(s[2], needed)
        elif kind in ("if", "for", "tec", "while"):
            pruned = _prune_nested(s, needed)
            if pruned is None:
                continue
            s = pruned
        else:
            for x in s[1:]:
                _used(x, needed)
        out.append(s)
    return out[::-1]


def _prune_nested(s: Code, needed: set[str]) -> Code | None:
    first_body = _FIRST_BODY[s[0]]
    loop = s[0] in ("for", "while")
    before = -1
    bodies: list[list[Code]] = []
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


def _drop_idle_calls(functions: dict[str, Function]) -> bool:
    """Take out the calls of functions that access nothing of the kernel's parameters; True where there were any."""
    idle = {name for name, f in functions.items() if not f["body"]}
    found = False
    for f in functions.values():
        body = _without_calls(f["body"], idle)
        if body != f["body"]:
            f["body"], found = _prune(body, set()), True
    return found


def _without_calls(body: list[Code], idle: set[str]) -> list[Code]:
    out: list[Code] = []
    for s in body:
        if s[0] == "do" and s[1][1] in idle and not any(map(_calls, s[1][2:])):
            continue
        first = _FIRST_BODY.get(s[0])
        out.append(s if first is None else [*s[:first], *(_without_calls(b, idle) for b in s[first:])])
    return out


def _calls(e: object) -> bool:
    return isinstance(e, list) and (e[0] == "call" or any(_calls(x) for x in e[1:]))


def program(module: S.IRModule) -> Program:
    """The extents program of a lowered module, for `compass_core.extents.evaluate`."""
    scopes = {p.dtype.scope for p in module.entry_func.params if isinstance(p.dtype, PointerType)}
    functions: dict[str, Function] = {}
    for f in module.functions:
        slicer = _Slicer(f, scopes)
        functions[f.name] = {"params": slicer.params, "body": prefetches.apart(_prune(slicer.body(f.body), set()))}
    while _drop_idle_calls(functions):
        pass
    params = {}
    for p in module.entry_func.params:
        if isinstance(p.dtype, PointerType):
            params[p.name] = max(1, p.dtype.elem.bytes)
    return {"entry": module.entry, "params": params, "functions": functions}

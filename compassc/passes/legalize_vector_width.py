"""Split and pad vectors of any width so that each one is exactly a register.

Before: vectors and masks of any lane count. After: every vector is native; wider ones are several values, narrower ones
and last parts are padded, and masks keep the padding from memory and from lane-crossing results.

A data variable of several registers becomes a private array of registers, a mask variable or a parameter becomes
several variables `<name>_k`. What happens to an operation is the rule of its `Op.split` (`_split_rules.py`). Masks are
cut as the operation that uses them needs; the width a mask variable is kept in comes from `analysis.mask_types`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from compass_core.errors import CompassError, Span

from ..analysis.mask_types import MaskTypes, register_width
from ..analysis.statements import is_const
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import VOID, DataType, PointerType, Type, bool_of, native, pointer_type
from ..ir.rules import method, table
from ..ir.visit import located, placed, walk_exprs, walk_stmts
from ..ops import core, spelling
from ._hazards import Hazards
from ._split_rules import MASK_RULES, RULES, by_lanes, chunks, part_count
from ._vectors import active, builtin, first_lanes, int32, reinterpret, wide_function

NAME = "LegalizeVectorWidth"

REPEATING = frozenset({"cast", "clip"})
"""Operations whose C text repeats an operand."""
IN_A_CONDITION = (
    "a sub-function call in a loop condition is used for several registers",
    "assign its result to a variable in the loop",
)


_ALIGNED = E.F_VECTOR | E.F_POINTER | E.F_FUNC
"""What has something to align."""


def wide_error(message: str, help: str = "") -> CompassError:
    return CompassError(message, code="wide-vector", help=help)


class Aligner:
    """Rewrites one function. `bound` holds what stands for each variable that changes: an array or parts."""

    def __init__(self, masks: MaskTypes, functions: dict[str, S.PrimFunc], hazards: Hazards) -> None:
        self.masks, self.functions, self.hazards = masks, functions, hazards
        self.arrays: dict[E.Var, E.Var] = {}
        self.vars: dict[E.Var, tuple[E.Var, ...]] = {}
        self.before: list[S.Stmt] = []
        self.calls: dict[
            int, tuple[E.Expr, E.Expr]
        ] = {}  # by identity: a sub-function call, and the variable that holds its result
        self.span: Span | None = None

    # -- values of several registers

    def parts(self, e: E.Expr, width: int = 0) -> list[E.Expr]:
        """The registers of a vector, in order. `width`: lanes of one register, for masks."""
        if not e.dtype.is_mask:
            width = e.dtype.native_lanes
        elif not width:
            width = self.masks.width(e)
        form = _FORMS.get(type(e))
        if form is None:
            raise wide_error(f"a {type(e).__name__} cannot be cut into registers")
        found: list[E.Expr] = form(self, e, width)
        return [located(part, e.span) for part in found] if isinstance(e, E.PlacedExpr) else found

    def once(self, e: E.Expr) -> E.Expr:
        """`e`, to be used several times: a sub-function call in it is evaluated before the statement."""
        if not e.flags & E.F_FUNC or type(e) is E.Var:
            return e
        return self.saved(e)

    def repeatable(self, e: E.Expr) -> E.Expr:
        """A call whose C repeats an operand, with its operands evaluated once beforehand."""
        if type(e) is not E.Call or not e.flags & E.F_FUNC:
            return e
        return E.Call(e.op, tuple(self.once(x) for x in e.args), e.dtype, e.mask, e.r, e.attrs)

    def saved(self, e: E.Expr) -> E.Expr:
        """`e`, evaluated before the statement."""
        tmp = E.Var("tmp", e.dtype)
        if isinstance(e.dtype, PointerType):
            self.hazards.known[tmp] = self.hazards.roots(e)
        self.before.append(S.Let(tmp, e, span=self.span))
        return tmp

    def _var_parts(self, e: E.Var, width: int) -> list[E.Expr]:
        array = self.arrays.get(e)
        if array is not None:
            buffer = E.Buffer(array, array.pointer_type.elem)
            return [E.BufferLoad(buffer, (int32(k),)) for k in range(part_count(e.dtype.lanes, width))]
        own: list[E.Expr] = list(self.vars.get(e, (e,)))
        if not e.dtype.is_mask:
            return own
        return self.convert_masks(own, own[0].dtype.lanes, width, e.dtype.lanes)

    def convert_masks(self, parts: list[Any], have: int, want: int, lanes: int) -> list[E.Expr]:
        """Mask registers of `have` lanes as registers of `want` lanes."""
        if have > want:
            kind = bool_of(have // 2)
            halves = [builtin(f"__vbx{x}", p, dtype=kind) for p in parts for x in ("ul", "uh")]
            halves = halves[: part_count(lanes, have // 2)]
            return self.convert_masks(halves, have // 2, want, lanes)
        if have == want:
            return parts
        ratio, kind = want // have, bool_of(want)
        groups = chunks(parts, ratio)
        groups[-1] = groups[-1] + [E.ConstMask(0, have)] * (ratio - len(groups[-1]))
        return [E.Call("vconcat", tuple(group), kind, attrs=(("part", "all"),)) for group in groups]

    def _const_mask(self, e: E.ConstMask, width: int) -> list[E.Expr]:
        return [E.ConstMask(e.bits >> (k * width), width) for k in range(part_count(e.lanes, width))]

    def _tail_mask(self, e: E.TailMask, width: int) -> list[E.Expr]:
        pieces = part_count(e.lanes, width)
        count = e.count if pieces == 1 or e.lanes % width else unlimited(e.count, e.lanes)  # each piece is limited
        count = self.once(self.scalar(count))  # the C text repeats it
        if type(count) is E.IntImm:
            limits = [max(0, min(width, count.value - k * width)) for k in range(pieces)]
            return [first_lanes(n, width) for n in limits]
        if pieces == 1:
            return [E.TailMask(count, width)]
        kind = count.data_type
        zero, full = E.IntImm(kind, 0), E.IntImm(kind, width)
        out: list[E.Expr] = []
        for k in range(pieces):
            left = E.Binary("sub", count, E.IntImm(kind, k * width)) if k else count
            out.append(E.TailMask(E.Binary("max", E.Binary("min", left, full), zero), width))
        return out

    def _broadcast(self, e: E.Broadcast, width: int) -> list[E.Expr]:
        count = part_count(e.lanes, width)
        value = self.scalar(e.value)
        parts: list[E.Expr] = [E.Broadcast(self.once(value) if count > 1 else value, width)] * count
        return self._without_padding(parts, e.lanes, width) if e.dtype.is_mask else parts

    def _without_padding(self, parts: list[E.Expr], lanes: int, width: int) -> list[E.Expr]:
        """Mask registers with the lanes behind the end of the mask switched off."""
        if rest := lanes % width:
            last = parts[-1]
            parts = [*parts[:-1], E.Call("vand", (last, first_lanes(rest, width)), last.dtype)]
        return parts

    def _one(self, e: E.BufferLoad, width: int) -> list[E.Expr]:
        return [self.scalar(e)]

    def _literal(self, e: E.VectorLiteral, width: int) -> list[E.Expr]:
        elems = [self.scalar(x) for x in e.elems]
        elems += [int32(0)] * (-len(elems) % width)
        kind = e.dtype.with_lanes(width)
        return [E.VectorLiteral(kind, tuple(elems[k : k + width])) for k in range(0, len(elems), width)]

    def _binary(self, e: E.Binary, width: int) -> list[E.Expr]:
        return [E.Binary(e.op, x, y) for x, y in zip(self.parts(e.a, width), self.parts(e.b, width), strict=True)]

    def _bitnot(self, e: E.Unary, width: int) -> list[E.Expr]:
        parts: list[E.Expr] = [E.Unary(e.op, x) for x in self.parts(e.a, width)]
        return self._without_padding(parts, e.dtype.lanes, width) if e.dtype.is_mask else parts

    def _select(self, e: E.Select, width: int) -> list[E.Expr]:
        a, b = self.parts(e.true_value, width), self.parts(e.false_value, width)
        cond = self.scalar(e.condition)
        cond = self.once(cond) if len(a) > 1 else cond
        return [E.Select(cond, x, y) for x, y in zip(a, b, strict=True)]

    def _reinterpret(self, e: E.Reinterpret, width: int) -> list[E.Expr]:
        return [reinterpret(x, native(e.data_type.element_of)) for x in self.parts(e.value)]

    def _func_call(self, e: E.FuncCall, width: int) -> list[E.Expr]:
        call = self.scalar(e)
        if not e.dtype.is_mask:
            return [call]
        return self.convert_masks([call], call.dtype.lanes, width, e.dtype.lanes)

    def _call(self, e: E.Call, width: int) -> list[E.Expr]:
        if not e.dtype.is_mask:
            return self.rule(e)
        if e.op in MASK_RULES:
            own = MASK_RULES[e.op](self, e, width)
        elif all(x.dtype.is_mask or not x.dtype.is_vector for x in e.args):
            own = by_lanes(self, e, width)
        else:
            own = self.rule(e)
        return self.convert_masks(own, own[0].dtype.lanes, width, e.dtype.lanes)

    def rule(self, e: E.Call) -> list[E.Expr]:
        """A call of data cut by the rule of its operation."""
        split = e.op if spelling.is_builtin(e.op) else core.get(e.op).split
        found = RULES.get(split)
        if found is not None:
            return [self.repeatable(x) for x in found(self, e)] if e.op in REPEATING else found(self, e)
        new = self.rebuilt(e)
        if new.dtype.is_vector and not new.dtype.is_native:
            raise wide_error(
                f"S.{e.op} works on single registers, not on {e.dtype}", "split the vector, or use another operation"
            )
        return [new]

    def rebuilt(self, e: E.Call) -> E.Call:
        """A call that is not cut, with its operands brought to registers."""
        args: list[E.Expr] = []
        for x in e.args:
            args += self.parts(x, register_width(x.dtype.lanes)) if x.dtype.is_vector else [self.scalar(x)]
        mask = e.mask
        if mask is not None:
            like = spelling.mask_dtype(e)
            mask = active(self.parts(mask, like.native_lanes if like.is_vector and not like.is_mask else 0)[0])
        return E.Call(e.op, tuple(args), e.dtype, mask, None if e.r is None else self.parts(e.r)[0], e.attrs)

    # -- everything that is not a vector

    def scalar(self, e: E.Expr) -> E.Expr:
        """A scalar, pointer or void expression with the vectors in it aligned."""
        if not e.flags & _ALIGNED:
            return e
        if type(e) is E.Call:
            return self._scalar_call(e)
        if type(e) is E.GetElement:
            return self._element(e)
        if type(e) is E.FuncCall:
            return self._arguments(e)
        if type(e) is E.AddressOf:
            return self._address_of(e)
        if type(e) is E.BufferLoad and e.mask is not None:
            raise wide_error("a masked load was not lowered", "keep the pass LowerVectorOperators enabled")
        return e.map(self.any)

    def any(self, e: E.Expr) -> E.Expr:
        """A child of any type that must be a single value."""
        if not e.dtype.is_vector:
            return self.scalar(e)
        parts = self.parts(e)
        if len(parts) != 1:
            raise wide_error(f"a value of type {e.dtype} does not fit one register here")
        return parts[0]

    def _scalar_call(self, e: E.Call) -> E.Expr:
        parts = self.rule(e) if any(x.dtype.is_vector for x in e.args) else [e.map(self.any)]
        return located(parts[0], e.span)

    def _element(self, e: E.GetElement) -> E.Expr:
        lanes, index = e.vector.dtype.lanes, self.scalar(e.index)
        array = self.arrays.get(e.vector) if type(e.vector) is E.Var else None
        if array is not None and type(index) is not E.IntImm:
            return E.BufferLoad(E.Buffer(array, e.dtype), (index,))
        parts = self.parts(e.vector)
        width = parts[0].dtype.lanes
        if len(parts) == 1:
            return E.GetElement(parts[0], index)
        if type(index) is not E.IntImm or not 0 <= index.value < lanes:
            raise wide_error(f"an element of {e.vector.dtype} needs a constant index", "keep the vector in a variable")
        return E.GetElement(parts[index.value // width], int32(index.value % width))

    def _arguments(self, e: E.FuncCall) -> E.Expr:
        if id(e) in self.calls:
            return self.calls[id(e)][1]
        function = self.functions.get(e.func)
        args: list[E.Expr] = []
        for i, x in enumerate(e.args):
            if not x.dtype.is_vector:
                args.append(self.scalar(x))
            elif x.dtype.is_mask and function is not None:
                args += self.parts(x, self.masks.width(function.params[i]))
            else:
                args += self.parts(x)
        dtype = e.dtype
        if isinstance(dtype, DataType) and dtype.is_vector and not dtype.is_native:
            dtype = bool_of(register_width(dtype.lanes)) if dtype.is_mask else dtype
        new = E.FuncCall(e.func, tuple(args), dtype, span=e.span)
        self.calls[id(e)] = e, new
        return new

    def _address_of(self, e: E.AddressOf) -> E.Expr:
        if e.var in self.arrays:
            return self.arrays[e.var]
        parts = self.vars.get(e.var)
        if parts is None:
            return e
        if len(parts) > 1:
            raise wide_error(f"the mask {e.var.name!r} has no address: it is kept in several registers")
        return E.AddressOf(parts[0])

    # -- statements

    def body(self, body: S.Body) -> S.Body:
        out: list[S.Stmt] = []
        outer = self.before
        for s in body:
            if not s.flags & _ALIGNED and type(s) is not S.SetElement:
                out.append(placed(s))
                continue
            self.before, self.span = [], s.span
            new = self.stmt(s)
            out += [placed(made) for made in evaluated_once([*self.before, *new])]
        self.before = outer
        return tuple(out)

    def stmt(self, s: S.Stmt) -> list[S.Stmt]:
        if type(s) is S.Let and s.var.dtype.is_vector:
            return self.let(s)
        if type(s) is S.Assign and s.var.dtype.is_vector:
            return self.assign(s.var, self.parts(s.value, self.width_of(s.var)), s.span)
        if type(s) is S.SetElement:
            return self.set_element(s)
        if type(s) is S.Return and s.value is not None and s.value.dtype.is_mask:
            return [self.returned_mask(s.value, s.span)]
        if type(s) is S.Evaluate and s.value.flags & E.F_VECTOR:
            if type(s.value) is E.Call:
                return [S.Evaluate(located(e, s.value.span), span=s.span) for e in self.rule_or_parts(s.value)]
            if type(s.value) is E.FuncCall:
                return [S.Evaluate(self._arguments(s.value), span=s.span)]
            if s.value.dtype.is_vector:
                return [S.Evaluate(e, span=s.span) for e in self.parts(s.value)]
        if type(s) is S.BufferStore and s.value.dtype.is_vector and not s.value.dtype.is_native:
            raise wide_error("a wide store was not lowered", "keep the pass LowerVectorOperators enabled")
        new = s.map(self.any, self.body)
        if type(s) is S.While and self.before:
            raise wide_error(*IN_A_CONDITION)
        return [new]

    def returned_mask(self, mask: E.Expr, span: Span | None) -> S.Stmt:
        """A mask is returned in the registers its lane count alone decides: the caller knows no more."""
        lanes = mask.dtype.lanes
        parts = self.parts(mask, register_width(lanes))
        if len(parts) != 1:
            raise wide_error(f"a mask of {lanes} lanes does not fit one register, which a function can return")
        return S.Return(parts[0], span=span)

    def rule_or_parts(self, e: E.Call) -> list[E.Expr]:
        if e.dtype.is_mask:
            return self.parts(e)
        return self.rule(e) if any(x.dtype.is_vector for x in e.args) or e.dtype.is_vector else [self.scalar(e)]

    def width_of(self, var: E.Var) -> int:
        return self.masks.width(var) if var.dtype.is_mask else var.dtype.native_lanes

    def let(self, s: S.Let) -> list[S.Stmt]:
        parts = self.parts(s.value, self.width_of(s.var))
        if len(parts) == 1 or s.var.dtype.is_mask:
            new = self.new_vars(s.var, [p.dtype for p in parts])
            return [S.Let(v, p, span=s.span) for v, p in zip(new, parts, strict=True)]
        kind = parts[0].data_type
        alloc = self.array_of(s.var, kind, len(parts))
        return [S.Alloc(alloc, span=s.span), *self.stores(s.var, parts, s.span)]

    def new_vars(self, var: E.Var, types: list[Type]) -> tuple[E.Var, ...]:
        """The variables that stand for `var`, one per register."""
        if len(types) == 1:
            found: tuple[E.Var, ...] = (var,) if types[0] is var.dtype else (E.Var(var.name, types[0]),)
        else:
            found = tuple([E.Var(f"{var.name}_{k}", t) for k, t in enumerate(types)])
        self.vars[var] = found
        return found

    def array_of(self, var: E.Var, kind: DataType, count: int) -> E.Buffer:
        array = E.Var(var.name, pointer_type(kind, "private"))
        self.arrays[var] = array
        self.hazards.known[array] = frozenset((var,))
        return E.Buffer(array, kind, (int32(count),))

    def stores(self, var: E.Var, parts: list[E.Expr], span: Span | None) -> list[S.Stmt]:
        array = self.arrays[var]
        buffer = E.Buffer(array, array.pointer_type.elem)
        return [S.BufferStore(buffer, (int32(k),), part, None, span=span) for k, part in enumerate(parts)]

    def assign(self, var: E.Var, parts: list[E.Expr], span: Span | None) -> list[S.Stmt]:
        """New values for all registers of a variable. A register that a later one still needs is saved first."""
        saved: list[S.Let] = []
        if len(parts) > 1 and any(self.reads_before(var, part, k) for k, part in enumerate(parts)):
            saved = [S.Let(E.Var(f"{var.name}_new", p.dtype), p, span=span) for p in parts]
            parts = [s.var for s in saved]
        if var in self.arrays:
            return [*saved, *self.stores(var, parts, span)]
        targets = self.vars.get(var, (var,))
        return [*saved, *[S.Assign(v, p, span=span) for v, p in zip(targets, parts, strict=True)]]

    def reads_before(self, var: E.Var, part: E.Expr, k: int) -> bool:
        """Whether the value of register `k` reads a register of `var` that is assigned before it."""
        array, earlier = self.arrays.get(var), self.vars.get(var, ())[:k]
        for e in walk_exprs(part):
            if (
                type(e) is E.BufferLoad
                and e.buffer.data is array
                and not (is_const(e.indices[0], k) or later(e.indices[0], k))
            ):
                return True
            if type(e) is E.Var and e in earlier:
                return True
        return False

    def set_element(self, s: S.SetElement) -> list[S.Stmt]:
        index, value = self.scalar(s.index), self.scalar(s.value)
        array = self.arrays.get(s.var)
        if array is not None:
            if type(index) is not E.IntImm:
                return [S.BufferStore(E.Buffer(array, s.var.data_type.element_of), (index,), value, None, span=s.span)]
            k, lane = divmod(index.value, array.pointer_type.elem.lanes)
            register = E.BufferLoad(E.Buffer(array, array.pointer_type.elem), (int32(k),))
            return [S.Evaluate(builtin("__set_lane", register, int32(lane), value, dtype=VOID), span=s.span)]
        parts = self.vars.get(s.var, (s.var,))
        if len(parts) == 1:
            return [S.SetElement(parts[0], index, value, span=s.span)]
        if type(index) is not E.IntImm:
            raise wide_error(f"an element of {s.var.dtype} needs a constant index", "keep masks to one register")
        k, lane = divmod(index.value, parts[0].dtype.lanes)
        return [S.SetElement(parts[k], int32(lane), value, span=s.span)]

    def function(self, f: S.PrimFunc) -> S.PrimFunc:
        params: list[E.Var] = []
        copies: list[S.Stmt] = []
        taken = addressed(f) if any(p.flags & E.F_WIDE for p in f.params) else set()
        for p in f.params:
            if not p.dtype.is_vector:
                params.append(p)
                continue
            width = self.width_of(p)
            kind = p.data_type.with_lanes(width)
            count = part_count(p.dtype.lanes, width)
            new = self.new_vars(p, [kind] * count)
            params += new
            if count > 1 and p in taken and not p.dtype.is_mask:
                copies.append(S.Alloc(self.array_of(p, kind, count), span=f.span))
                copies += self.stores(p, list(new), f.span)
        ret = f.ret_type
        if ret is not VOID and ret.is_mask and not ret.is_native:
            ret = bool_of(register_width(ret.lanes))
        return f.replace(params=tuple(params), body=tuple(copies) + self.body(f.body), ret_type=ret)


_FORMS: Mapping[type, Callable[[Aligner, E.Expr, int], list[E.Expr]]] = table(
    method(E.Var, Aligner._var_parts),
    method(E.ConstMask, Aligner._const_mask),
    method(E.TailMask, Aligner._tail_mask),
    method(E.Broadcast, Aligner._broadcast),
    method(E.VectorLiteral, Aligner._literal),
    method(E.Binary, Aligner._binary),
    method(E.Unary, Aligner._bitnot),
    method(E.Select, Aligner._select),
    method(E.Reinterpret, Aligner._reinterpret),
    method(E.Call, Aligner._call),
    method(E.FuncCall, Aligner._func_call),
    method(E.BufferLoad, Aligner._one),
)


def unlimited(count: E.Expr, lanes: int) -> E.Expr:
    """The count of a tail mask before it was limited to its lanes; it is not negative if it was before."""
    match count:
        case E.Binary(op="max", a=E.Binary(op="min", a=whole, b=E.IntImm(value=most)), b=E.IntImm(value=0) as zero):
            return E.Binary("max", whole, zero) if most == lanes else count
        case E.Binary(op="min", a=whole, b=E.IntImm(value=most)):
            return whole if most == lanes else count
    return count


def later(index: E.Expr, k: int) -> bool:
    return type(index) is E.IntImm and index.value > k


def addressed(f: S.PrimFunc) -> set[E.Var]:
    """Variables that must live in memory: their address is taken, or an element is chosen at run time."""
    found: set[E.Var] = set()
    for s in walk_stmts(f.body):
        if type(s) is S.SetElement:
            found.add(s.var)
        for root in s.exprs():
            for e in walk_exprs(root) if root.flags & (E.F_VECTOR | E.F_POINTER) else ():
                if type(e) is E.AddressOf:
                    found.add(e.var)
                elif type(e) is E.GetElement and type(e.vector) is E.Var and type(e.index) is not E.IntImm:
                    found.add(e.vector)
    return found


def evaluated_once(stmts: list[S.Stmt]) -> list[S.Stmt]:
    """The statements that replace one; a sub-function call used by several registers is evaluated once, before them."""
    if not any(s.flags & E.F_FUNC for s in stmts):
        return stmts
    calls = (e for s in stmts for root in s.exprs() if root.flags & E.F_FUNC for e in walk_exprs(root))
    counts = Counter(id(e) for e in calls if E.is_single(e))
    if all(n == 1 for n in counts.values()):
        return stmts
    out: list[S.Stmt] = []
    made: dict[int, E.Var] = {}
    for s in stmts:

        def once(e: E.Expr, span: Span | None = s.span) -> E.Expr:
            if not e.flags & E.F_FUNC or counts[id(e)] < 2:
                return e.map(once) if e.flags & E.F_FUNC else e
            if id(e) not in made:
                var = E.Var("tmp", e.dtype)
                out.append(S.Let(var, e.map(once), span=span))
                made[id(e)] = var
            return made[id(e)]

        if type(s) is S.While and any(counts[id(e)] > 1 for e in walk_exprs(s.condition)):
            raise wide_error(*IN_A_CONDITION)
        out.append(s.map(once, lambda body: body))
    return out


def repeats_calls(f: S.PrimFunc) -> bool:
    """Whether an operand that the C text repeats holds a sub-function call."""
    roots = (e for s in walk_stmts(f.body, E.F_FUNC) for e in s.exprs() if e.flags & E.F_FUNC)
    nodes = (e for root in roots for e in walk_exprs(root) if e.flags & E.F_FUNC)
    return any(type(e) is E.TailMask or (type(e) is E.Call and e.op in REPEATING) for e in nodes)


def run(module: S.IRModule) -> S.IRModule:
    if not any(wide_function(f) or repeats_calls(f) for f in module.functions):
        return module
    masks = MaskTypes(module)
    functions = {f.name: f for f in module.functions}
    return module.map_functions(lambda f: Aligner(masks, functions, Hazards(f)).function(f))

"""Walking a function in the order it runs, with what is known about its integers.

Variables that keep the value of their definition are replaced by it, so that indices become sums of loop variables,
TEC numbers and constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from compass_core.dataclass import dataclass

from ..analysis.arith import Arith, Linear
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, DataType, PointerType
from ..ir.exprs import Expr, IntImm, Var
from ..ir.folding import fold, wrap
from ..ir.stmts import Body, PrimFunc, Stmt
from ..ir.visit import Rewriter, assigned_vars, rewrites, walk_exprs, walk_stmts

ID_NAME = "the TEC's number"


@dataclass(frozen=True)
class Root:
    """Storage of known size: its name, bytes and scope, and the bytes of one item for messages."""

    name: str
    size: int
    scope: str
    item: int

    @property
    def items(self) -> str:
        """Its size in words."""
        count = self.size // self.item
        return f"{count} element{'s' if count > 1 else ''}"


@dataclass(frozen=True)
class PathCondition:
    """The conditions and loops around a statement, outermost first, with known variables replaced.

    `uncertain`: the statement may also be skipped for other reasons. `may_not_run`: a loop may have no iterations.
    """

    conditions: tuple[tuple[Expr, bool], ...] = ()
    loops: tuple[tuple[Var, Expr, Expr, Expr], ...] = ()
    uncertain: bool = False
    may_not_run: bool = False


@dataclass(frozen=True)
class ReachedStatement:
    """A statement, and the path to it."""

    stmt: Stmt
    path: PathCondition

    @property
    def guarded(self) -> bool:
        """Whether the statement may be skipped."""
        return bool(self.path.conditions) or self.path.uncertain or self.path.may_not_run


@dataclass(frozen=True)
class Address:
    """A storage and a byte offset in it."""

    data: Var
    offset: Linear


@dataclass
class Exact:
    """Values a loop variable really takes: first, last, step."""

    first: int
    last: int
    step: int = 1


@dataclass
class Walker:
    """One walk over a function. `tecs` is how many TECs run it."""

    function: PrimFunc
    tecs: int
    known: Mapping[Var, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mutable = assigned_vars(self.function)
        self.arith = Arith(self.mutable)
        self.tec_id = Var(ID_NAME, INT32)
        self.arith.bind(self.tec_id, 0, self.tecs - 1)
        self.exact: dict[Var, Exact] = {self.tec_id: Exact(0, self.tecs - 1)}
        self.values: dict[Var, Expr] = {}
        self.pointers: dict[Var, Address] = {}
        self._settled = _Settle(self)

    # -- statements

    def walk(self, body: Body | None = None, path: PathCondition = PathCondition()) -> Iterator[ReachedStatement]:
        """The statements in order; while one is yielded, the known facts are those that hold there."""
        mark = self.arith.mark()
        for s in self.function.body if body is None else body:
            yield ReachedStatement(s, path)
            if type(s) is S.Let:
                self._define(s)
            elif type(s) is S.Evaluate:
                self.arith.learn_assumption(self.settle(s.value))
            elif type(s) is S.IfThenElse:
                yield from self._branch(s.condition, s.then_case, True, path)
                yield from self._branch(s.condition, s.else_case or (), False, path)
            elif type(s) is S.For:
                yield from self._loop(s, path)
            elif type(s) is S.While:
                inner = self.arith.mark()
                self.arith.assume(self.settle(s.condition))
                yield from self.walk(s.body, replace(path, uncertain=True))
                self.arith.release(inner)
            if _may_leave(s):
                path = replace(path, uncertain=True)
        self.arith.release(mark)

    def _branch(self, cond: Expr, body: Body, truth: bool, path: PathCondition) -> Iterator[ReachedStatement]:
        mark = self.arith.mark()
        settled = self.settle(cond)
        self.arith.assume(settled, truth)
        yield from self.walk(body, replace(path, conditions=(*path.conditions, (settled, truth))))
        self.arith.release(mark)

    def _loop(self, s: S.For, path: PathCondition) -> Iterator[ReachedStatement]:
        start, stop, step = (self.settle(e) for e in (s.min, s.stop, s.step))
        var = s.loop_var
        mark = self.arith.mark()
        self.arith.bind_loop(var, start, stop, step)
        ends = [e.value for e in (start, stop, step) if isinstance(e, IntImm)]
        runs = len(ends) == 3 and ends[0] < ends[1] and ends[2] > 0
        if runs and var not in self.mutable:
            first, end, by = ends
            self.exact[var] = Exact(first, first + (-(-(end - first) // by) - 1) * by, by)
        loops = (*path.loops, (var, start, stop, step))
        path = replace(path, loops=loops, uncertain=path.uncertain or _may_leave(s) or s.kind == "tec")
        yield from self.walk(s.body, replace(path, may_not_run=path.may_not_run or not runs))
        self.exact.pop(var, None)
        self.arith.release(mark)

    def _define(self, s: S.Let) -> None:
        var, value = s.var, s.value
        if var in self.mutable:
            return
        if isinstance(var.dtype, PointerType):
            address = self.address(value)
            if address is not None:
                self.pointers[var] = address
        elif var.dtype.is_scalar and var.dtype.is_integer and not value.flags & (E.F_LOAD | E.F_FUNC):
            settled = self.settle(value)
            if not any(type(e) is Var and e in self.mutable for e in walk_exprs(settled)):
                self.values[var] = settled
            self.arith.bind_value(var, settled)

    # -- values

    def settle(self, e: Expr) -> Expr:
        """The expression with known variables replaced and constants folded."""
        return self._settled.expr(e)

    def address(self, e: Expr) -> Address | None:
        """The storage and byte offset of a pointer expression, when both are known."""
        if type(e) is Var:
            return self.pointers.get(e) or (None if e in self.mutable else Address(e, Linear()))
        if type(e) is not E.Pointer:
            return None
        base = self.address(e.base)
        if base is None:
            return None
        offset = self.arith.exact(self.settle(e.offset))
        return Address(base.data, base.offset.add(offset, e.elem.total_bytes))

    def attained(self, form: Linear) -> tuple[int, int] | None:
        """The least and the largest value a form takes when all its loops run; None when that is not known."""
        low = high = form.const
        for key, factor in form.terms.items():
            atom = self.arith.atoms[key]
            exact = self.exact.get(atom) if isinstance(atom, Var) else None
            if exact is None:
                return None
            ends = (factor * exact.first, factor * exact.last)
            low, high = low + min(ends), high + max(ends)
        return low, high


class _Settle(Rewriter):
    """Replaces variables with a known value and folds what becomes constant."""

    def __init__(self, walker: Walker) -> None:
        super().__init__()
        self.walker = walker

    @rewrites(E.Var)
    def rewrite_var(self, e: E.Var) -> E.Expr:
        if e in self.walker.known:
            return IntImm(e.data_type, self.walker.known[e])
        return self.walker.values.get(e, e)

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        if e.op == "get_local_id":
            return self.walker.tec_id
        return IntImm(e.data_type, self.walker.tecs) if e.op == "get_local_size" else e.map(self.expr)

    @rewrites(E.Binary)
    def rewrite_binary(self, e: E.Binary) -> E.Expr:
        a, b = self.expr(e.a), self.expr(e.b)
        if type(a) is type(b) is IntImm and e.op in _FOLDABLE:
            value = fold(e.op, a.value, b.value, a.dtype)
            if value is not None:
                return IntImm(e.data_type, value)
        return e if a is e.a and b is e.b else E.Binary(e.op, a, b)

    @rewrites(E.Cast)
    def rewrite_cast(self, e: E.Cast) -> E.Expr:
        value = self.expr(e.value)
        if type(value) is IntImm and e.dtype.is_integer and not e.dtype.is_bool:
            return IntImm(e.dtype, wrap(value.value, e.dtype))
        return e if value is e.value else E.Cast(e.dtype, value)


_FOLDABLE = E.ARITHMETIC | E.COMPARISON


def _may_leave(s: Stmt) -> bool:
    """Whether a statement can skip what follows it."""
    return isinstance(s, (S.Break, S.Continue, S.Return)) or any(
        _may_leave(inner) for body in s.bodies() for inner in body
    )


def storage(function: PrimFunc, shapes: Mapping[Var, tuple[int, ...]]) -> dict[Var, Root]:
    """The storage of constant size that a function can name; `shapes` are given for parameters."""
    roots: dict[Var, Root] = {}
    for s in walk_stmts(function.body):
        if isinstance(s, (S.Alloc, S.AllocConst, S.DeclBuffer)):
            buffer = s.buffer
            extents = tuple([n.value for n in buffer.shape if isinstance(n, IntImm)])
            if extents and len(extents) == len(buffer.shape):
                _add(roots, buffer.data, extents, buffer.dtype, buffer.scope)
    for var, shape in shapes.items():
        _add(roots, var, shape, var.pointer_type.elem, var.pointer_type.scope)
    return roots


def _add(roots: dict[Var, Root], data: Var, shape: tuple[int, ...], dtype: DataType, scope: str) -> None:
    count = 1
    for n in shape:
        count *= n
    name = data.name.removesuffix("_buf")
    roots[data] = Root(name, count * dtype.total_bytes, scope, dtype.total_bytes)

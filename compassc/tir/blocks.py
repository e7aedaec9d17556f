"""Blocks taken apart and put together: their axes, their conditions, the loops around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compass_core.namedtuple import NamedTuple
from compassc.analysis.conditions import TRUE
from compassc.analysis.itermap import UNKNOWN
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.operators import binary, kind_of
from compassc.ir.stmts import Body, Notes, Stmt
from compassc.ir.visit import rename_vars, substitute, walk_exprs, walk_stmts


class Axis(NamedTuple):
    """One axis of a block, and what it is at the block's place."""

    var: Var
    kind: str
    start: Expr
    extent: Expr
    binding: Expr

    @property
    def is_reduction(self) -> bool:
        return self.kind == "reduce"


def axes_of(block: S.Block) -> list[Axis]:
    """The axes of a block, in order."""
    return list(map(Axis, block.vars, block.kinds, block.starts, block.extents, block.iter_values))


def with_axes(block: S.Block, axes: Iterable[Axis], body: Body | None = None, init: Body | None = None) -> S.Block:
    """The block with other axes; and with another body and init, where they are given."""
    rows = list(axes)
    return S.Block(
        block.name_hint,
        tuple(axis.var for axis in rows),
        tuple(axis.kind for axis in rows),
        tuple(axis.start for axis in rows),
        tuple(axis.extent for axis in rows),
        tuple(axis.binding for axis in rows),
        block.predicate,
        block.reads,
        block.writes,
        block.init if init is None else init,
        block.body if body is None else body,
        block.annotations,
        span=block.span,
    )


def new_block(name: str, axes: Iterable[Axis], body: Body, init: Body = (), where: Expr = TRUE) -> S.Block:
    """A block whose regions are still to be found."""
    empty = S.Block(name, (), (), (), (), (), where, (), (), init, body)
    return with_axes(empty, axes)


def fresh_axes(axes: Iterable[Axis]) -> tuple[list[Axis], dict[Var, Var]]:
    """Axes like these, with variables of their own, and what became of the old ones."""
    made = [a._replace(var=fresh(a.var)) for a in axes]
    return made, {old.var: new.var for old, new in zip(axes, made)}


def loop_axes(loops: Iterable[S.For], blocks: Sequence[S.Block]) -> tuple[list[Axis], dict[Var, Var]]:
    """Axes that stand for the loops around blocks, and what they are for in what is inside: of the kind of the axes that
    depend on them."""
    axes, mapping = [], {}
    for s in loops:
        own = [a.kind for b in blocks for a in axes_of(b) if uses(a.binding, (s.loop_var,))]
        kind = next((k for k in ("opaque", "scan", "reduce") if k in own), "spatial")
        var = fresh(s.loop_var, f"v_{s.loop_var.name}")
        axes.append(Axis(var, kind, s.min, sub(s.stop, s.min), s.loop_var))
        mapping[s.loop_var] = var
    return axes, mapping


def fresh(var: Var, name: str = "") -> Var:
    """Another variable like this one."""
    return Var(name or var.name, var.dtype, var.nonneg)


def renamed(body: Body, mapping: dict[Var, Var]) -> Body:
    """A body with variables replaced, and with new ones for all that it defines: it may stand beside the old one."""
    inner: dict[Var, Var] = dict(mapping)
    for s in walk_stmts(body):
        storage = isinstance(s, (S.Alloc, S.AllocConst))
        inner.update({v: fresh(v) for v in S.defined(s) if v not in inner and not storage})
    return rename_vars(body, inner)


def loop(var: Var, extent: Expr, body: Body, like: S.For | None = None) -> S.For:
    """A loop from 0 on; of the kind of another one, where that is given."""
    zero, one = IntImm(kind_of(var), 0), IntImm(kind_of(var), 1)
    if like is None:
        return S.For(var, "serial", zero, extent, one, body)
    return S.For(var, like.kind, zero, extent, one, body, like.annotations)


def number(value: int, like: Expr | None = None) -> IntImm:
    """A whole number of the type of another expression."""
    return IntImm(INT32 if like is None else kind_of(like), value)


def constant(e: Expr) -> int | None:
    """The number that an expression is, if it is one."""
    return e.value if isinstance(e, IntImm) else None


def loop_extent(s: S.For) -> int:
    """How many turns a loop has; UNKNOWN where its ends are no numbers."""
    first, last = constant(s.min), constant(s.stop)
    return UNKNOWN if first is None or last is None else last - first


def last_index(start: Expr, extent: Expr) -> Expr:
    """The last of `extent` indices from one on; that one itself where it is alone."""
    return start if constant(extent) == 1 else sub(add(start, extent), number(1, start))


def add(a: Expr, b: Expr) -> Expr:
    return binary("add", a, b)


def sub(a: Expr, b: Expr) -> Expr:
    return binary("sub", a, b)


def mul(a: Expr, b: Expr) -> Expr:
    return binary("mul", a, b)


def view(buffer: Buffer) -> Buffer:
    """The buffer as accesses name it: what has one dimension is accessed as flat memory."""
    return buffer if len(buffer.shape) > 1 else Buffer(buffer.data, buffer.dtype)


def at(e: Expr, mapping: dict[Var, Expr]) -> Expr:
    """An expression of axes for certain values of them."""
    return substitute(e, mapping)


def uses(e: Expr, variables: Iterable[Var]) -> bool:
    """Whether an expression has one of the variables."""
    wanted = set(variables)
    return any(type(x) is Var and x in wanted for x in walk_exprs(e))


def reduction_parts(block: S.Block) -> tuple[S.BufferStore, E.Expr] | None:
    """The store of a reduction of one value and what it joins to the accumulated one: `B[i] = op(B[i], source)`."""
    if len(block.body) != 1 or not isinstance(block.body[0], S.BufferStore):
        return None
    store: S.BufferStore = block.body[0]
    value = store.value
    if (
        not isinstance(value, Binary)
        or not isinstance(value.a, E.BufferLoad)
        or value.a.buffer.data is not store.buffer.data
    ):
        return None
    return store, value.b


def declared(body: Body) -> dict[Var, Buffer]:
    """The buffers of a function by their storage, as they are declared first."""
    found: dict[Var, Buffer] = {}
    for s in walk_stmts(body):
        if isinstance(s, (S.Alloc, S.DeclBuffer, S.AllocConst)):
            found.setdefault(s.buffer.data, s.buffer)
    return found


def is_declaration(s: Stmt) -> bool:
    """Whether a statement gives memory a name and does nothing."""
    return isinstance(s, (S.Alloc, S.DeclBuffer, S.AllocConst))


def noted(notes: Notes, key: str) -> object:
    """The value of an annotation, None without it."""
    return dict(notes).get(key)

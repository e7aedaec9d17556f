"""Intrinsics: what a block must look like, and what is done in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from compass_core.dataclass import dataclass
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.accesses import Accesses, Element
from compassc.ir.dtypes import INT32, PointerType
from compassc.ir.exprs import Buffer, Expr, Var
from compassc.ir.printer import print_expr
from compassc.ir.stmts import Body, PrimFunc
from compassc.ir.verify import VerifyError, verify
from compassc.ir.visit import rewrites, substitute
from compassc.te.errors import ScheduleError
from compassc.te.machine import machine_for
from compassc.tir.addresses import says_all
from compassc.tir.blocks import add, axes_of, constant, declared, is_declaration, mul, number, renamed, sub, uses, view
from compassc.tir.canonical import EXPLICIT


@dataclass(frozen=True)
class TensorIntrin:
    """`desc`: a function of one block in plain loops, which says what is computed. `impl`: a function of the same
    parameters that computes it; further parameters of type int32 are strides and offsets: `A_stride_0` is how many elements
    lie between two rows of what the parameter `A` stands for, `A_elem_offset` how many lie before it in the memory whose
    address `A` is then."""

    desc: PrimFunc
    impl: PrimFunc
    root: S.Block | None = None
    """The block around the implementation, where that says all that it reads and writes."""

    _known: ClassVar[dict[str, TensorIntrin]] = {}

    @staticmethod
    def register(name: str, desc: Any, impl: Any, override: bool = False) -> TensorIntrin:
        """Make an intrinsic known. ScheduleError (a ValueError) for a name that is taken, unless `override`, and for
        functions whose parameters differ."""
        if name in TensorIntrin._known and not override:
            raise ScheduleError(f"the intrinsic '{name}' is registered already", "say override=True to replace it")
        desc, impl = (_function(f) for f in (desc, impl))
        for f in (desc, impl):
            if not isinstance(f, PrimFunc):
                raise ScheduleError(
                    f"the intrinsic '{name}' is made of two PrimFuncs or kernels, got {type(f).__name__}"
                )
            try:
                verify(f.module())
            except VerifyError as error:
                raise ScheduleError(f"the intrinsic '{name}' is no function that stands alone: {error}") from None
        mine, theirs = ([getattr(p.dtype, "elem", p.dtype) for p in f.params] for f in (desc, impl))
        if mine != theirs[: len(mine)]:
            raise ScheduleError(
                f"the intrinsic '{name}' has different parameters in its description and implementation"
            )
        for p in impl.params[len(mine) :]:
            if _stride(p, impl.params[: len(mine)]) is None:
                raise ScheduleError(
                    f"the intrinsic '{name}' has a parameter '{p.name}' in its implementation alone, which is no stride",
                    "strides are of type int32, and called NAME_stride_0 for the first dimension of a parameter NAME; where "
                    "it begins is NAME_elem_offset",
                )
        root = _root(impl)
        made = TensorIntrin(
            _without_root(desc), _without_root(impl), root if root is not None and says_all(root) else None
        )
        TensorIntrin._known[name] = made
        return made

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of a name. ScheduleError when there is none, None with `allow_missing`."""
        found = TensorIntrin._known.get(name)
        if found is None and not allow_missing:
            known = ", ".join(sorted(TensorIntrin._known)) or "none"
            raise ScheduleError(f"there is no intrinsic '{name}'; known are {known}")
        return found


def _function(given: object) -> Any:
    """The function of a kernel; other things as they are."""
    from compassc.language.functions import PyPrimFunc

    if not isinstance(given, PyPrimFunc):
        return given
    from compassc.language.parser import parse

    return parse(given, machine_for().name).entry_func


def _root(function: PrimFunc) -> S.Block | None:
    """The block that only stands around the blocks or statements of a function; None where there is none."""
    rest = [s for s in function.body if not is_declaration(s)]
    root = rest[0] if len(rest) == 1 else None
    plain = isinstance(root, S.Block) and not root.vars and not root.init and constant(root.predicate)
    return root if plain else None  # type: ignore[return-value]  # `plain` says that it is a block


def _without_root(function: PrimFunc) -> PrimFunc:
    """The function without a block that only stands around its blocks or statements."""
    root = _root(function)
    if root is None:
        return function
    if all(isinstance(s, S.BufferStore) for s in root.body):  # the one block of a description without loops
        return function
    return function.replace(body=(*(s for s in function.body if s is not root), *root.body))


OFFSET = -1
"""What stands for a dimension where a parameter is an offset."""


def _stride(p: Var, of: Sequence[Var]) -> tuple[Var, int] | None:
    """The parameter and the dimension of which another one is the stride, OFFSET where it says where that begins."""
    whose = p.name.removesuffix("_elem_offset")
    name, found, dim = p.name.rpartition("_stride_") if whose == p.name else (whose, "", "")
    owner = next((x for x in of if x.name == name), None)
    if whose != p.name and owner is not None and p.dtype is INT32:
        return owner, OFFSET
    return (owner, int(dim)) if found and dim.isdigit() and owner is not None and p.dtype is INT32 else None


class _Matched:
    """Where a buffer of a description is in the program: a buffer, and an index for each of its dimensions; the last
    ones are those of the description."""

    def __init__(self, buffer: Buffer, starts: tuple[Expr, ...]) -> None:
        self.buffer, self.starts = buffer, starts

    def indices(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        lead = len(self.starts) - len(indices)
        return (*self.starts[:lead], *(add(s, i) for s, i in zip(self.starts[lead:], indices)))


def tensorized(name: str, intrinsic: TensorIntrin, block: S.Block, buffers: dict[Var, Buffer]) -> S.Block:
    """The block with the implementation of an intrinsic in place of what it does. ScheduleError where that is not what
    the description says."""
    match = _Match(name, block, buffers)
    loops, inner = _nest(name, block.body, f"'{block.name_hint}'")
    own_loops, own = _nest(name, intrinsic.desc.body, "its description")
    if block.init or inner.init or own.init:
        raise match.error("a reduction with its init; decompose it first", "no init")
    match.loops(own_loops, loops)
    match.statements(own, inner)
    match.memory(own)
    found = match.found
    by_place: dict[Var, _Matched] = {}
    for theirs, mine in zip(intrinsic.desc.params, intrinsic.impl.params):
        if theirs in found:
            by_place[mine] = found[theirs]
    impl = tuple(s for s in intrinsic.impl.body if not is_declaration(s) or isinstance(s, S.Alloc))
    described, views = declared(intrinsic.desc.body), declared(intrinsic.impl.body)
    for theirs, mine in zip(intrinsic.desc.params, intrinsic.impl.params):
        if mine not in views and theirs in described:
            views[mine] = described[theirs]
    strides = [(p, _stride(p, intrinsic.impl.params)) for p in intrinsic.impl.params[len(intrinsic.desc.params) :]]
    place = _Placed(name, by_place, views, {p: s for p, s in strides if s is not None})
    placed = place.body(renamed(impl, {}))
    root = intrinsic.root
    if root is None:
        return block.replace(body=placed)
    notes = {**dict(block.annotations), **{k: v for k, v in root.annotations if k in EXPLICIT.values()}}
    reads, writes = (tuple(map(place.expr, side)) for side in (root.reads, root.writes))
    return block.replace(body=placed, reads=reads, writes=writes, annotations=tuple(notes.items()))


def _nest(name: str, body: Body, what: str) -> tuple[list[S.For], S.Block]:
    """The loops of a body and the one block in them."""
    loops: list[S.For] = []
    while True:
        rest = [s for s in body if not is_declaration(s)]
        if len(rest) == 1 and isinstance(rest[0], S.For):
            loops.append(rest[0])
            body = rest[0].body
        elif len(rest) == 1 and isinstance(rest[0], S.Block):
            return loops, rest[0]
        else:
            raise ScheduleError(f"tensorize with '{name}': {what} is no block in plain loops")


class _Match:
    """A comparison of a description with a program, node by node."""

    def __init__(self, name: str, block: S.Block, buffers: dict[Var, Buffer]) -> None:
        self.name, self.block, self.buffers = name, block, buffers
        self.found: dict[Var, _Matched] = {}
        self.points: dict[Var, Expr] = {}
        self.simplify = Simplifier(Arith()).expr

    def error(self, mine: str, theirs: str) -> ScheduleError:
        return ScheduleError(
            f"tensorize of '{self.block.name_hint}' with '{self.name}': the program has {mine}, the description {theirs}"
        )

    def loops(self, theirs: Sequence[S.For], mine: Sequence[S.For]) -> None:
        extents = [[constant(s.stop) for s in side if constant(s.stop) != 1] for side in (mine, theirs)]
        if extents[0] != extents[1]:
            raise self.error(f"loops of {extents[0]}", f"loops of {extents[1]}")
        if any(s.kind != "serial" for s in mine):
            raise self.error("loops that are not plain", "plain loops")

    def statements(self, theirs: S.Block, mine: S.Block) -> None:
        if not (isinstance(mine.predicate, E.IntImm) and mine.predicate.value):
            raise self.error(f"the condition {print_expr(mine.predicate)}", "none")
        own = [a for a in axes_of(mine) if constant(a.extent) != 1]
        other = [a for a in axes_of(theirs) if constant(a.extent) != 1]
        kinds = [[(a.kind, constant(a.extent)) for a in side] for side in (own, other)]
        if kinds[0] != kinds[1]:
            raise self.error(f"the axes {kinds[0]}", f"the axes {kinds[1]}")
        self.points = {b.var: a.var for a, b in zip(own, other)}
        self.points.update({a.var: number(0) for a in axes_of(theirs) if a.var not in self.points})
        self.own = [a.var for a in own]
        self.drop = {a.var: number(0) for a in axes_of(mine) if a not in own}
        if len(theirs.body) != len(mine.body):
            raise self.error(f"{len(mine.body)} statements", f"{len(theirs.body)} statements")
        for a, b in zip(theirs.body, mine.body):
            if not isinstance(a, S.BufferStore) or not isinstance(b, S.BufferStore):
                raise self.error(type(b).__name__, type(a).__name__)
            self.access(a.buffer, a.indices, b.buffer, b.indices)
            self.expr(a.value, b.value)

    def access(self, theirs: Buffer, indices: tuple[Expr, ...], mine: Buffer, own: tuple[Expr, ...]) -> None:
        lead = len(own) - len(indices)
        what, that = f"{mine.data.name} of {len(own)} dimensions", f"{theirs.data.name} of {len(indices)}"
        if lead < 0 or theirs.dtype is not mine.dtype:
            raise self.error(f"{what} of type {mine.dtype}", f"{that} of type {theirs.dtype}")
        rest: list[Expr] = []
        for e, i in zip(own[lead:], indices):
            if _reads(e) or _reads(i):  # an index that is read is the same one, or another
                self.expr(i, e)
                rest.append(number(0, e))
            else:
                rest.append(sub(e, substitute(i, self.points)))
        starts = tuple(self.simplify(substitute(e, self.drop)) for e in (*own[:lead], *rest))
        if any(uses(e, self.own) for e in starts):
            raise self.error(f"{what} at other indices", that)
        before = self.found.get(theirs.data)
        if before is None:
            self.found[theirs.data] = _Matched(self.buffers.get(mine.data, mine), starts)
            return
        same = Arith().interner.same
        if before.buffer.data is not mine.data or not all(map(same, before.starts, starts)):
            raise self.error(f"{what} at another place than before", that)

    def memory(self, theirs: S.Block) -> None:
        """ScheduleError where the description has two parameters for one buffer that is written: its implementation may
        write the one before it reads the other."""
        stored = {s.buffer.data for s in theirs.body if isinstance(s, S.BufferStore)}
        for data, place in self.found.items():
            for other, its in self.found.items():
                if data in stored and other is not data and its.buffer.data is place.buffer.data:
                    raise self.error(
                        f"{place.buffer.data.name} for both {data.name} and {other.name}", "different buffers for them"
                    )

    def expr(self, theirs: Expr, mine: Expr) -> None:
        if isinstance(theirs, E.BufferLoad) and isinstance(mine, E.BufferLoad):
            self.access(theirs.buffer, theirs.indices, mine.buffer, mine.indices)
            return
        a, b = theirs.children(), mine.children()
        plain = [
            f for f in type(theirs).__dict__.get("fields", ()) if isinstance(getattr(theirs, f), (str, int, float))
        ]
        if type(theirs) is not type(mine) or theirs.dtype is not mine.dtype or len(a) != len(b):
            raise self.error(print_expr(_bare(mine)), print_expr(_bare(theirs)))
        differ = isinstance(theirs, Var) or any(getattr(theirs, f) != getattr(mine, f) for f in plain)
        if differ and not (isinstance(theirs, Var) and self.points.get(theirs) is mine):
            raise self.error(print_expr(_bare(mine)), print_expr(_bare(theirs)))
        for x, y in zip(a, b):
            self.expr(x, y)


def _reads(e: Expr) -> bool:
    """Whether an expression reads memory."""
    return isinstance(e, E.BufferLoad) or any(map(_reads, e.children()))


def _bare(e: Expr) -> Expr:
    """An expression with its elements of buffers as variables, for messages."""
    if isinstance(e, E.BufferLoad):
        return Var(f"{e.buffer.data.name}[...]", e.dtype)
    return e.map(_bare)


class _Placed(Accesses):
    """The statements of an implementation on the buffers of the program."""

    def __init__(
        self,
        name: str,
        places: dict[Var, _Matched],
        views: dict[Var, Buffer],
        strides: dict[Var, tuple[Var, int]],
    ) -> None:
        super().__init__()
        self.name, self.places, self.views, self.strides = name, places, views, strides

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Element | None:
        place = self.places.get(buffer.data)
        if place is None:
            return None
        declared_ = self.views.get(buffer.data)
        if declared_ is not None and len(indices) != len(declared_.shape):
            raise ScheduleError(f"tensorize with '{self.name}': '{buffer.data.name}' is accessed as flat memory")
        return view(place.buffer), place.indices(indices)

    def region(self, e: E.BufferRegion) -> Expr:
        place = self.places.get(e.buffer.data)
        if place is None:
            return self.default(e)
        starts = place.indices(tuple(map(self.expr, e.starts)))
        lead = (number(1),) * (len(starts) - len(e.starts))
        return E.BufferRegion(view(place.buffer), starts, (*lead, *map(self.expr, e.extents)))

    @rewrites(Var)
    def rewrite_var(self, e: Var) -> Expr:
        if e in self.strides:
            owner, dim = self.strides[e]
            if dim == OFFSET:
                return self._offset(self.places[owner])
            lead = len(self.places[owner].buffer.shape) - len(self.views[owner].shape)
            return _row_major(self.places[owner].buffer.shape)[lead + dim]
        place = self.places.get(e)
        return e if place is None else self._address(e, place)

    def _address(self, e: Var, place: _Matched) -> Expr:
        """The address of the first element, where the elements lie as the implementation thinks: one after another, or as
        its strides say."""
        if (e, OFFSET) in self.strides.values():
            return place.buffer.data
        shape = place.buffer.shape
        declared_ = self.views.get(e)
        size = declared_.shape if declared_ is not None else ()
        own, there = _row_major(size), _row_major(shape)[len(shape) - len(size) :]
        known = {dim for owner, dim in self.strides.values() if owner is e}
        apart = [d for d in range(len(size)) if d not in known and constant(size[d]) != 1]
        if not size or any(constant(own[d]) is None or constant(own[d]) != constant(there[d]) for d in apart):
            raise ScheduleError(
                f"tensorize with '{self.name}': it takes the address of '{e.name}', whose elements do not lie one after "
                f"another in '{place.buffer.data.name}'",
                f"give the implementation the parameter {e.name}_stride_0, of type int32",
            )
        assert isinstance(e.dtype, PointerType)
        return E.Pointer(e.dtype.elem, place.buffer.data, self._offset(place))

    @staticmethod
    def _offset(place: _Matched) -> Expr:
        """How many elements lie before a part."""
        offset: Expr = number(0)
        for start, stride in zip(place.starts, _row_major(place.buffer.shape)):
            offset = add(offset, mul(start, stride))
        return offset


def _row_major(shape: Sequence[Expr]) -> list[Expr]:
    """The strides of the dimensions of a buffer."""
    made: list[Expr] = []
    stride: Expr = number(1)
    for extent in reversed(shape):
        made.append(stride)
        stride = mul(stride, extent)
    return made[::-1]

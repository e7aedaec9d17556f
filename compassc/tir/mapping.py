"""Which loops of a block an intrinsic computes."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.namedtuple import NamedTuple
from compassc.analysis.structure import Interner, variables
from compassc.ir import stmts as S
from compassc.ir.exprs import BufferLoad, Expr, IntImm, Var
from compassc.ir.stmts import PrimFunc
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.tir.base import Base
from compassc.tir.blocks import Axis, add, axes_of, constant, mul
from compassc.tir.checks import single_store
from compassc.tir.index_map import IndexMap
from compassc.tir.intrinsics import TensorIntrin
from compassc.tir.schedule import Schedule
from compassc.tir.state import ScheduleState, StmtSRef
from compassc.tir.trace import BlockRV, LoopRV


class TensorizeInfo(NamedTuple):
    """`loop_map`: the loops of a block by those of the intrinsic's description. `desc_loop_indexer`: the places of these.
    `block_iter_paddings`: up to multiples of what the block's axes have to be padded; None where they have not."""

    loop_map: Mapping[StmtSRef, S.For]
    desc_loop_indexer: Mapping[S.For, int]
    block_iter_paddings: list[int] | None


def get_tensorize_loop_mapping(
    sch: Base, block: BlockRV, desc_func: PrimFunc, allow_padding: bool = False
) -> TensorizeInfo | None:
    """The innermost loops of a block that are axes of the kinds and extents of an intrinsic's, the innermost first; None where
    some have none. `allow_padding`: extents may be rounded up."""
    function, tree, s = sch.located_block(block)
    wanted = [x for x in walk_stmts(desc_func.body) if isinstance(x, S.For)]
    inner = _described(desc_func)
    kinds = {a.binding: a.kind for a in axes_of(inner) if isinstance(a.binding, Var)}
    bound = [(i, a, a.binding) for i, a in enumerate(axes_of(s))]
    free = [(i, a, tree.loops[v]) for i, a, v in bound if isinstance(v, Var) and v in tree.loops]
    state, found, paddings = ScheduleState(sch), {}, [1] * len(s.vars)
    for loop in reversed(wanted):
        size = constant(loop.stop)
        match = next(
            (
                row
                for row in reversed(free)
                if row[1].kind == kinds.get(loop.loop_var) and _fits(constant(row[2].stop), size, allow_padding)
            ),
            None,
        )
        if match is None or size is None:
            return None
        place, _, own = match
        free = free[: free.index(match)]
        found[StmtSRef(state, function, own)] = loop
        if isinstance(own.stop, IntImm) and own.stop.value % size:
            paddings[place] = size
    order = {loop: i for i, loop in enumerate(wanted)}
    return TensorizeInfo(found, order, paddings if any(p > 1 for p in paddings) else None)


class AutoTensorizeMappingInfo(NamedTuple):
    """`mappings`: the layouts of a block's axes (`lhs_iters`) whose last axes are those of an intrinsic (`rhs_iters`).
    `lhs_buffer_map`: the buffers of the intrinsic by those of the block."""

    mappings: list[IndexMap]
    lhs_iters: tuple[Var, ...]
    rhs_iters: tuple[Var, ...]
    lhs_buffer_map: Mapping[Var, Var]


def get_auto_tensorize_mapping_info(sch: Base, block: BlockRV, desc_func: PrimFunc) -> AutoTensorizeMappingInfo | None:
    """How axes of a block are joined to those of an intrinsic that computes the same: axes that are indices of the same buffers
    make one, others come first. None where the block computes something else, or nothing makes an axis of the intrinsic."""
    _, _, s = sch.located_block(block)
    inner = _described(desc_func)
    mine, theirs = single_store(s), single_store(inner)
    buffers: dict[Var, Var] = {}
    if mine is None or theirs is None or not _alike(mine.value, theirs.value, buffers):
        return None
    if buffers.setdefault(mine.buffer.data, theirs.buffer.data) is not theirs.buffer.data:
        return None
    own, wanted = (_indexed(x) for x in (mine, theirs))
    axes, found = axes_of(s), {a.var: list[Axis]() for a in axes_of(inner)}
    for a in axes:
        used = {buffers[d] for d in own.get(a.var, ())}
        for b in axes_of(inner):
            if used == wanted.get(b.var, set()) and a.kind == b.kind:
                found[b.var].append(a)
    if not all(found.values()):
        return None
    joined = {a.var for parts in found.values() for a in parts}
    params = {a.var: Var(a.var.name, a.var.dtype) for a in axes}
    exprs: list[Expr] = [params[a.var] for a in axes if a.var not in joined]
    for parts in found.values():
        value: Expr = params[parts[0].var]
        for a in parts[1:]:
            value = add(mul(value, a.extent), params[a.var])
        exprs.append(value)
    return AutoTensorizeMappingInfo([IndexMap(tuple(params.values()), exprs)], s.vars, inner.vars, buffers)


def _described(desc_func: PrimFunc) -> S.Block:
    """The innermost block of an intrinsic's description."""
    (inner,) = (
        b
        for b in walk_stmts(desc_func.body)
        if isinstance(b, S.Block) and not any(isinstance(x, S.Block) for x in walk_stmts(b.body))
    )
    return inner


def _alike(a: Expr, b: Expr, buffers: dict[Var, Var]) -> bool:
    """Whether expressions compute the same of elements, whichever they are; `buffers` gets those of the one by the other."""
    if isinstance(a, BufferLoad) and isinstance(b, BufferLoad):
        return a.dtype == b.dtype and buffers.setdefault(a.buffer.data, b.buffer.data) is b.buffer.data
    if type(a) is not type(b) or a.dtype != b.dtype or getattr(a, "op", None) != getattr(b, "op", None):
        return False
    one, other = a.children(), b.children()
    if not one:
        return Interner().same(a, b)
    return len(one) == len(other) and all(_alike(x, y, buffers) for x, y in zip(one, other))


def _indexed(store: S.BufferStore) -> dict[Var, set[Var]]:
    """The buffers in whose indices each variable is."""
    found: dict[Var, set[Var]] = {}
    accesses = [(e.buffer.data, e.indices) for e in walk_exprs(store.value) if isinstance(e, BufferLoad)]
    for data, indices in (*accesses, (store.buffer.data, store.indices)):
        for e in indices:
            for v in variables(e):
                found.setdefault(v, set()).add(data)
    return found


def tile_with_tensor_intrin(
    sch: Schedule, block: BlockRV, intrin_name: str, allow_padding: bool = False
) -> LoopRV | None:
    """Split the loops that an intrinsic computes by its extents, innermost the loops that it replaces: the outermost of these
    loops, which `tensorize` takes; None where a block has no loops for the intrinsic. `allow_padding`: axes are padded to
    multiples of its extents (`pad_einsum`)."""
    intrinsic = TensorIntrin.get(intrin_name)
    assert intrinsic is not None
    found = get_tensorize_loop_mapping(sch, block, intrinsic.desc, allow_padding)
    if found is None:
        return None
    if found.block_iter_paddings is not None:
        sch.pad_einsum(block, found.block_iter_paddings)
        found = get_tensorize_loop_mapping(sch, block, intrinsic.desc)
        assert found is not None
    known = {id(sch.get(loop)): loop for loop in sch.get_loops(block)}
    inner: dict[int, LoopRV] = {}
    for ref, theirs in found.loop_map.items():
        size = constant(theirs.stop)
        _, inside = sch.split(known[id(ref.stmt)], [None, size], preserve_unit_iters=False)
        inner[found.desc_loop_indexer[theirs]] = inside
    last = [inner[i] for i in sorted(inner)]
    replaced = {id(sch.get(loop)) for loop in last}
    loops = sch.get_loops(block)
    first = next(i for i, loop in enumerate(loops) if id(sch.get(loop)) in replaced)
    sch.reorder(*(loop for loop in loops[first:] if id(sch.get(loop)) not in replaced), *last)
    return last[0]


def _fits(extent: int | None, size: int | None, allow_padding: bool) -> bool:
    return extent is not None and size is not None and (allow_padding or extent % size == 0)

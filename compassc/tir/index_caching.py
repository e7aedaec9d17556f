"""Steps that copy by index: a buffer in another layout for one block, and indices that are computed before."""

from __future__ import annotations

from collections.abc import Iterator

from compassc.analysis.itermap import once
from compassc.analysis.structure import Interner, is_pure, variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import pointer_type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Binary, Buffer, Expr, Var
from compassc.ir.operators import kind_of
from compassc.ir.visit import Rewriter, rewrites, walk_exprs, walk_stmts
from compassc.te.errors import ScheduleError
from compassc.tir.blocks import Axis, at, axes_of, constant, new_block, uses, view
from compassc.tir.caching import Caching, again, allocated, insert, loops_of, memory_scope
from compassc.tir.copy_checks import only_access
from compassc.tir.index_map import as_index_map
from compassc.tir.trace import BlockRV, instruction
from compassc.tir.tree import edit_block


class IndexCaching(Caching):
    """Steps that copy by index."""

    @instruction("ReindexCacheRead", ("block",), ("read_buffer_index", "storage_scope", "index_map"))
    def reindex_cache_read(
        self, block: BlockRV, read_buffer_index: object, storage_scope: str, index_map: object
    ) -> BlockRV:
        """Copy a buffer that a block reads, in the layout of `index_map(*axes of the block)`."""
        return self._reindexed("reindex_cache_read", block, "read", read_buffer_index, storage_scope, index_map)

    @instruction("ReindexCacheWrite", ("block",), ("write_buffer_index", "storage_scope", "index_map"))
    def reindex_cache_write(
        self, block: BlockRV, write_buffer_index: object, storage_scope: str, index_map: object
    ) -> BlockRV:
        """Have a block write another buffer, in the layout of `index_map(*axes of the block)`; the old one becomes a copy
        of it."""
        return self._reindexed("reindex_cache_write", block, "write", write_buffer_index, storage_scope, index_map)

    def _reindexed(self, step: str, block: BlockRV, side: str, index: object, word: str, index_map: object) -> BlockRV:
        function, tree, s = self.located_block(block)
        scope = memory_scope(step, word)
        buffer = self._given(step, s, side + "s", f"{side}_buffer_index", index)
        noted = self.noted
        self._one_writer(step, tree, buffer, tree.scope(s))
        if tree.inside(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': it has blocks in it")
        chosen = as_index_map(index_map, len(s.vars))
        try:
            exprs = chosen.map_indices([v for v in s.vars])
            shape = chosen.map_shape([e for e in s.extents])
        except ExpressionError as error:
            raise ScheduleError(f"{step} of '{s.name_hint}': {error.message}") from None
        access = only_access(step, tree, s, buffer)
        axes = axes_of(s)
        rows = [[a.var.name for a in axes if any(uses(e, (a.var,)) for e in side_)] for side_ in (access, exprs)]
        if rows[0] != rows[1]:
            raise ScheduleError(
                f"{step} of '{s.name_hint}': '{buffer.data.name}' is accessed by the axes {', '.join(rows[0]) or 'none'}, the map "
                f"is of {', '.join(rows[1]) or 'none'}"
            )
        used = [a for a in axes if a.var.name in rows[0] and any(uses(e, (a.var,)) for e in access)]
        if not once(exprs, {a.var: constant(a.extent) or 0 for a in used}):
            raise ScheduleError(f"{step} of '{s.name_hint}': the map is not surely one to one")
        whole = self._copy(step, function, tree, buffer, scope, word)
        copy = Buffer(whole.data, buffer.dtype, tuple(shape))

        def layout(points: tuple[Expr, ...]) -> tuple[Expr, ...]:
            mapping: dict[Var, Expr] = {a.var: p for a, p in zip(used, points)}
            return tuple(at(e, mapping) for e in exprs)

        body, name = self.redirected(step, tree, s, side, buffer, copy, used, layout)
        self.noted = {**noted, "index_map": chosen}
        self.commit(function, body)
        return self.new_block(function, name)

    @instruction("CacheIndex", ("block",), ("storage_scope", "cse_thresh"))
    def cache_index(self, block: BlockRV, storage_scope: str, cse_thresh: int = 0) -> list[BlockRV]:
        """Compute the indices at which a block reads before it, into buffers `index_var_0`, ... `cse_thresh`: 0 for whole
        indices, n for what is in them at least n times."""
        step = "cache_index"
        function, tree, s = self.located_block(block)
        scope = memory_scope(step, storage_scope)
        if isinstance(cse_thresh, bool) or not isinstance(cse_thresh, int):
            raise ExpressionTypeError(f"{step}: cse_thresh is an int, got {type(cse_thresh).__name__}")
        if cse_thresh < 0:
            raise ScheduleError(f"{step} of '{s.name_hint}': cse_thresh is {cse_thresh}, not 0 or more")
        if tree.inside(s):
            raise ScheduleError(f"{step} of '{s.name_hint}': it has blocks in it")
        terms = _terms(s, cse_thresh)
        around = tree.scope(s)
        body = tree.function.body
        taken = {b.data.name for b in self.buffers(function).values()}
        names, found = set(tree.blocks), []
        loads: dict[int, tuple[Expr, Expr]] = {}
        place = tree.position(s, around)
        made: list[S.Stmt] = []
        copies = []
        for key, e in terms.items():
            number_ = next(n for n in range(len(taken) + len(terms)) if f"index_var_{n}" not in taken)
            taken.add(f"index_var_{number_}")
            name = next(n for n in (f"index_{i}" for i in range(number_, number_ + len(names) + 1)) if n not in names)
            names.add(name)
            copy, nest, load = _computed(step, s, e, f"index_var_{number_}", scope, name)
            copies.append(copy)
            made += nest
            loads[key] = e, load
            found.append(name)
        body = edit_block(body, s.name_hint, lambda b: _Loaded(loads).body((b,)))
        body = insert(body, again(body, around), place, tuple(made))
        for copy in copies:
            body = allocated(body, copy, around)
        self.commit(function, body)
        return [self.new_block(function, name) for name in found]


def _indices(s: S.Block) -> Iterator[Expr]:
    """The indices at which a block reads that are more than an axis or a number."""
    own = set(s.vars)
    for x in walk_stmts((*s.init, *s.body)):
        for root in x.exprs():
            for e in walk_exprs(root):
                if isinstance(e, E.BufferLoad):
                    yield from (i for i in e.indices if _is_term(i, own))


def _is_term(e: Expr, own: set[Var]) -> bool:
    if not isinstance(e, (Binary, E.Select, E.Cast)) or not e.dtype.is_scalar or not is_pure(e):
        return False
    plain = not any(isinstance(x, E.BufferLoad) for x in walk_exprs(e))
    return plain and bool(variables(e)) and variables(e) <= own


def _terms(s: S.Block, least: int) -> dict[int, Expr]:
    """What is to be computed before, by a key that equal expressions share; larger ones first."""
    own, interner = set(s.vars), Interner()
    counts: dict[int, int] = {}
    found: dict[int, Expr] = {}
    for index in _indices(s):
        for e in walk_exprs(index) if least else (index,):
            if _is_term(e, own):
                key = interner.key(e)
                found.setdefault(key, e)
                counts[key] = counts.get(key, 0) + 1
    kept: dict[int, Expr] = {}
    for key in sorted(found, key=lambda k: -len(list(walk_exprs(found[k])))):
        if counts[key] >= max(least, 1):
            kept[key] = found[key]
            for inner in list(walk_exprs(found[key]))[1:] if least else ():  # they are in what is computed now
                if (k := interner.key(inner)) in counts:
                    counts[k] -= counts[key]
    return kept


def _computed(
    step: str, s: S.Block, e: Expr, label: str, scope: str, name: str
) -> tuple[Buffer, tuple[S.Stmt, ...], Expr]:
    """The buffer of a term, the nest that computes it, and the element of it in the block."""
    used = [a for a in axes_of(s) if uses(e, (a.var,))]
    if any(constant(a.start) != 0 for a in used):
        raise ScheduleError(f"{step} of '{s.name_hint}': an axis does not begin at 0")
    kind = kind_of(e)
    copy = Buffer(Var(label, pointer_type(kind, scope)), kind, tuple(a.extent for a in used))
    axes = [
        Axis(Var(f"v{i}", a.var.dtype), "spatial", a.start, a.extent, Var(f"ax{i}", a.var.dtype))
        for i, a in enumerate(used)
    ]
    mapping: dict[Var, Expr] = {a.var: new.var for a, new in zip(used, axes)}
    store = S.BufferStore(view(copy), tuple(a.var for a in axes), at(e, mapping), None)
    return copy, loops_of(new_block(name, axes, (store,))), E.BufferLoad(view(copy), tuple(a.var for a in used))


class _Loaded(Rewriter):
    """Terms of indices as elements of buffers."""

    def __init__(self, loads: dict[int, tuple[Expr, Expr]]) -> None:
        super().__init__()
        self.terms = list(loads.values())
        self.same = Interner().same

    @rewrites(E.BufferLoad)
    def rewrite_load(self, e: E.BufferLoad) -> Expr:
        return E.BufferLoad(e.buffer, tuple(map(self._index, e.indices)), e.mask)

    def _index(self, e: Expr) -> Expr:
        for term, load in self.terms:
            if self.same(term, e):
                return load
        return self.expr(e) if isinstance(e, E.BufferLoad) else e.map(self._index)

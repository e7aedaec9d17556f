"""Steps that say something about loops, blocks and buffers: annotations, memories, alignment, regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import STORAGE, pointer_type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Buffer, Expr, FloatImm, IntImm, Var
from compassc.ir.operators import as_expr, data_type
from compassc.te.buffers import separators_of
from compassc.te.errors import ScheduleError
from compassc.tir.addresses import check_no_address
from compassc.tir.blocks import sub, view
from compassc.tir.buffer_rewriting import Replaced
from compassc.tir.caching import Caching, memory_scope
from compassc.tir.canonical import EXPLICIT
from compassc.tir.index_map import IndexMap
from compassc.tir.region_cover import data_of
from compassc.tir.trace import BlockRV, ExprRV, LoopRV, instruction
from compassc.tir.tree import Tree, edit


class MissingAnnotation(ScheduleError, IndexError):
    """A loop or block does not have the annotation that is to be removed."""


class Notes(Caching):
    """Steps that say something."""

    @instruction("Annotate", ("block_or_loop", "ann_val"), ("ann_key",))
    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: object) -> None:
        """Give a loop or block an annotation, unless it has one of that name: a number, a word, a list or a dictionary."""
        if not isinstance(ann_key, str):
            raise ExpressionTypeError(f"annotate: ann_key is a str, got {type(ann_key).__name__}")
        value = self._noted_value(ann_val)
        if isinstance(ann_val, Expr):
            self.noted = {"ann_val": value}
        function, tree, s = self._located(block_or_loop)
        notes = dict(s.annotations)
        if ann_key in notes:
            return
        made = s.replace(annotations=(*s.annotations, (ann_key, value)))
        self.commit(function, edit(tree.function.body, {s: (made,)}))

    @instruction("Unannotate", ("block_or_loop",), ("ann_key",))
    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Take an annotation away. MissingAnnotation (an IndexError) when there is none of that name."""
        function, tree, s = self._located(block_or_loop)
        notes = dict(s.annotations)
        if ann_key not in notes:
            what = s.loop_var.name if isinstance(s, S.For) else s.name_hint
            raise MissingAnnotation(f"unannotate of '{what}': it has no annotation '{ann_key}'")
        del notes[ann_key]
        self.commit(function, edit(tree.function.body, {s: (s.replace(annotations=tuple(notes.items())),)}))

    def _located(self, rv: BlockRV | LoopRV) -> tuple[str, Tree, S.For | S.Block]:
        return self.located_loop(rv) if isinstance(rv, LoopRV) else self.located_block(rv)

    def _noted_value(self, value: object) -> Any:
        if isinstance(value, ExprRV):
            return self.number(value)
        if isinstance(value, (list, tuple)):
            return [self._noted_value(v) for v in value]
        if isinstance(value, dict):
            return {str(k): self._noted_value(v) for k, v in value.items()}
        if isinstance(value, (str, int, float)):
            return value
        if isinstance(value, (IntImm, FloatImm)):
            return value.value
        raise ExpressionTypeError(f"annotate: ann_val is a str, int, float, list or dict, got {type(value).__name__}")

    # --------------------------------------------------------------------------------------------------------- buffers

    @instruction("StorageAlign", ("block",), ("buffer_index", "axis", "factor", "offset"))
    def storage_align(self, block: BlockRV, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Have the stride of a dimension of a buffer that a block writes be `offset` modulo `factor`."""
        step = "storage_align"
        function, tree, s = self.located_block(block)
        buffer = self._allocated(step, function, s, buffer_index)
        check_no_address(f"{step} of '{buffer.data.name}'", tree, buffer.data)
        rank = len(buffer.shape)
        if not -rank <= axis < rank:
            raise ScheduleError(f"{step} of '{buffer.data.name}': there is no dimension {axis} among {rank}")
        if factor <= 0:
            raise ScheduleError(f"{step} of '{buffer.data.name}': the factor is {factor}, not positive")
        notes = dict(s.annotations)
        given = notes.get("buffer_dim_align", [])
        if not isinstance(given, list) or not all(isinstance(r, list) and len(r) == 4 for r in given):
            raise ScheduleError(
                f"{step} of '{s.name_hint}': its annotation 'buffer_dim_align' is {given}, no list of [buffer, axis, factor, offset]"
            )
        rows = [r for r in given if r[:2] != [buffer_index, axis % rank]]
        notes["buffer_dim_align"] = [*rows, [buffer_index, axis % rank, factor, offset]]
        self.commit(function, edit(tree.function.body, {s: (s.replace(annotations=tuple(notes.items())),)}))

    @instruction("SetScope", ("block",), ("buffer_index", "storage_scope"))
    def set_scope(self, block: BlockRV, buffer_index: object, storage_scope: str) -> None:
        """Have a buffer that a block writes lie in another memory; it is called `NAME_scope` then."""
        step = "set_scope"
        function, _, s = self.located_block(block)
        scope = memory_scope(step, storage_scope)
        buffer = self._given(step, s, "writes", "buffer_index", buffer_index)
        self._check_allocated(step, function, buffer)
        if buffer.scope == scope:
            return
        made = self._copy(step, function, self.tree(function), buffer, scope, storage_scope)
        self._replace(function, buffer, made, lambda e: e, lambda e: e)

    @instruction("UnsafeSetDType", ("block",), ("buffer_index", "dtype"))
    def unsafe_set_dtype(self, block: BlockRV, buffer_index: int, dtype: str) -> None:
        """Have a buffer that a block writes hold another type: what is stored is cast to it, what is read cast back."""
        step = "unsafe_set_dtype"
        function, _, s = self.located_block(block)
        buffer = self._allocated(step, function, s, buffer_index)
        kind = data_type(dtype)
        if kind not in STORAGE:
            raise ScheduleError(f"{step} of '{buffer.data.name}': memory does not hold {kind}")
        check_no_address(f"{step} of '{buffer.data.name}'", self.tree(function), buffer.data)
        old = buffer.dtype
        data = Var(buffer.data.name, pointer_type(kind, buffer.scope))
        self._replace(
            function, buffer, buffer.replace(data=data, dtype=kind), lambda e: E.Cast(old, e), lambda e: E.Cast(kind, e)
        )

    @instruction("SetAxisSeparator", ("block",), ("buffer", "axis_separators"))
    def set_axis_separator(self, block: BlockRV, buffer: object, axis_separators: Sequence[int] | None = None) -> None:
        """Say where a buffer has boundaries between physical dimensions: how many of its dimensions stand before each. In
        memory of one dimension, which hosts and NPUs have, the physical dimensions lie one after another."""
        step = "set_axis_separator"
        function, _, s = self.located_block(block)
        side, found = self.given_buffer(step, s, buffer)
        try:
            listed = separators_of(found.data.name, axis_separators, len(found.shape))
        except ExpressionError as error:
            raise ScheduleError(f"{step} of '{found.data.name}': {error.message}") from None
        place = [data_of(r) for r in getattr(s, side + "s")].index(found.data)
        self.noted = {"buffer": [side, place], "axis_separators": list(listed)}
        made = found.replace(axis_separators=listed)
        self._replace(function, found, made, lambda e: e, lambda e: e)

    def _allocated(self, step: str, function: str, s: S.Block, index: object) -> Buffer:
        buffer = self._given(step, s, "writes", "buffer_index", index)
        self._check_allocated(step, function, buffer)
        return buffer

    def _check_allocated(self, step: str, function: str, buffer: Buffer) -> None:
        if buffer.data in self.parameters(function):
            raise ScheduleError(f"{step} of '{buffer.data.name}': it is a parameter of the function")

    def _replace(
        self, function: str, old: Buffer, new: Buffer, load: Callable[[Expr], Expr], store: Callable[[Expr], Expr]
    ) -> None:
        body = Replaced(old.data, new, None, load, store).body(self.function(function).body)
        self.commit(function, body)

    # --------------------------------------------------------------------------------------------------------- regions

    @instruction("UnsafeHideBufferAccess", ("block",), ("buf_type", "buf_index_array"))
    def unsafe_hide_buffer_access(self, block: BlockRV, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """Take regions off what a block is said to read or write."""
        step = "unsafe_hide_buffer_access"
        function, tree, s = self.located_block(block)
        side = self._side(step, buf_type)
        regions = getattr(s, side)
        for i in buf_index_array:
            if not 0 <= i < len(regions):
                raise ScheduleError(f"{step} of '{s.name_hint}': there is no place {i} among its {len(regions)} {side}")
        kept = tuple(r for i, r in enumerate(regions) if i not in buf_index_array)
        made = self._explicit(s, side, kept, list(range(len(kept))), closed=True)
        self.commit(function, edit(tree.function.body, {s: (made,)}))

    @instruction("AnnotateBufferAccess", ("block",), ("buffer_index", "buf_type", "gen_new_ranges"))
    def annotate_buffer_access(self, block: BlockRV, buffer_index: int, buf_type: str, gen_new_ranges: Any) -> None:
        """Say what region of a buffer a block reads or writes: `gen_new_ranges(*axes)` gives (begin, end) per dimension."""
        step = "annotate_buffer_access"
        function, tree, s = self.located_block(block)
        side = self._side(step, buf_type)
        buffer = self._given(step, s, side, "buffer_index", buffer_index)
        if isinstance(gen_new_ranges, IndexMap):
            flat = gen_new_ranges.map_indices(s.vars)
        else:
            given = list(gen_new_ranges(*s.vars))
            if len(given) == 2 * len(buffer.shape) and not any(isinstance(x, (tuple, list)) for x in given):
                given = list(zip(given[::2], given[1::2]))  # as the text of a trace has them
            flat = [
                as_expr(x) for pair in given for x in (pair if isinstance(pair, (tuple, list)) else (pair, pair + 1))
            ]
        if len(flat) != 2 * len(buffer.shape):
            raise ScheduleError(f"{step} of '{s.name_hint}': '{buffer.data.name}' has {len(buffer.shape)} dimensions")
        starts, ends = flat[::2], flat[1::2]
        region = E.BufferRegion(view(buffer), tuple(starts), tuple(sub(e, b) for b, e in zip(starts, ends)))
        place = self.noted.get("buffer_index", buffer_index)
        regions = tuple(region if i == place else r for i, r in enumerate(getattr(s, side)))
        key = EXPLICIT[side]
        before: Any = dict(s.annotations).get(key, [])
        made = self._explicit(s, side, regions, sorted({*before, place}))
        self.noted["gen_new_ranges"] = IndexMap(s.vars, flat)
        self.commit(function, edit(tree.function.body, {s: (made,)}))

    def _side(self, step: str, buf_type: str) -> str:
        if buf_type not in ("read", "write"):
            raise ScheduleError(f"{step}: '{buf_type}' is neither read nor write")
        return buf_type + "s"

    def _explicit(
        self, s: S.Block, side: str, regions: tuple[Expr, ...], places: list[int], closed: bool = False
    ) -> S.Block:
        notes = dict(s.annotations)
        notes[EXPLICIT[side]] = ["only", *places] if closed else places
        return s.replace(**{side: regions}, annotations=tuple(notes.items()))

"""IR sides of the script calls that are not operations: they check their arguments and return a spec for the parser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core.errors import CompassError

from .dispatch import register_ir_api
from .specs import (
    AllocSpec,
    BlockSpec,
    ConstSpec,
    LoopSpec,
    MatchSpec,
    MetaVar,
    check_alloc,
    check_stages,
    const_table,
    shape_items,
)

if TYPE_CHECKING:
    from compassc.language.parser.values import PointerValue


@register_ir_api
def grid(*extents: object) -> LoopSpec:
    """Nested serial loops from 0, outermost first: `for i, j in S.grid(h, w)`."""
    if not extents:
        raise CompassError(
            "S.grid needs at least one extent", code="arguments", help="write one per loop: for i, j in S.grid(h, w)"
        )
    return LoopSpec("grid", extents)


@register_ir_api
def vectorized(start: object, stop: object = None) -> LoopSpec:
    """A loop whose body becomes vector operations: `for i in S.vectorized(n)`."""
    return LoopSpec("vectorized", (start,) if stop is None else (start, stop))


@register_ir_api
def unroll(start: object, stop: object = None, step: object = 1) -> LoopSpec:
    """A loop of constant extent whose body is repeated in the C text: `for i in S.unroll(4)`.

    `i` is an int32 with a known value: also an index of tuples and lists, a shape, an option, a condition for `if`.
    """
    if stop is None:
        return LoopSpec("unroll", (start,) if type(step) is int and step == 1 else (0, start, step))
    return LoopSpec("unroll", (start, stop) if type(step) is int and step == 1 else (start, stop, step))


@register_ir_api
def tec_range(start: object, stop: object = None) -> LoopSpec:
    """Run the body on every TEC with the TEC's number: `for t in S.tec_range(4)`."""
    return LoopSpec("tec_range", (start,) if stop is None else (start, stop))


@register_ir_api
def pipelined(start: object, stop: object = None, step: object = None, *, stages: int = 2) -> LoopSpec:
    """A loop over tiles whose copies run beside its work: `for t in S.pipelined(0, n, TILE)`.

    Copies between device memory and arrays in SRAM that stand directly in the body are started `stages - 1` turns ahead,
    or waited for later. The arrays have room for several tiles then; a turn finds in them what it copies itself.
    """
    args = (start,) if stop is None else (start, stop) if step is None else (start, stop, step)
    return LoopSpec("pipelined", args, (("stages", check_stages(stages)),))


@register_ir_api
def meta_var(value: object) -> MetaVar:
    """Keep a value a Python value when it is assigned to a name in a kernel."""
    return MetaVar(value)


@register_ir_api
def alloc(shape: object, dtype: object, scope: str = "private") -> AllocSpec:
    """Storage of constant size; the result is a pointer to its first item."""
    return AllocSpec("pointer", *check_alloc("S.alloc", shape, dtype, scope), scope)


@register_ir_api
def alloc_buffer(shape: object, dtype: object, scope: str = "private") -> AllocSpec:
    """Storage of constant size; the result is an N-dimensional buffer."""
    return AllocSpec("buffer", *check_alloc("S.alloc_buffer", shape, dtype, scope), scope)


@register_ir_api
def alloc_const(shape: object, dtype: object, data: object) -> ConstSpec:
    """A read-only table whose content is known when the kernel is built."""
    return const_table(shape, dtype, data)


@register_ir_api
def match_buffer(pointer: PointerValue, shape: object) -> MatchSpec:
    """View a parameter pointer as an N-dimensional row-major buffer."""
    return MatchSpec(pointer, shape_items(shape))


@register_ir_api
def block(name: str = "", no_realize: bool = False) -> BlockSpec:
    """A schedulable block: `with S.block("name"):`."""
    return BlockSpec(name, no_realize)

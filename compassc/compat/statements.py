"""Statements that programs make of the framework's arguments: memory, attributes, assertions and blocks.

Where the framework nests the rest of a body in a statement, that and the rest are what is made (`Statements`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

import numpy as np

from compass_core.errors import UsageError
from compassc.analysis.conditions import TRUE
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, UINT8, PointerType
from compassc.ir.exprs import Expr, IntImm
from compassc.ir.iter_vars import IterVar, Range
from compassc.ir.node import Statements
from compassc.ir.operators import as_expr, binary, cast, data_type
from compassc.ir.tensor_exprs import DataProducer
from compassc.ir.tensor_stmts import ProducerRealize
from compassc.te.buffers import View, whole
from compassc.te.ir_builder import truth
from compassc.te.opaque import body_of
from compassc.tir.blocks import Axis, number, with_axes

_KINDS = {0: "spatial", 2: "reduce", 3: "scan", 4: "opaque"}
"""The kinds of axes of blocks by their numbers in the framework."""


class WrongStatement(UsageError, TypeError):
    """A statement cannot be made of an argument."""


def text_or_value(given: object) -> Expr:
    """A value, or a text as the expression that it is in attributes."""
    return E.StringImm(given) if isinstance(given, str) else as_expr(given)


def attr_stmt(node: object, attr_key: str, value: object, body: object, span: None = None) -> S.AttrStmt:
    """What a program says of a body: `attr_key` of `node` (a variable, a buffer, an axis, a text or a number) is `value`."""
    whose = stored(node).data if isinstance(node, (View, E.Buffer)) else text_or_value(getattr(node, "var", node))
    return S.AttrStmt(whose, str(attr_key), text_or_value(value), Statements(body_of(body, "AttrStmt")))


def producer_realize(
    producer: DataProducer,
    bounds: Sequence[Range | Expr],
    condition: object,
    body: object,
    storage_scope: str = "",
    span: None = None,
) -> ProducerRealize:
    """The statements in which a part of a tensor, a range of each axis, is there."""
    ranges = _ranges(bounds)
    starts, extents = tuple(r.min for r in ranges), tuple(r.extent for r in ranges)
    inside = Statements(body_of(body, "ProducerRealize"))
    return ProducerRealize(producer, starts, extents, truth(condition), inside, storage_scope)


def _ranges(given: Sequence[Range | Expr]) -> list[Range]:
    return [r if isinstance(r, Range) else Range.from_min_extent(r, 1) for r in given]


def assert_stmt(condition: object, message: object, body: object, span: None = None) -> Statements:
    """What holds in a body."""
    return Statements((S.AssertStmt(truth(condition), text_or_value(message)), *body_of(body, "AssertStmt")))


def allocate(
    buffer_var: object,
    dtype: object,
    extents: Sequence[object],
    condition: object,
    body: object,
    annotations: Mapping[str, object] | None = None,
    span: None = None,
) -> Statements:
    """Memory for a body. TypeError for a variable that is no address of such elements, and for memory under a condition."""
    if not isinstance(holds := as_expr(condition), IntImm) or not holds.value:
        raise WrongStatement(f"memory is allocated where {holds}", code="input", help="put it under an IfThenElse")
    if annotations:
        raise WrongStatement("memory has no annotations", code="input", help="leave them out")
    return Statements((S.Alloc(_memory(buffer_var, dtype, extents)), *body_of(body, "Allocate")))


def allocate_const(
    buffer_var: object,
    dtype: object,
    extents: Sequence[object],
    data_or_idx: object,
    body: object,
    annotations: Mapping[str, object] | None = None,
    span: None = None,
) -> Statements:
    """A table of numbers for a body; TypeError for the index of one in a module."""
    if isinstance(data_or_idx, int):
        raise WrongStatement("tables are given by their numbers", code="input", help="give an array")
    buffer = _memory(buffer_var, dtype, extents)
    values = np.asarray(data_or_idx.numpy() if hasattr(data_or_idx, "numpy") else data_or_idx, str(buffer.dtype))
    return Statements((S.AllocConst(buffer, values.tobytes()), *body_of(body, "AllocateConst")))


def _memory(buffer_var: object, dtype: object, extents: Sequence[object]) -> E.Buffer:
    data, kind = as_expr(buffer_var), data_type(dtype)
    elem = data.dtype.elem if isinstance(data.dtype, PointerType) else None
    if not isinstance(data, E.Var) or (elem is not kind and not (kind is BOOL and elem is UINT8)):
        raise WrongStatement(
            f"'{data}' of {data.dtype} is no address of {kind}",
            code="input",
            help=f'take tvm.tir.Var(name, PointerType(PrimType("{kind}")))',
        )
    return E.Buffer(data, kind, tuple(map(as_expr, extents)))


def decl_buffer(buffer: object, body: object, span: None = None) -> Statements:
    """A buffer for a body, in memory that there is."""
    return Statements((S.DeclBuffer(stored(buffer)), *body_of(body, "DeclBuffer")))


def stored(given: object) -> E.Buffer:
    """The buffer itself of what was declared. TypeError for other things."""
    found = given.buffer if isinstance(given, View) else given
    if not isinstance(found, E.Buffer):
        raise WrongStatement(f"a {type(given).__name__} is no buffer", code="input", help="take te.decl_buffer(shape)")
    return found


def buffer_region(buffer: object, region: Sequence[Range | Expr], span: None = None) -> E.BufferRegion:
    """The part of a buffer in a range of each dimension."""
    ranges = _ranges(region)
    return E.BufferRegion(stored(buffer), tuple(r.min for r in ranges), tuple(r.extent for r in ranges))


def block(
    iter_vars: Sequence[IterVar],
    reads: Sequence[E.BufferRegion],
    writes: Sequence[E.BufferRegion],
    name_hint: str,
    body: object,
    init: object = None,
    alloc_buffers: Sequence[object] | None = None,
    match_buffers: Sequence[object] | None = None,
    annotations: Mapping[str, object] | None = None,
    span: None = None,
) -> S.Block:
    """A block, whose axes are where their variables are until `BlockRealize` says where. TypeError for parts of buffers under
    other names (`match_buffers`): accesses of the whole stand for them."""
    if match_buffers:
        raise WrongStatement("a block has no match_buffers", code="input", help="access the whole buffers")
    axes = []
    for axis in iter_vars:
        if not isinstance(axis, IterVar) or axis.dom is None or int(axis.iter_type) not in _KINDS:
            raise WrongStatement(f"{axis} is no axis of a block", code="input", help="IterVar(range, var, kind)")
        axes.append(Axis(axis.var, _KINDS[int(axis.iter_type)], axis.dom.min, axis.dom.extent, axis.var))
    memory = tuple(S.Alloc(stored(b)) for b in alloc_buffers or ())
    begun = () if init is None else Statements(body_of(init, "Block"))
    whole = Statements((*memory, *body_of(body, "Block")))
    notes = tuple((annotations or {}).items())
    made = S.Block(name_hint, (), (), (), (), (), TRUE, tuple(reads), tuple(writes), begun, whole, notes)
    return with_axes(made, axes)


def block_realize(iter_values: Sequence[object], predicate: object, block: S.Block, span: None = None) -> S.Block:
    """The block where its axes have certain values, and a condition holds. TypeError unless there is a value for each."""
    if not isinstance(block, S.Block) or len(iter_values) != len(block.vars):
        raise WrongStatement(
            "a block is realized with a value for each of its axes", code="input", help="give them in order"
        )
    where = number(1, TRUE) if predicate is True else truth(predicate)
    return block.replace(iter_values=tuple(map(as_expr, iter_values)), predicate=where)


class ForKind(IntEnum):
    """What a loop is: equal to its number in the framework and to the word here, which is a loop's `kind`."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other in self.kinds
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The words for it."""
        bound = self is ForKind.THREAD_BINDING
        return (*S.THREAD_LOOPS, *S.VIRTUAL_LOOPS, "tec") if bound else (self.name.lower(),)


def variable(given: object) -> E.Var:
    """The variable itself. TypeError for other values."""
    found = as_expr(given)
    if not isinstance(found, E.Var):
        raise WrongStatement(f"{found} is no variable", code="input", help="take te.var(name)")
    return found


def for_loop(
    loop_var: object,
    min: object,
    extent: object,
    kind: ForKind | int | str,
    body: object,
    thread_binding: None = None,
    annotations: Mapping[str, object] | None = None,
    span: None = None,
) -> S.For:
    """The loop; `kind` is one of `ForKind`. TypeError for a variable that is none, and for kinds that there are not."""
    var = variable(loop_var)
    known = next((k for k in ForKind if k == kind and k is not ForKind.THREAD_BINDING), None)
    if thread_binding is not None or known is None:
        raise WrongStatement(
            f"there is no loop of the kind {kind!r}",
            code="input",
            help=f"ForKind has {', '.join(k.name for k in ForKind)}; threads are bound by schedules",
        )
    start, size = (cast(whole(e, f"an end of the loop '{var.name}'"), var.data_type) for e in (min, extent))
    stop = size if isinstance(start, E.IntImm) and start.value == 0 else binary("add", start, size)
    one, notes = E.IntImm(var.data_type, 1), tuple((annotations or {}).items())
    return S.For(var, known.kinds[0], start, stop, one, body_of(body, "For"), notes)


def let(var: object, value: object, body: object, span: None = None) -> Statements:
    """A variable for the rest of a body, which is what is made."""
    defined = variable(var)
    return Statements((S.Let(defined, cast(value, defined.dtype)), *body_of(body, "LetStmt")))


def sequence(seq: object, span: None = None) -> Statements:
    """Several statements as a body."""
    made = Statements(body_of(seq, "SeqStmt"))
    if len(made) < 2:
        raise WrongStatement(f"a sequence of {len(made)} statements", code="input", help="take the statement itself")
    return made

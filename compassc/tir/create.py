"""From tensor expressions to a function of blocks: a block per operation, in plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID, dtype, pointer_type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.names import NamePool, identifier
from compassc.ir.operators import kind_of
from compassc.ir.stmts import EXPRESSIONS, Body, PrimFunc, Stmt
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.tensor_stmts import reduced, stored
from compassc.ir.visit import all_exprs, rename_vars, rewrite, walk_stmts
from compassc.te.bound_statements import Target, bound
from compassc.te.buffers import View
from compassc.te.hybrid.op import HybridOp
from compassc.te.lowering import parameters_of
from compassc.te.machine import Machine
from compassc.te.opaque import ExternOp
from compassc.te.packed import text_of
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, post_order, tensor_of
from compassc.tir.blocks import Axis, add, new_block, view
from compassc.tir.canonical import canonical

_ANY = Machine("")
_NOT_COPIED = ("layout_free_placeholders", "const_matrix", "auto_scheduler_simplify_const_tensor_indices", "workload")


def create_prim_func(ops: Sequence[Any], index_dtype_override: str | None = None) -> PrimFunc:
    """The function whose parameters are the tensors and variables `ops`, in order: a block per operation that they need.

    What is computed and no parameter becomes memory of the function. ExpressionError for a placeholder that is needed and
    not given, and for calls of functions that are not packed. `index_dtype_override`: only int32, which is what indices are.
    """
    if index_dtype_override is not None and dtype(index_dtype_override) is not INT32:
        raise ExpressionError(f"indices are int32 here, not {index_dtype_override}", "cast the sizes")
    given = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for arg in given:
        if not isinstance(arg, (Tensor, Expr)):
            raise ExpressionTypeError(f"create_prim_func takes tensors and variables, got {type(arg).__name__}")
    buffers, declarations, variables, implied = parameters_of(given, _ANY)
    order = post_order([t.op for t in given if isinstance(t, Tensor)])
    made = _Functions(buffers, [v.name for v in variables])
    for op in order:
        made.operation(op, given)
    attrs: list[tuple[str, object]] = [(EXPRESSIONS, True), *implied]
    free = {i for op in order for i in made.layout_free(op, given)}
    if free:
        attrs.append(("layout_free_buffers", sorted(free)))
    body = (*declarations, *made.allocations, *made.nests)
    calls = [e.func for e in all_exprs(body, E.F_FUNC) if isinstance(e, E.FuncCall) and not text_of(e.func)]
    if calls:
        raise ExpressionError(
            f"'{calls[0]}' is called, but a function of blocks calls only packed functions",
            "schedule the tensors with te instead",
        )
    return canonical(PrimFunc("main", variables, body, VOID, tuple(attrs)))


class _Functions:
    def __init__(self, buffers: dict[Tensor, Buffer], names: list[str]) -> None:
        self.buffers = dict(buffers)
        self.allocations: list[Stmt] = []
        self.nests: list[Stmt] = []
        self.names = NamePool(names)
        self.blocks = NamePool()

    def operation(self, op: Operation, given: list[Any]) -> None:
        if isinstance(op, PlaceholderOp):
            if op.output(0) not in self.buffers:
                listed = ", ".join(a.name for a in given)
                raise ExpressionError(
                    f"'{op.name}' is needed but not among the arguments ({listed})", f"add {op.output(0)!r} to them"
                )
            return
        if not isinstance(op, (ComputeOp, ExternOp)) or isinstance(op, HybridOp):
            raise ExpressionTypeError(f"'{op.name}' is a {op.kind}, for which there are no blocks")
        for tensor in op.outputs:
            if tensor not in self.buffers:
                kind = _ANY.storage_type(tensor.name, tensor.dtype)
                data = Var(self.names.take(identifier(tensor.name)), pointer_type(kind, "global"))
                buffer = Buffer(data, kind, tuple(tensor.shape) or (IntImm(INT32, 1),))
                self.buffers[tensor] = buffer
                self.allocations.append(S.Alloc(buffer))
        if isinstance(op, ExternOp):
            self._extern(op)
        else:
            self._compute(op)

    def layout_free(self, op: Operation, given: list[Any]) -> list[int]:
        """The parameters whose layout the attributes of an operation leave open."""
        listed = op.attrs.get(_NOT_COPIED[0], [])
        return [given.index(t) for t in listed if t in given]

    # ------------------------------------------------------------------------------------------------------- one block

    def _compute(self, op: ComputeOp) -> None:
        roots = [*op.axis, *op.reduce_axis]
        loops = [Var(identifier(a.name), kind_of(a.as_expr())) for a in roots]
        notes = tuple((k, v) for k, v in op.attrs.items() if k not in _NOT_COPIED)
        if op.reduce_axis:
            blocks = [self._block(op, op.name, roots, loops, self._reduction)]
        elif op.num_outputs == 1:
            blocks = [self._block(op, op.name, roots, loops, lambda o, m: ((), self._store(o, 0, m)))]
        else:
            blocks = [
                self._block(op, t.name, roots, loops, lambda o, m, i=i: ((), self._store(o, i, m)))
                for i, t in enumerate(op.outputs)
            ]
        body: Body = tuple(b.replace(annotations=notes) for b in blocks)
        for axis, var in reversed(list(zip(roots, loops))):
            assert axis.dom is not None
            one = IntImm(kind_of(var), 1)
            body = (S.For(var, "serial", axis.dom.min, add(axis.dom.min, axis.dom.extent), one, body),)
        self.nests += body

    def _extern(self, op: ExternOp) -> None:
        """A block without axes of the statements of the user, on the buffers of the tensors."""
        parts = {}
        for own, tensor in [*zip(op.input_placeholders, op.inputs), *zip(op.output_placeholders, op.outputs)]:
            dims = tuple(range(len(own.shape)))
            parts[own.data] = View(own), Target(view(self.buffers[tensor]), (_ZERO,) * len(dims), dims)
        body = tuple(bound(op.body, parts, op.kernels, f"'{op.name}'"))
        inner = [v for s in walk_stmts(body) for v in S.defined(s) if v.nonneg]
        body = rename_vars(
            body, {v: Var(v.name, v.dtype) for v in inner}
        )  # loops of such functions say it by their ranges
        self.nests.append(new_block(self.blocks.take(identifier(op.name)), (), body))

    def _block(self, op: ComputeOp, name: str, roots: list[IterVar], loops: list[Var], make: Any) -> S.Block:
        axes = []
        for axis, var in zip(roots, loops):
            assert axis.dom is not None
            kind = "reduce" if axis.is_reduction else "spatial"
            axes.append(Axis(Var(f"v_{var.name}", var.dtype), kind, axis.dom.min, axis.dom.extent, var))
        mapping: dict[Expr, Expr] = {root.as_expr(): a.var for root, a in zip(roots, axes)}
        if not axes:  # a single number
            axes.append(Axis(Var("vi", INT32), "spatial", _ZERO, IntImm(INT32, 1), _ZERO))
        init, body = make(op, mapping)
        return new_block(self.blocks.take(identifier(name)), axes, body, init)

    def _store(self, op: ComputeOp, index: int, mapping: dict[Expr, Expr]) -> Body:
        return stored([self._elements(op, mapping)[index]], [self._expr(op.body[index], mapping)])

    def _elements(self, op: ComputeOp, mapping: dict[Expr, Expr]) -> list[E.BufferLoad]:
        """What an operation computes at a point."""
        indices = tuple(mapping[a.as_expr()] for a in op.axis) or (_ZERO,)
        return [E.BufferLoad(view(self.buffers[t]), indices) for t in op.outputs]

    def _reduction(self, op: ComputeOp, mapping: dict[Expr, Expr]) -> tuple[Body, Body]:
        first = op.body[0]
        assert isinstance(first, Reduce)
        start = [self._expr(e, mapping) for e in (first.init or first.combiner.identity_element)]
        sources = [self._expr(e, mapping) for e in first.source]
        condition = self._expr(first.condition, mapping)
        if not isinstance(condition, IntImm):
            sources = [E.Select(condition, s, i) for s, i in zip(sources, first.combiner.identity_element)]
        elements = self._elements(op, mapping)
        return stored(elements, start), reduced(first.combiner, elements, sources)

    def _expr(self, e: Expr, mapping: dict[Expr, Expr]) -> Expr:
        """An expression of tensors as one of buffers."""

        def replace(x: Expr) -> Expr | None:
            if isinstance(x, ProducerLoad):
                indices = tuple(self._expr(i, mapping) for i in x.indices) or (_ZERO,)
                return E.BufferLoad(view(self.buffers[tensor_of(x)]), indices)
            return mapping.get(x)

        return rewrite(e, replace)


_ZERO = IntImm(INT32, 0)

"""Operations that are no expressions: sequences (`scan`) and statements of the user's (`extern`), and calls of kernels.

Statements are made of what `View`s give: elements are values, `view.store(value, i, j)` writes one, `view.ptr(i, j)` is an
address, `call_kernel` calls a function that was written in the kernel language.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from compassc.analysis.statements import has_blocks
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, INT32, UINT8, VOID, DataType, PointerType
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.operators import as_expr, data_type, immediate
from compassc.ir.stmts import Body, Stmt
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.visit import all_exprs, rewrite, substitute, substitute_body, walk_stmts
from compassc.te.buffers import View, check_bound, decl_buffer, declared, whole
from compassc.te.construct import TagScope, shape_of
from compassc.te.machine import plain_statements
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, tensor_of
from compassc.te.tensor_calls import TensorIntrinCall, called, number_of

if TYPE_CHECKING:
    from compassc.language.functions import PyPrimFunc

Kernels = dict[str, "PyPrimFunc"]
_ZERO = IntImm(INT32, 0)


# ---------------------------------------------------------------------------------------------------------------- scan


class ScanOp(Operation):
    """Tensors whose rows follow from those before: `init` gives the first, `update` the others, read from `state`.

    `scan_axis` counts the rows of `update`; `spatial_axis_` are the other dimensions.
    """

    kind = "scan"

    def __init__(
        self, name: str, init: Sequence[Tensor], update: Sequence[Tensor], state: Sequence[Tensor],
        inputs: Sequence[Tensor], tag: str = "", attrs: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, tag, attrs)
        self.init, self.update = tuple(init), tuple(update)
        self.state_placeholder, self.inputs = tuple(state), tuple(inputs)
        first, end = init[0].shape[0], update[0].shape[0]
        self.scan_axis = IterVar(Range(first, end), f"{name}.idx", IterKind.ORDERED)
        self.spatial_axis_ = tuple(
            IterVar(Range(d), f"{name}.i{i}", IterKind.DATA_PARALLEL) for i, d in enumerate(update[0].shape[1:])
        )
        self.axis = (self.scan_axis, *self.spatial_axis_)
        indices = tuple(a.as_expr() for a in self.axis)
        self.body: tuple[Expr, ...] = tuple(ProducerLoad(t, indices[: t.ndim]) for t in update)

    @property
    def num_outputs(self) -> int:
        return len(self.update)

    def _output(self, index: int) -> Tensor:
        state = self.state_placeholder[index]
        return Tensor(self, index, state.shape, state.dtype)

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(dict.fromkeys([*self.init, *self.update, *self.inputs]))


def scan(
    init: Any,
    update: Any,
    state_placeholder: Any,
    inputs: Any = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any:
    """Rows that follow from those before: row t of `update` is computed from rows of `state_placeholder` before t.

    `init` has the first rows, the state as many as the result. Arguments are tensors, or lists of as many each, and so is
    the result. ExpressionError where lists, types or shapes do not go together.
    """
    several = isinstance(init, (list, tuple))
    groups = [list(g) if isinstance(g, (list, tuple)) else [g] for g in (init, update, state_placeholder)]
    if len({len(g) for g in groups}) != 1:
        counts = ", ".join(f"{len(g)} {what}" for g, what in zip(groups, ("init", "update", "state")))
        raise ExpressionError(f"'{name}': the lists have different lengths: {counts}")
    for first, new, state in zip(*groups):
        _check_state(name, first, new, state)
    lengths = {tuple(number_of(t.shape[0]) for t in group) for group in zip(*groups)}
    if len(lengths) != 1:
        raise ExpressionError(f"'{name}': all states of a scan have the same number of rows")
    given = [] if inputs is None else list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    rows = [_computed(t, f"{name}.init") for t in groups[0]]
    op = ScanOp(
        name, rows, [_computed(t, f"{name}.update") for t in groups[1]], groups[2], given, TagScope.tag_of(tag), attrs
    )
    return op.outputs if several else op.output(0)


def _check_state(name: str, init: Tensor, update: Tensor, state: Tensor) -> None:
    if not init.dtype is update.dtype is state.dtype:
        raise ExpressionTypeError(
            f"'{name}': init is {init.dtype}, update {update.dtype}, the state {state.dtype}: the types differ"
        )
    shapes = [tuple(map(number_of, t.shape)) for t in (init, update, state)]
    if len({len(s) for s in shapes}) != 1 or len({s[1:] for s in shapes}) != 1 or not shapes[0]:
        raise ExpressionError(f"'{name}': init, update and state have other dimensions than each other: {shapes}")
    if shapes[1][0] != shapes[2][0]:
        raise ExpressionError(f"'{name}': update has {shapes[1][0]} rows, the state {shapes[2][0]}")
    if not isinstance(state.op, PlaceholderOp):
        raise ExpressionError(f"'{name}': the state is a placeholder", "make it with te.placeholder")


def _computed(tensor: Tensor, name: str) -> Tensor:
    """The tensor, or a copy of it where it is not computed: a scan has the memory of its parts."""
    if isinstance(tensor.op, ComputeOp):
        return tensor
    axes = tuple(IterVar(Range(d), f"i{i}", IterKind.DATA_PARALLEL) for i, d in enumerate(tensor.shape))
    return ComputeOp(name, axes, (ProducerLoad(tensor, tuple(a.as_expr() for a in axes)),)).output(0)


# -------------------------------------------------------------------------------------------------------------- extern


class ExternOp(Operation):
    """Statements (`body`) on buffers that stand for its inputs and outputs; `kernels`: the functions that they call."""

    kind = "extern"

    def __init__(
        self, name: str, inputs: Sequence[Tensor], buffers: Sequence[Buffer], outputs: Sequence[Buffer], body: Body,
        kernels: Kernels, tag: str = "", attrs: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, tag, attrs)
        self.inputs, self.input_placeholders, self.output_placeholders = tuple(inputs), tuple(buffers), tuple(outputs)
        self.body, self.kernels = body, kernels

    @property
    def num_outputs(self) -> int:
        return len(self.output_placeholders)

    def _output(self, index: int) -> Tensor:
        buffer = self.output_placeholders[index]
        return Tensor(self, index, buffer.shape, buffer.dtype)

    @property
    def input_tensors(self) -> list[Tensor]:
        return list(dict.fromkeys(self.inputs))


_active: list[Kernels] = []


@contextmanager
def collected() -> Iterator[Kernels]:
    """The kernels that are called while statements are made."""
    _active.append({})
    try:
        yield _active[-1]
    finally:
        _active.pop()


def call_kernel(kernel: PyPrimFunc, *args: object) -> Stmt:
    """The statement that calls a function of the kernel language (`@S.prim_func`) without a result.

    Arguments are views and addresses where it takes pointers (of bools: to uint8), else numbers. ExpressionError where
    they do not go with its parameters.
    """
    from compassc.language.functions import PyPrimFunc

    if not isinstance(kernel, PyPrimFunc):
        raise ExpressionTypeError(f"call_kernel takes a function made by S.prim_func, got {type(kernel).__name__}")
    if not _active:
        raise ExpressionError("call_kernel makes a statement of te.extern or of a tensor intrinsic; call it there")
    if len(args) != len(kernel.params):
        raise ExpressionError(f"'{kernel.__name__}' takes {len(kernel.params)} arguments, got {len(args)}")
    if not kernel.ret_type.is_void:
        raise ExpressionError(f"'{kernel.__name__}' returns a value; a function that is called as a statement does not")
    other = _active[-1].setdefault(kernel.__name__, kernel)
    if other is not kernel:
        raise ExpressionError(f"two kernels are called '{kernel.__name__}'", "rename one")
    passed = tuple(_argument(kernel, p.name, p.type, a) for p, a in zip(kernel.params, args))
    return S.Evaluate(E.FuncCall(kernel.__name__, passed, VOID))


def _argument(kernel: PyPrimFunc, name: str, kind: Any, given: object) -> Expr:
    e = given.ptr() if isinstance(given, View) else given if isinstance(given, Expr) else as_expr(given)
    if isinstance(kind, PointerType):
        if isinstance(e.dtype, PointerType) and e.dtype.elem is BOOL and kind.elem is UINT8:  # as memory has them
            base, offset = (e.base, e.offset) if isinstance(e, E.Pointer) else (e, _ZERO)
            return E.Pointer(UINT8, base, offset)
        if not isinstance(e.dtype, PointerType) or e.dtype.elem is not kind.elem:
            raise ExpressionTypeError(f"'{kernel.__name__}': the parameter '{name}' is {kind}, got {e.dtype}")
        return e
    if isinstance(e.dtype, PointerType):
        raise ExpressionTypeError(f"'{kernel.__name__}': the parameter '{name}' is {kind}, got an address")
    if isinstance(e, (IntImm, E.FloatImm)):
        return immediate(e.value, kind)
    return e if e.dtype is kind else E.Cast(kind, e)


def body_of(made: object, what: str) -> Body:
    """Statements as a body: one, several, or an expression that is evaluated."""
    if isinstance(made, (list, tuple)):
        return tuple(s for part in made for s in body_of(part, what))
    if isinstance(made, Stmt):
        return (made,)
    if isinstance(made, Expr):
        return (S.Evaluate(as_expr(made)),)
    raise ExpressionError(f"'{what}': expected a statement or an expression, got {type(made).__name__}")


def for_range(begin: object, end: object, body: Callable[[Expr], object], name: str = "i") -> Stmt:
    """A loop as a statement; `body` gets its variable and gives statements."""
    var = Var(name, INT32, True)
    start, stop = (whole(e, f"an end of the loop '{name}'") for e in (begin, end))
    return S.For(var, "serial", start, stop, IntImm(INT32, 1), body_of(body(var), name))


def extern(
    shape: Any,
    inputs: Any,
    fcompute: Callable[..., object],
    name: str = "extern",
    dtype: Any = None,
    in_buffers: Any = None,
    out_buffers: Any = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any:
    """Tensors that statements compute: `fcompute(ins, outs)` gets views of inputs and outputs and gives statements.

    `shape`: of the output, or a list of shapes. `dtype`: of all outputs or a list; that of the inputs when these agree.
    `in_buffers`, `out_buffers`: the views that `fcompute` gets (`te.decl_buffer`), one for each input or output.
    ExpressionError where these do not go together.
    """
    several = isinstance(shape, list) and bool(shape) and isinstance(shape[0], (list, tuple))
    shapes = [shape_of(s) for s in (shape if several else [shape])]
    tensors = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    for t in tensors:
        if not isinstance(t, Tensor):
            raise ExpressionTypeError(f"'{name}': inputs are tensors, got {type(t).__name__}")
    kinds = _kinds(name, dtype, tensors, len(shapes))
    made = [PlaceholderOp(f"{name}_{i}" if several else name, s, k) for i, (s, k) in enumerate(zip(shapes, kinds))]
    ins = _views(f"in_buffers of '{name}'", in_buffers, tensors)
    outs = _views(f"out_buffers of '{name}'", out_buffers, [op.output(0) for op in made])
    with collected() as kernels:
        body = body_of(fcompute(ins, outs), name)
    given, made_here = ([view.buffer for view in side] for side in (ins, outs))
    op = ExternOp(name, tensors, given, made_here, body, kernels, TagScope.tag_of(tag), attrs)
    return op.outputs if several else op.output(0)


def _views(what: str, given: object, tensors: Sequence[Tensor]) -> list[View]:
    """The buffers that stand for tensors: those given, or ones of their names."""
    if given is None:
        return [View(declared(t.name.replace(".", "_"), t.shape, t.dtype)) for t in tensors]
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(listed) != len(tensors):
        raise ExpressionError(f"{what}: {len(listed)} are given for {len(tensors)} tensors")
    return [check_bound(what, view, t) for view, t in zip(listed, tensors)]


def extern_primfunc(input_tensors: Any, primfunc: Any, name: str = "", **options: Any) -> Any:
    """A function of the IR as an operation: buffers that it reads are inputs, those that it only writes are outputs; the
    last one that it reads and writes is the output where there is no other.

    ExpressionError where `input_tensors` do not go with its inputs, by number and shape, or it has no input or output.
    """
    function = primfunc.entry_func if isinstance(primfunc, S.IRModule) else primfunc
    if not isinstance(function, S.PrimFunc):
        raise ExpressionTypeError(f"extern_primfunc takes a PrimFunc, got {type(primfunc).__name__}")
    what = name or function.name
    body = _without_blocks(function)
    buffers = {s.buffer.data: s.buffer for s in walk_stmts(body) if isinstance(s, S.DeclBuffer)}
    order = [p for p in function.params if p in buffers]
    read = {e.buffer.data for e in all_exprs(body) if isinstance(e, E.BufferLoad)}
    written = {s.buffer.data for s in walk_stmts(body) if isinstance(s, S.BufferStore)}
    outputs = [v for v in order if v in written and v not in read]
    inputs = [v for v in order if v in read]
    if not outputs:
        outputs = [v for v in inputs if v in written][-1:]
        inputs = [v for v in inputs if v not in outputs]
    if not outputs or not inputs:
        raise ExpressionError(f"'{what}' reads {len(inputs)} buffers and writes {len(outputs)}, it needs one of each")
    tensors = list(input_tensors) if isinstance(input_tensors, (list, tuple)) else [input_tensors]
    if len(tensors) != len(inputs):
        raise ExpressionError(f"'{what}' has {len(inputs)} inputs, {len(tensors)} tensors are given")
    for tensor, data in zip(tensors, inputs):
        own = buffers[data]
        same = tensor.dtype is own.dtype and list(map(number_of, tensor.shape)) == list(map(number_of, own.shape))
        if not same:
            raise ExpressionError(f"'{what}': '{tensor.name}' is not of the type and shape of the buffer '{data.name}'")
    rest = tuple(s for s in body if not isinstance(s, S.DeclBuffer))
    op = ExternOp(what, tensors, [buffers[v] for v in inputs], [buffers[v] for v in outputs], rest, {}, **options)
    return op.outputs if len(outputs) > 1 else op.output(0)


def _without_blocks(function: S.PrimFunc) -> Body:
    """The statements of a function as plain loops."""
    return plain_statements(function) if has_blocks(function) else function.body


def _kinds(name: str, given: object, tensors: Sequence[Tensor], count: int) -> list[DataType]:
    if given is None:
        found = {t.dtype for t in tensors}
        if len(found) != 1:
            raise ExpressionError(f"'{name}': the inputs have no type in common", "say dtype")
        return [found.pop()] * count
    if not isinstance(given, (list, tuple)):
        return [data_type(given)] * count
    if len(given) != count:
        raise ExpressionError(f"'{name}': {len(given)} types are given for {count} outputs")
    return [data_type(k) for k in given]


# ------------------------------------------------------------------------------------------------------- intrinsics


class TensorIntrin:
    """What `tensorize` puts in the place of loops: `op` says what it computes, `fcompute(ins, outs)` gives its statements:
    all of them, or a tuple (whole, reset, update) for reductions."""

    packed_object = True
    """Functions by name take it."""

    def __init__(
        self,
        op: ComputeOp,
        fcompute: Callable[..., object],
        name: str,
        binds: Mapping[Tensor, View] | None = None,
        scalar_params: Sequence[Var] = (),
        buffer_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.op, self.name, self.scalar_params = op, name, tuple(scalar_params)
        self.inputs, known = op.input_tensors, dict(binds or {})
        for tensor in (t for t in known if t not in [*self.inputs, *op.outputs]):
            raise ExpressionError(f"binds of '{name}': '{getattr(tensor, 'name', tensor)}' is none of its tensors")
        self.input_views, self.output_views = (
            [
                check_bound(f"binds of '{name}'", known[t], t, strided=True)
                if t in known
                else decl_buffer(t.shape, t.dtype, t.name, **(buffer_params or {}))
                for t in side
            ]
            for side in (self.inputs, op.outputs)
        )
        with collected() as self.kernels:
            more = (list(self.scalar_params),) if self.scalar_params else ()
            made = fcompute(self.input_views, self.output_views, *more)
            parts = made if type(made) is tuple and len(made) == 3 else (made, None, None)
            self.body, self.reset, self.update = (None if p is None else body_of(p, name) for p in parts)
        if (self.reset is None) != (self.update is None):
            raise ExpressionError(
                f"'{name}' reduces: give (whole, reset, update), of which whole may be None, or whole alone",
                "see te.decl_tensor_intrin",
            )
        if self.body is None and (self.reset is None or not op.reduce_axis):
            raise ExpressionError(f"'{name}' has no statements")

    def sized(self, sizes: Mapping[Var, Expr]) -> TensorIntrin:
        """The intrinsic for sizes of these values; itself without any."""
        if not sizes:
            return self
        mapping = dict(sizes)

        def shape_here(shape: Sequence[Expr]) -> tuple[Expr, ...]:
            return tuple(substitute(e, mapping) for e in shape)

        made = copy.copy(self)
        inputs = {t: PlaceholderOp(t.op.name, shape_here(t.shape), t.dtype).output(0) for t in self.inputs}
        axes = {
            a: IterVar(Range(*shape_here((a.dom.min, a.dom.min + a.dom.extent))), a.var, a.iter_type)
            for a in (*self.op.axis, *self.op.reduce_axis)
            if a.dom is not None
        }

        def here(e: Expr) -> Expr | None:
            return e.replace(producer=inputs[tensor_of(e)]) if isinstance(e, ProducerLoad) else None

        def value(e: Expr) -> Expr:
            if not isinstance(e, Reduce):
                return substitute(rewrite(e, here), mapping)
            source, condition = tuple(map(value, e.source)), value(e.condition)
            return Reduce(e.combiner, source, tuple(axes[a] for a in e.axis), condition, e.value_index, e.init)

        made.op = ComputeOp(self.op.name, tuple(axes[a] for a in self.op.axis), tuple(map(value, self.op.body)))
        made.inputs = list(inputs.values())
        made.input_views, made.output_views = (
            [View(v.buffer.replace(shape=shape_here(v.shape)), v.declared_strides) for v in side]
            for side in (self.input_views, self.output_views)
        )
        bodies = (self.body, self.reset, self.update)
        made.body, made.reset, made.update = (None if b is None else substitute_body(b, mapping) for b in bodies)
        return made

    def __call__(self, *parts: object, reduce_axis: object = None, scalar_inputs: object = None) -> TensorIntrinCall:
        """It on parts of tensors (`A[i, 0:8]`), as the value of `te.compute`, whose last dimensions are its own. `reduce_axis`:
        what is reduced over outside of it."""
        return called(self, parts, reduce_axis, scalar_inputs)

    @property
    def buffers(self) -> tuple[View, ...]:
        """The buffers of its inputs and outputs."""
        return (*self.input_views, *self.output_views)

    @property
    def reduce_init(self) -> Body | None:
        """The statements that begin the outputs of a reduction."""
        return self.reset

    @property
    def reduce_update(self) -> Body | None:
        """The statements that join one more part to the outputs."""
        return self.update

    @property
    def reduces_parts(self) -> bool:
        """Whether it can begin a reduction and go on with it, and so do a part of one."""
        return not self.op.reduce_axis or self.update is not None


def decl_tensor_intrin(
    op: object,
    fcompute: Callable[..., object],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, View] | None = None,
    scalar_params: object = None,
    default_buffer_params: Mapping[str, object] | None = None,
) -> TensorIntrin:
    """An intrinsic for `tensorize`. `op`: an operation on placeholders that says what it computes; `fcompute(ins, outs)`
    gives its statements (`call_kernel`, `view.store`): a body, or (whole, reset, update) when it reduces, where `reset`
    begins the outputs and `update` joins one more part. With a body alone it takes the place of all loops of a reduction.

    `binds`: the buffers (`te.decl_buffer`) of some of its tensors, which may have strides. `default_buffer_params`: what
    `te.decl_buffer` takes besides, for the others. `scalar_params`: variables that a call of it gives values for; `fcompute` gets them after the buffers.
    """
    scalars = (
        scalar_params
        if isinstance(scalar_params, (list, tuple))
        else [scalar_params]
        if scalar_params is not None
        else []
    )
    found = op.op if isinstance(op, Tensor) else op
    if not isinstance(found, ComputeOp):
        raise ExpressionTypeError(f"an intrinsic is described by te.compute, got {type(found).__name__}")
    if not all(isinstance(t.op, PlaceholderOp) for t in found.input_tensors):
        raise ExpressionError(f"'{name}' is described by one te.compute on placeholders")
    for t in (*found.input_tensors, *found.outputs):
        if not all(isinstance(d, (IntImm, Var)) for d in t.shape):
            raise ExpressionError(f"'{name}': '{t.name}' has a dimension that is neither a number nor a variable")
    return TensorIntrin(found, fcompute, name, binds, [_parameter(name, v) for v in scalars], default_buffer_params)


def _parameter(name: str, given: object) -> Var:
    if not isinstance(given, Var):
        raise ExpressionTypeError(f"'{name}': a scalar parameter is a variable, got {type(given).__name__}")
    return given

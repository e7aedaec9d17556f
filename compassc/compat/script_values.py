"""What stands in expressions of the framework's script: elements of buffers, names of `T`, operators of Python."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from compass_core.errors import CompassError

from .. import te
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, VOID, PointerType
from ..ir.errors import ExpressionTypeError
from ..ir.expr_op import ExprOp
from ..ir.exprs import Buffer, Expr, IntImm
from ..ir.operators import as_expr, binary, data_type, inverted
from ..ir.visit import substitute
from ..language.specs import DTypeName
from ..te.analyzer import Analyzer
from ..te.buffers import View
from ..tir.blocks import view
from .names import SCALARS

T = TypeVar("T")
TYPES = (*SCALARS.split(), "int64", "uint64", "float64")
_RAW = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Mod": "mod", "FloorDiv": "floordiv", "FloorMod": "floormod",
    "Min": "min", "Max": "max", "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge", "And": "and", "Or": "or",
}  # fmt: skip
"""Nodes of operators, which fold nothing."""


class Cells(View):
    """The elements of a buffer. `shaped`: accesses name the buffer with its shape, as in functions that were lowered."""

    shaped = False

    def _accessed(self) -> Buffer:
        return self.buffer if self.shaped else view(self.buffer)

    def __getitem__(self, indices: object) -> Expr:
        given = indices if isinstance(indices, tuple) else (indices,)
        return E.BufferLoad(self._accessed(), self._indices([_vector(i) for i in given or self._only()]))

    def _only(self) -> tuple[Expr, ...]:
        """The indices of the element of a buffer without dimensions, which has one of one element here."""
        return (IntImm(INT32, 0),) * len(self.shape)

    def store(self, value: object, *indices: object) -> S.Stmt:
        indices = tuple(map(_vector, indices or self._only()))
        if isinstance(indices[-1], E.Ramp):
            return self._store_vector(value, indices, indices[-1].lanes)
        value = as_expr(value)  # it becomes one of the elements' type
        made = super().store(value if value.dtype is self.dtype else te.cast(value, str(self.dtype)), *indices)
        assert isinstance(made, S.BufferStore)
        return made.replace(buffer=self._accessed())

    def _store_vector(self, value: object, indices: tuple[object, ...], lanes: int) -> S.Stmt:
        e = as_expr(value)
        if e.dtype is not self.dtype.with_lanes(lanes):
            raise ExpressionTypeError(f"{lanes} elements of '{self.name}' are {self.dtype}, the value is {e.dtype}")
        return S.BufferStore(self._accessed(), self._indices(indices), e, None)


class Part(Cells):
    """A part of a buffer by indices of its own, which begin at `starts`; `dropped` leading dimensions are one element each."""

    def __init__(self, whole: Cells, starts: Sequence[Expr], shape: tuple[Expr, ...]) -> None:
        super().__init__(Buffer(whole.buffer.data, whole.buffer.dtype, shape))
        self.whole, self.starts, self.dropped = whole, list(starts), len(starts) - len(shape)
        self.declared_strides = tuple(whole.strides[self.dropped :])
        self.elem_offset = self.place_of([0] * len(shape))

    def place_of(self, indices: Sequence[object]) -> Expr:
        return self.whole.place_of(self._there(indices))

    def access_ptr(
        self,
        access_mask: object = "rw",
        ptr_type: object = "handle",
        content_lanes: int = 1,
        offset: object = 0,
        extent: object = None,
    ) -> Expr:
        return super().access_ptr(access_mask, ptr_type, content_lanes, self.elem_offset + as_expr(offset))

    def _there(self, indices: Sequence[object]) -> tuple[Expr, ...]:
        given = [*(0 for _ in range(self.dropped)), *(indices or self._only())]
        if any(isinstance(i, slice) for i in given) or len(given) != len(self.starts):
            raise ExpressionTypeError(
                f"'{self.name}' is a part of a buffer with {len(self.starts)} dimensions, elements of it are accessed"
            )
        return tuple(s + as_expr(i) for s, i in zip(self.starts, given))

    def __getitem__(self, indices: object) -> Expr:
        return self.whole[self._there(indices if isinstance(indices, tuple) else (indices,))]

    def store(self, value: object, *indices: object) -> S.Stmt:
        return self.whole.store(value, *self._there(indices))


class ScriptType(DTypeName):
    """A type of the framework's script: an annotation, in a kernel what `S` makes of it, else an expression of the type, which
    without a value is a new variable."""

    __slots__ = ()

    def __call__(self, init_value: Any = None, is_size_var: bool = False) -> Any:
        if init_value is None:
            return (te.size_var if is_size_var else te.var)("v", str(self.dtype))
        try:
            return super().__call__(init_value)
        except CompassError as error:
            if error.code != "outside":
                raise
        return _typed(init_value, str(self.dtype))


def __getattr__(name: str) -> ScriptType:
    if name not in TYPES:
        raise AttributeError(name)
    return ScriptType(data_type(name))


class Values:
    """What `T.name` is in expressions: functions of values, and types."""

    def __getattr__(self, name: str) -> Any:
        name = _ALIASES.get(name, name)
        if name in TYPES:
            return lambda value=None: Open(name) if value is None else _typed(value, name)
        if name == "cast":
            return lambda value, kind: te.cast(value, kind)
        if name == "Cast":
            return lambda kind, value: E.Cast(data_type(kind), as_expr(value))
        if name == "likely":
            return lambda condition, dtype=None: as_expr(condition)
        if name in ("rint", "pow"):
            return lambda *values: E.Call(name, tuple(map(as_expr, values)), as_expr(values[0]).dtype)
        if name in ("Ramp", "ramp"):
            return _ramp
        if name in ("Broadcast", "broadcast"):
            return lambda value, lanes: E.Broadcast(as_expr(value), int(lanes))
        if name == "iter_var":
            return lambda v, dom, kind, tag: te.IterVar(dom, v, _AXES.get(kind, 0), tag)
        if name == "Let":
            return lambda body, where: substitute(as_expr(body), {v: as_expr(e) for v, e in where.items()})
        if name == "address_of":
            return _address_of
        if name in ("call_packed", "tvm_call_packed"):
            return _packed
        if name == "type_annotation":
            return lambda dtype: E.Call("type_annotation", (), data_type(dtype))
        if name in ("call_extern", "call_pure_extern"):
            return _extern
        if name in _BITS:
            return lambda a, b, dtype=None: binary(_BITS[name], as_expr(a), as_expr(b))
        if name in _RAW:
            return lambda a, b: E.Binary(_RAW[name], as_expr(a), as_expr(b))
        if name in te.__all__:
            return _untyped(getattr(te, name))
        if name in OPAQUE:
            return _opaque(name)
        raise AttributeError(f"T.{name} has no meaning in an expression")


OPAQUE = frozenset(
    """assume call_llvm_intrin call_llvm_pure_intrin mma_fill mma_store ptx_commit_group ptx_cp_async ptx_ldmatrix ptx_mma
    ptx_wait_group q_multiply_shift ret tvm_access_ptr tvm_call_packed tvm_bmma_sync tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_storage_sync
    tvm_store_matrix_sync tvm_struct_get tvm_struct_set tvm_thread_allreduce tvm_warp_activemask type_annotation undef""".split()
)
"""Operations of machines that are scheduled like others; building refuses those that the target does not have."""


_AXES = {"DataPar": 0, "ThreadIndex": 1, "CommReduce": 2, "Ordered": 3, "Opaque": 4}
"""Kinds of axes by the words of scripts."""


def _address_of(load: object, dtype: object = None) -> Expr:
    """Where an element lies."""
    if not isinstance(load, E.BufferLoad):
        raise ExpressionTypeError("an address is that of an element: T.address_of(A[i])")
    where = View(load.buffer).place_of(load.indices) if load.buffer.shape else load.indices[0]
    return E.Pointer(load.buffer.dtype, load.buffer.data, where)


def _extern(*args: Any, dtype: str | None = None) -> Expr:
    """The call of a function of C: the type of its result, which may be a keyword, its name and arguments."""
    return te.call_extern(*args) if dtype is None else te.call_extern(dtype, *args)


_BITS = {
    "bitwise_and": "bitand",
    "bitwise_or": "bitor",
    "bitwise_xor": "bitxor",
    "shift_left": "shl",
    "shift_right": "shr",
}


def _packed(name: str, *args: object, dtype: object = None) -> Expr:
    """The call of a packed function. With addresses, which no function of Python takes, it is one of another machine's
    operations."""
    if any(isinstance(a, Expr) and isinstance(a.dtype, PointerType) for a in args):
        return _opaque("tvm_call_packed")(E.StringImm(name), *args, dtype=dtype or "int32")
    return te.call_packed(name, *args)


def _opaque(name: str) -> Callable[..., Expr]:
    def make(*args: object, dtype: object = None) -> Expr:
        given = list(args)
        kind = given.pop(0) if dtype is None and given and _is_type(given[0]) else dtype
        values = [E.StringImm(a) if isinstance(a, str) else as_expr(a) for a in given]
        return E.Call(name, tuple(values), VOID if kind in (None, "", "handle") else data_type(kind))

    return make


def _is_type(given: object) -> bool:
    return isinstance(given, str) and (given == "handle" or given in TYPES)


_ALIASES = {"fabs": "abs", "boolean": "bool", "power": "pow", "Range": "Range"}


def _untyped(function: Callable[..., T]) -> Callable[..., T]:
    """A function of values that takes the type of its result, too, which it knows."""
    return lambda *args, dtype=None, **options: function(*args, **options)


def _vector(index: object) -> object:
    """The indices that a slice of constant length stands for; another index itself."""
    if not isinstance(index, slice):
        return index
    step = 1 if index.step is None else index.step
    extent = Analyzer().simplify(as_expr(index.stop) - as_expr(index.start))
    if not isinstance(extent, IntImm) or not isinstance(step, int):
        raise ExpressionTypeError(f"a slice of {extent} elements has no number of lanes")
    return _ramp(index.start, step, -(-extent.value // step))


def _ramp(base: object, stride: object, lanes: int) -> Expr:
    """The indices of a vector's elements."""
    first = as_expr(base)
    return E.Ramp(first, te.cast(as_expr(stride), str(first.dtype)), int(lanes))


class Open:
    """`T.int32()`: a size that is known when the function runs."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


def _typed(value: ExprOp | str | float, kind: str) -> Expr:
    if isinstance(value, ExprOp):
        return te.cast(value, kind)
    return E.FloatImm(data_type(kind), float(value)) if isinstance(value, str) else te.const(value, kind)


def _joined(op: str, *parts: Callable[[], object]) -> object:
    """What `and` or `or` gives: as in Python, or the expression where a part is one."""
    found = [parts[0]()]
    for part in parts[1:]:
        last = found[-1]
        if not isinstance(last, ExprOp) and bool(last) is (op == "or"):
            return last
        found.append(part())
    if not any(isinstance(x, ExprOp) for x in found):
        return found[-1]
    known = [as_expr(x) for x in found if isinstance(x, ExprOp)]
    made = known[0]
    for e in known[1:]:
        made = binary(op, made, e)
    return made


def _negated(value: object) -> Expr | bool:
    return inverted(as_expr(value)) if isinstance(value, ExprOp) else not value


class Operators(ast.NodeTransformer):
    """Has `and`, `or`, `not` and chains of comparisons make expressions."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("and" if isinstance(node.op, ast.And) else "or", node.values)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        pairs = [self._compared(a, op, b) for a, op, b in zip(sides, node.ops, sides[1:])]
        return pairs[0] if len(pairs) == 1 else self._call("and", pairs)

    @staticmethod
    def _compared(a: ast.expr, op: ast.cmpop, b: ast.expr) -> ast.expr:
        name = _COMPARED.get(type(op))
        if name is None:
            return ast.copy_location(ast.Compare(a, [op], [b]), a)
        return ast.copy_location(ast.Call(ast.Name("__compared", ast.Load()), [ast.Constant(name), a, b], []), a)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(ast.Call(ast.Name("__negated", ast.Load()), [node.operand], []), node)

    @staticmethod
    def _call(op: str, parts: Sequence[ast.expr]) -> ast.AST:
        none = ast.arguments([], [], None, [], [], None, [])
        given = [ast.Constant(op), *(ast.Lambda(none, p) for p in parts)]
        return ast.copy_location(ast.Call(ast.Name("__joined", ast.Load()), given, []), parts[0])


_COMPARED: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


def _compared(op: str, a: object, b: object) -> object:
    """A comparison with its sides as they are written, of which Python turns those that begin with a number."""
    if not isinstance(a, ExprOp) and not isinstance(b, ExprOp):
        return getattr(operator, op)(a, b)
    return binary(op, a, b)


OPERATORS = {"__compared": _compared, "__joined": _joined, "__negated": _negated}

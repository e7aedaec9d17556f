"""What the operations of a kernel compute when it is interpreted.

A value operation is computed by its definition (`Op.definition`), which is what it means. Those without one, which are
known by the IR that they become, are functions here, named as they are: `f(call, *operands)`, with `mask` where they have
one. Integers and bools are Python numbers, real scalars NumPy's, vectors and masks arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.operators import OPERATORS, wrap

from ...ir.dtypes import FLOAT32, DataType
from ...ir.exprs import Call
from ...ops.core import Op, load
from ...ops.numeric import convert, filled_up, np_dtype, part_of
from . import memory as M

if TYPE_CHECKING:
    import numpy as np

else:
    from compass_core.lazy import np

Run = Callable[..., Any]


def unsupported(what: str) -> CompassError:
    """The error for what only a device, or its simulator, can do."""
    return CompassError(
        f"{what} cannot be interpreted", code="kernel-unsupported", help="run it in PySim or on the simulator"
    )


def operation(call: Call) -> Run:
    """A call as a function of its operands, `mask` and `r`. CompassError for what is not interpreted."""
    special = SPECIAL.get(call.op)
    if special is not None:
        return partial(special, call)
    op = load().get(call.op)
    if op is None or op.definition is None:
        raise unsupported(f"the operation {call.op}")
    return _defined(op, call)


def _defined(op: Op, call: Call) -> Run:
    """A value operation by its definition, which computes on matrices of one row per vector."""
    definition, to = op.definition, call.dtype
    assert definition is not None and isinstance(to, DataType)
    known = inspect.signature(definition).parameters
    options = {name: value for name, value in call.attrs if name in known}
    kinds = [np_dtype(a.data_type) for a in call.args]

    def run(*operands: Any, mask: Any = None, r: Any = None) -> Any:
        rows = [np.asarray(x, kind).reshape(1, -1) for x, kind in zip(operands, kinds)]
        more = {"mask": _row(mask), **({"r": _row(r)} if op.r == "param" else {})} if op.mask_aware else {}
        out = definition(*rows, to=to, **options, **more)[0].astype(np_dtype(to))
        if to.is_scalar:
            return out[0].item() if to.is_integer else out[0]
        if mask is not None and r is not None and not op.mask_aware:
            out = np.where(mask, out, r)
        return out

    return run


def _row(x: Array) -> Array:
    return None if x is None else np.reshape(x, (1, -1))


def lanes(op: str, kind: DataType) -> Run:
    """An operator on two vectors whose lanes are `kind`: what the operation that it becomes is defined as."""
    native = {"add": "add", "sub": "subtract", "mul": "multiply", "bitand": "bitwise_and", "bitor": "bitwise_or",
              "bitxor": "bitwise_xor", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
              "gt": "greater", "ge": "greater_equal", "and": "logical_and", "or": "logical_or"}.get(op)  # fmt: skip
    if native is not None and (kind.is_bool or kind.is_integer or op in ("eq", "ne", "lt", "le", "gt", "ge")):
        function: Callable[..., Any] = getattr(np, native)
        return function
    named = next((o for o in load().values() if o.operator == op and o.definition is not None), None)
    if named is not None and named.definition is not None:
        definition = named.definition
        return lambda a, b: definition(_row(a), _row(b), to=kind.with_lanes(np.size(a)))[0].astype(np_dtype(kind))
    evaluate = OPERATORS[op].evaluate

    def run(a: Array, b: Array) -> Array:
        found = [wrap(evaluate(int(x), int(y)), kind.bits, kind.is_int) for x, y in zip(a, b, strict=True)]
        return np.array(found, np_dtype(kind))

    return run


# ------------------------------------------------------------------------------------------------- moving lanes


def cast(call: Call, *items: Array) -> Array:
    source, to = call.args[0].data_type, call.data_type
    part, saturate = call.attr("part", "all"), bool(call.attr("saturate"))
    found = np.concatenate([convert(part_of(np.asarray(x), part), source, to, saturate) for x in items])
    whole: Array = filled_up(found, len(items), source, to)
    return whole


def tag(call: Call, x: object) -> Any:
    return x


def vconcat(call: Call, *items: Array) -> Array:
    return np.concatenate([part_of(x, call.attr("part", "all")) for x in items])


def vsplit(call: Call, x: Array) -> Array:
    step = call.dtype.lanes
    first: int = call.attr("index") * step
    return x[first : first + step]


def vcompt(call: Call, x: Array, mask: Array) -> Array:
    out = np.zeros_like(x)
    out[: np.count_nonzero(mask)] = x[mask]
    return out


def vcompc(call: Call, x: Array, y: Array, mask: Array) -> Array:
    return np.concatenate([x[mask], y])[: len(x)]


def vshfl(call: Call, x: Array, shift: int) -> Array:
    return np.roll(x, -lane_of(x, shift))


def vbcast(call: Call, x: object, mask: Array | None = None) -> Array:
    return np.full(call.dtype.lanes, x, np_dtype(call.data_type))


def vsldl(call: Call, x: Array, y: Array, shift: int) -> Array:
    return np.concatenate([x, y])[lane_of(x, shift) :][: len(x)]


def vtbl(call: Call, *operands: Array) -> Array:
    whole, at = np.concatenate(operands[:-1]), operands[-1].astype(np.int64)
    inside = (at >= 0) & (at < len(whole))
    return np.where(inside, whole[np.where(inside, at, 0)], whole.dtype.type(0))


def vreplic(call: Call, x: Array, index: int) -> Array:
    return np.full(len(x), x[lane_of(x, index)])


def lane_of(x: Array, index: int) -> int:
    """A lane of a vector; OutOfBounds where it has none such."""
    if not 0 <= index < len(x):
        raise M.OutOfBounds(f"lane {index} of a vector of {len(x)} lanes")
    return index


# ------------------------------------------------------------------------------------------------------ memory


def _elem(call: Call, operand: int) -> DataType:
    return call.args[operand].pointer_type.elem.element_of


def vload(call: Call, ptr: M.Address, stride: int, mask: Array | None = None) -> Array:
    return M.load_lanes(ptr, call.data_type.element_of, np.arange(call.dtype.lanes) * stride, mask)


def vstore(call: Call, value: Array, ptr: M.Address, stride: int, mask: Array | None = None) -> None:
    M.store_lanes(ptr, call.args[0].data_type.element_of, np.arange(len(value)) * stride, mask, value)


def _offsets(elem: DataType, indices: Array) -> Array:
    """Elements of gathers: byte offsets are of 16 bits."""
    return indices.astype(np.int64) * elem.bytes % 65536 // elem.bytes


def vload_gather(call: Call, ptr: M.Address, indices: Array, mask: Array | None = None) -> Array:
    return M.load_lanes(ptr, _elem(call, 0), _offsets(_elem(call, 0), indices), mask)


def vstore_scatter(call: Call, value: Array, ptr: M.Address, indices: Array, mask: Array | None = None) -> None:
    M.store_lanes(ptr, _elem(call, 1), _offsets(_elem(call, 1), indices), mask, value)


def _matrix(call: Call, ptr: M.Address, x: Array, y: Array, accumulate: bool) -> None:
    """The 16 dot products of 4x4 matrices, x by rows and y by columns, summed in double in order."""
    a, b = (m.astype(np.float64).reshape(4, 4) for m in (x, y))
    total = np.zeros((4, 4))
    for k in range(4):
        total = total + a[:, k, None] * b[None, :, k]
    view, base = M.elements(ptr, FLOAT32, 0, 15)
    before = view[base : base + 16].astype(np.float64) if accumulate else 0
    view[base : base + 16] = (total.reshape(16) + before).astype(np.float32)


def _atomic(change: Callable[..., int]) -> Run:
    def run(call: Call, ptr: M.Address, *values: int) -> int:
        elem = _elem(call, 0)
        old = int(M.load(ptr, elem, 0))
        M.store(ptr, elem, 0, wrap(change(old, *values), elem.bits, elem.is_int))
        return old

    return run


def assert_(call: Call, cond: object, text: str) -> None:
    if not cond:
        raise CompassError(f"an assertion of the kernel does not hold: {text}", code="assertion")


def assume(call: Call, cond: object) -> None:
    if not cond:
        raise CompassError("what the kernel promises with S.assume does not hold", code="assertion")


def _nothing(call: Call, *operands: object) -> None:
    pass


SPECIAL: dict[str, Run] = {
    **{f.__name__: f for f in (cast, tag, vconcat, vsplit, vcompt, vcompc, vshfl, vbcast, vsldl, vtbl, vreplic)},
    **{f.__name__: f for f in (vload, vstore, vload_gather, vstore_scatter, assert_, assume)},
    **dict.fromkeys(
        ("assume_unclipped", "flush_cache", "perf_tick_begin", "perf_tick_end", "init_event_state"), _nothing
    ),
    "vmml": partial(_matrix, accumulate=False),
    "vmma": partial(_matrix, accumulate=True),
    "atomic_add": _atomic(lambda old, x: old + x),
    "atomic_min": _atomic(min),
    "atomic_max": _atomic(max),
    "atomic_exchange": _atomic(lambda _, x: x),
    "atomic_compare_exchange": _atomic(lambda old, expected, x: x if old == expected else old),
    "dma_copy": lambda call, *operands: M.copy(*operands),
    "dma_memset": lambda call, ptr, num, value: M.fill(ptr, num, value, call.attr("itemsize")),
    "dma_transpose2d": lambda call, *operands: M.transpose(*operands, itemsize=call.attr("itemsize")),
    "dma_upsample": lambda call, *operands: M.upsample(*operands),
}
"""Operations without a definition, by name. Those of TECs and events are `run.Tec`'s."""

"""Which memory the values of a graph share: a plan of storages for a typed function of fused calls, without kernels.

A value is given a storage of about its size whose values are used no more, else a new one. Parameters and constants have
storages of their own. The order is that of evaluation: parameters, then the body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime.devices import cpu
from compass_runtime.program import numpy_dtype
from compassc.relay.backend.referenced import tensors_of
from compassc.relay.expr import Call, Constant, Expr, Function, Let, Tuple, TupleGetItem, Var
from compassc.relay.infer.errors import error
from compassc.relay.operators import Op
from compassc.relay.types import TensorType, TupleType, is_dynamic
from compassc.relay.visit import children, post_order
from compassc.targets.virtual_device import VirtualDevice

SHARED_WITHIN = 16
"""A storage is taken for values of at least this part of its size, and at most this many times."""
HOST = VirtualDevice(cpu())
_CONTROL_FLOW = "Graph executor does not support control flow (found {}Node)"
T = TypeVar("T")
Given = Callable[["Var | Constant", Sequence[TensorType]], Sequence[T]]
"""What stands for the tensors of a parameter or a constant."""
Called = Callable[[Call, Sequence[T], Sequence[TensorType]], Sequence[T]]
"""What stands for the results of a call, of what stands for the tensors of its arguments."""


def values_of(f: Function, given: Given[T], called: Called[T]) -> list[tuple[Expr, Sequence[T]]]:
    """What stands for the tensors of each expression of a straight-line function, in the order they are computed in; the last
    is the body. Tuples, their items and names stand for what others are. Control flow is refused."""
    order: list[tuple[Expr, Sequence[T]]] = [(p, given(p, _static(p))) for p in f.params]
    values = {id(e): found for e, found in order}
    bound: dict[int, list[Var]] = {}
    body = list(post_order(f.body, lambda e: isinstance(e, Function)))
    for e in body:
        if isinstance(e, Let):
            bound.setdefault(id(e.value), []).append(e.var)
    for e in body:
        if isinstance(e, Var) and id(e) not in values:
            continue  # its `let` gives it a value
        if id(e) not in values:
            values[id(e)] = _value(e, values, given, called)
            order.append((e, values[id(e)]))
        for v in bound.get(id(e), ()):
            values[id(v)] = values[id(e)]
            order.append((v, values[id(e)]))
    return [*order, (f.body, values[id(f.body)])]


def _static(p: Var) -> list[TensorType]:
    found = tensors_of(p.checked_type)
    for t in found:
        if is_dynamic(t):
            raise CompassError(
                f"Graph Executor only supports static graphs, got {t} of '{p.name_hint}'",
                code="relay-graph",
                help="give shapes without Any, or use the virtual machine",
            )
    return found


def _value(e: Expr, values: Mapping[int, Sequence[T]], given: Given[T], called: Called[T]) -> Sequence[T]:
    if isinstance(e, Constant):
        return given(e, [e.tensor_type])
    if isinstance(e, Tuple):
        return [one for f in e.fields for one in values[id(f)]]
    if isinstance(e, TupleGetItem):
        t = e.tuple_value.checked_type
        assert isinstance(t, TupleType), "an item is one of a tuple"
        before = sum(len(tensors_of(f)) for f in t.fields[: e.index])
        return values[id(e.tuple_value)][before : before + len(tensors_of(t.fields[e.index]))]
    if isinstance(e, Let):
        return values[id(e.body)]
    if isinstance(e, Call):
        types = tensors_of(e.checked_type)
        if any(is_dynamic(t) for t in types):
            raise error(e, f"Graph Executor only supports static graphs, got {e.checked_type}")
        return called(e, [one for a in e.args for one in values[id(a)]], types)
    if isinstance(e, (Function, Op)) or not children(e):
        return []  # what is called
    raise error(e, _CONTROL_FLOW.format(type(e).__name__), help="use the virtual machine, or the debug executor")


def is_view(e: Call, inputs: Sequence[object], types: Sequence[TensorType]) -> bool:
    """Whether a call only gives its one argument another shape: its result is the same memory."""
    shapes_only = isinstance(e.op, Function) and bool(e.op.attrs.get("relay.reshape_only"))
    return shapes_only and len(inputs) == len(types) == 1


def size_of(t: TensorType) -> int:
    """The bytes of a tensor."""
    n = numpy_dtype(t.dtype).itemsize
    for d in t.concrete_shape:
        n *= d
    return n


@dataclass(eq=False)
class Storage:
    """A piece of memory: its number, the bytes of the value it was made for and of the largest one in it, where it is, and how
    many uses of what is in it are to come."""

    first_size: int
    device: VirtualDevice
    uses: int = 0
    size: int = 0
    number: int = -1

    def __post_init__(self) -> None:
        self.size = self.first_size


@dataclass(frozen=True)
class StorageInfo:
    """Where the tensors of a value are: the number of each one's storage, the code of its kind of device, the bytes of the
    value that the storage was made for, and the device."""

    storage_ids: tuple[int, ...]
    device_types: tuple[int, ...]
    storage_sizes: tuple[int, ...]
    virtual_devices: tuple[VirtualDevice, ...]


class StaticMemoryPlan:
    """Storages of the values of a function. `expr_to_storage_info`: of each expression that has tensors. `sizes`: bytes of each
    storage, by number."""

    def __init__(self, storages: Mapping[Expr, Sequence[Storage]], sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.expr_to_storage_info = {e: _info(found) for e, found in storages.items() if found}


def _info(storages: Sequence[Storage]) -> StorageInfo:
    devices = tuple([s.device for s in storages])
    return StorageInfo(
        tuple([s.number for s in storages]),
        tuple([d.device_type_int for d in devices]),
        tuple([s.first_size for s in storages]),
        devices,
    )


def plan(f: Function, device: VirtualDevice = HOST) -> StaticMemoryPlan:
    """The plan of a typed function of which all is on a device. CompassError for control flow and for open shapes."""
    planner = _Planner(f, device)
    return StaticMemoryPlan(planner.found, [s.size for s in planner.storages])


class _Planner:
    """First the uses of each value are counted, then values get storages in the order they are computed in."""

    def __init__(self, f: Function, device: VirtualDevice) -> None:
        self.device = device
        counted = values_of(f, lambda e, types: [Storage(size_of(t), device) for t in types], self._counted)
        for one in counted[-1][1]:
            one.uses += 1
        self._uses = {id(e): [s.uses for s in found] for e, found in counted}
        self.storages: list[Storage] = []
        self._free: list[Storage] = []
        self.found: dict[Expr, Sequence[Storage]] = dict(values_of(f, self._kept, self._called))

    def _counted(self, e: Call, inputs: Sequence[Storage], types: Sequence[TensorType]) -> list[Storage]:
        for one in inputs:
            one.uses += 1
        return [Storage(size_of(t), self.device) for t in types]

    def _kept(self, e: Var | Constant, types: Sequence[TensorType]) -> list[Storage]:
        """Parameters and constants are never given up."""
        return [self._new(size_of(t), uses + 1) for t, uses in zip(types, self._uses[id(e)], strict=True)]

    def _called(self, e: Call, inputs: Sequence[Storage], types: Sequence[TensorType]) -> list[Storage]:
        if is_view(e, inputs, types):
            inputs[0].uses += self._uses[id(e)][0]
            made = [inputs[0]]
        else:
            made = [self._requested(size_of(t), uses) for t, uses in zip(types, self._uses[id(e)], strict=True)]
        for one in made:
            self._release(one)
        for one in inputs:
            one.uses -= 1
            self._release(one)
        return made

    def _requested(self, size: int, uses: int) -> Storage:
        fits = [s for s in self._free if size <= s.size <= size * SHARED_WITHIN]
        less = [s for s in self._free if size / SHARED_WITHIN <= s.size < size]
        found = min(fits, key=lambda s: s.size) if fits else max(less, key=lambda s: s.size) if less else None
        if found is None:
            return self._new(size, uses)
        self._free.remove(found)
        found.size, found.uses = max(found.size, size), uses
        return found

    def _new(self, size: int, uses: int) -> Storage:
        self.storages.append(Storage(size, self.device, uses, number=len(self.storages)))
        return self.storages[-1]

    def _release(self, storage: Storage) -> None:
        if storage.uses == 0 and not any(storage is s for s in self._free):
            self._free.append(storage)

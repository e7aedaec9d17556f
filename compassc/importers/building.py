"""Building a graph from the tensors of a model: layers with their shapes, and the order of axes handled on the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any, TypeVar

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.reading.budget import Budget
from compass_core.reading.limits import TENSOR_ELEMENTS
from compassc.graph.build import GraphBuilder
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.layer import Layer
from compassc.graph.tensor import Tensor
from compassc.importers.accounts import Accounts
from compassc.importers.values import (
    NotConstant,
    Order,
    Refused,
    Value,
    broadcast_shape,
    channels_last,
    fitting,
    moves_data,
    plain,
    reshaped_in_order,
    spans,
    stop_of,
    stored_type,
)

SMALL = 4096
"""Bytes of constants that are compared by content."""
LIMITING = ("Eltwise", "Add", "Sub", "Mul", "MatMul", "Reduce", "Cumulate")
"""Layers of whole numbers whose results may lie beyond their inputs."""
Made = TypeVar("Made", bound=Callable[..., Value])
MAKERS: dict[str, Callable[..., Value]] = {}
"""What makes the layers of an operator of the registry (`compassc.operators`), by its name."""
READING_SCALES = ("DeQuantize", "Quantize")
"""Layers that take scaled integers, whoever makes them."""


def makes(*names: str) -> Callable[[Made], Made]:
    """Declares the function that makes the layers of operators of the registry."""

    def declare(maker: Made) -> Made:
        MAKERS.update((name, maker) for name in names)
        return maker

    return declare


class Building(Accounts):
    """The layers of a graph in the making. `name`: of the node whose layers are made next."""

    def __init__(self, name: str, budget: Budget) -> None:
        self.graph = GraphBuilder(name)
        self.name = name
        self.budget = budget
        self.reshapes: dict[str, tuple[Value, Value]] = {}
        """What was reshaped to what, by the name of the resulting tensor."""
        self.narrowed: dict[str, tuple[str, NumpyDType]] = {}
        """Tensors of 32 bits that are computed in the place of ones of 64 bits: the node, and the type that it has."""
        self._said: set[str] = set()
        self._marks: tuple[str, dict[str, Any]] | None = None
        self._laid: dict[tuple[str, Order], Tensor] = {}
        self._plain: dict[str, Tensor] = {}
        """Tensors without their scales, by the names of those with them."""
        self._constants: dict[tuple[object, ...], tuple[Array, Tensor]] = {}

    def say_once(self, text: str) -> None:
        """A warning about the model, however many of its nodes give the reason."""
        if text not in self._said:
            self._said.add(text)
            warnings.warn(f"'{self.budget.where}': {text}", stacklevel=3)

    # -- layers

    def layers_of(
        self,
        type: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor | tuple[Sequence[int], str]],
        /,
        **given: Any,
    ) -> tuple[Tensor, ...]:
        """Adds a layer; its outputs as (shape, type). `given`: arrays are constants, None is left out, the rest attributes.

        `layer_name`: instead of the node's.
        """
        name = given.pop("layer_name", None) or self.name
        if self._marks is None and type not in READING_SCALES and not any(isinstance(o, Tensor) for o in outputs):
            inputs = [self.unmarked(t) for t in inputs]
        for shape in (o.shape if isinstance(o, Tensor) else o[0] for o in outputs):
            TENSOR_ELEMENTS.check(prod(map(int, shape)), f"{self.budget.where}: a result of the node '{self.name}'")
            if min(shape, default=0) < 0:
                raise Refused(f"its inputs and attributes contradict each other: no tensor is {[*map(int, shape)]}")
        constants = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
        attributes = {k: v for k, v in given.items() if k not in constants}
        return self.graph.layer(
            type,
            inputs,
            name=name,
            outputs=[
                o if isinstance(o, Tensor) else self.mark(Tensor("", tuple(map(int, o[0])), o[1])) for o in outputs
            ],
            attributes=attributes,
            constants=constants,
            span=f"the node '{self.name}'",
        )

    def unmarked(self, x: Tensor) -> Tensor:
        """The integers of a tensor as what they look like: a layer that is told of a scale computes with it."""
        if not x.is_integer or (x.scale == 1.0 and x.zero == 0):
            return x
        if x.name not in self._plain:
            plain_tensor = Tensor("", x.shape, x.dtype)
            self._plain[x.name] = self.layers_of("Reshape", [x], [plain_tensor], shape=list(x.shape))[0]
        return self._plain[x.name]

    @contextmanager
    def marking(self, dtype: str, quantisation: dict[str, object]) -> Iterator[None]:
        """Tensors of a type that are made meanwhile get `scale`, `zero` and `axis`."""
        before, self._marks = self._marks, (dtype, quantisation)
        try:
            yield
        finally:
            self._marks = before

    def mark(self, tensor: Tensor) -> Tensor:
        """The tensor with the scale and zero point that `marking` gives."""
        if self._marks is None or self._marks[0] != tensor.dtype:
            return tensor
        return replace(tensor, **self._marks[1])

    def producer(self, tensor: Tensor) -> Layer:
        """The layer that makes a tensor."""
        return self.graph.producer(tensor)

    def layer(
        self, type: str, inputs: Sequence[Tensor], shape: Sequence[int], dtype: str, /, **given: object
    ) -> Tensor:
        """Adds a layer with one output."""
        return self.layers_of(type, inputs, [(shape, dtype)], **given)[0]

    def mapped(self, type: str, x: Value, order: Order | None = None, **given: object) -> Value:
        """What a layer makes whose result has the shape and the type of its input, in an order of axes (by default the model's)."""
        tensor = self.laid(x, order)
        return self.value(self.layer(type, [tensor], tensor.shape, tensor.dtype, **given), x.dtype, order)

    def made(self, name: str, *xs: Value, **attributes: object) -> Value:
        """What an operator of the registry makes of values. Refused where no layer does."""
        if name not in MAKERS:
            raise Refused(f"no layer is the operator {name}")
        return MAKERS[name](self, *xs, **attributes)

    def known(self, array: Array) -> Value:
        """A tensor whose content is known."""
        return Value.of(array)

    def numbers(self, x: Value, what: str) -> list[int]:
        """Whole numbers that must be known. Refused where they are not."""
        if x.array is None:
            raise NotConstant(f"its {what} is only known at run time", [x.name])
        return [int(n) for n in x.array.reshape(-1)]

    def value(self, tensor: Tensor, dtype: Any, order: Order | None = None) -> Value:
        """A tensor of the graph as one of the model."""
        order = plain(len(tensor.shape)) if order is None else order
        shape = [0] * len(order)
        for size, axis in zip(tensor.shape, order, strict=True):
            shape[axis] = size
        if 0 in shape:
            return Value.of(np.zeros(shape, dtype))
        if np.dtype(dtype).name in ("int64", "uint64") and may_be_limited(self.producer(tensor)):
            self.narrowed[tensor.name] = self.name, np.dtype(dtype)
        return Value(tuple(shape), np.dtype(dtype), tensor=tensor, order=order)

    def constant(self, array: Array, order: Order | None = None) -> Tensor:
        """A Constant layer; one for each content (of large ones: each array) and order."""
        order = plain(array.ndim) if order is None else order
        small = array.nbytes <= SMALL
        key = (array.dtype.str, array.shape, array.tobytes() if small else id(array), order)
        if key not in self._constants:
            stored = as_stored(np.transpose(array, order))
            name = f"{self.name}_constant"
            made = self.layer("Constant", [], stored.shape, stored_type(array.dtype), layer_name=name, weights=stored)
            self._constants[key] = (array, made)
        return self._constants[key][1]

    # -- order of axes

    def laid(self, value: Value, order: Order | None = None) -> Tensor:
        """The tensor of the graph with its axes in the wanted order (by default the model's)."""
        order = plain(value.rank) if order is None else order
        if value.tensor is None:
            return self.constant(known(value), order)
        if value.order == order:
            return value.tensor
        key = (value.tensor.name, tuple(value.order.index(axis) for axis in order))
        if key not in self._laid:
            self._laid[key] = self._transpose(value.tensor, key[1])
        return self._laid[key]

    def _transpose(self, x: Tensor, perm: Order) -> Tensor:
        source = self.producer(x)
        if source.type == "Transpose":
            before = source.integers("perm")
            x, perm = source.inputs[0], tuple(before[p] for p in perm)
        shape = [x.shape[p] for p in perm]
        if perm == plain(len(perm)):
            return x
        if not moves_data(x.shape, perm):
            return self.reshaped(x, shape)
        name = f"{self.producer(x).name}_post_transpose"
        axis = None if x.axis is None else perm.index(x.axis)
        made = replace(x, name="", shape=tuple(shape), axis=axis)
        return self.layers_of("Transpose", [x], [made], layer_name=name, perm=list(perm))[0]

    def reshaped(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The tensor in another shape; reshapes in a row are one."""
        source = self.producer(x)
        if source.type == "Reshape" and tuple(x.shape) != tuple(shape) and same_levels(x, source.inputs[0]):
            x = source.inputs[0]
        if tuple(x.shape) == tuple(shape):
            return x
        if x.axis is not None:
            raise Refused("a tensor with scales per channel cannot be reshaped")
        name = f"{self.producer(x).name}_post_reshape"
        made = replace(x, name="", shape=tuple(map(int, shape)))
        return self.layers_of("Reshape", [x], [made], layer_name=name, shape=list(made.shape))[0]

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The model's tensor in another shape."""
        if value.array is not None:
            return Value.of(value.array.reshape(tuple(shape)))
        if tuple(shape) == value.shape:
            return value
        made = self._reshape(value, shape)
        if made.tensor is not None:
            self.reshapes[made.tensor.name] = (value, made)
        return made

    def _reshape(self, value: Value, shape: Sequence[int]) -> Value:
        kept = reshaped_in_order(value.shape, tuple(shape), value.order)
        if kept is not None and value.tensor is not None and value.tensor.axis is None:
            sizes = [int(shape[axis]) for axis in kept]
            return self.value(self.reshaped(value.tensor, sizes), value.dtype, kept)
        return self.value(self.reshaped(self.laid(value), shape), value.dtype)

    def transpose(self, value: Value, perm: Sequence[int]) -> Value:
        """The model's tensor with permuted axes. Makes no layer: the order of the value changes."""
        if value.array is not None:
            return Value.of(np.transpose(value.array, perm))
        back = {axis: i for i, axis in enumerate(perm)}
        shape = tuple(value.shape[p] for p in perm)
        return Value(shape, value.dtype, tensor=value.tensor, order=tuple(back[axis] for axis in value.order))

    def squeeze(self, value: Value, axes: Sequence[int]) -> Value:
        """The value without axes of size 1; the other axes keep their order."""
        gone = {value.axis(a) for a in axes}
        if any(value.shape[a] != 1 for a in gone):
            raise Refused(f"the axes {sorted(gone)} of {list(value.shape)} are not all of size 1")
        if value.tensor is None:
            return Value.of(np.squeeze(known(value), tuple(gone)))
        kept = [a for a in range(value.rank) if a not in gone]
        order = tuple(kept.index(a) for a in value.order if a not in gone)
        shape = [size for size, a in zip(value.tensor.shape, value.order, strict=True) if a not in gone]
        return self.value(self.reshaped(value.tensor, shape), value.dtype, order)

    def unsqueeze(self, value: Value, axes: Sequence[int]) -> Value:
        """The value with axes of size 1 at positions `axes` of the result; the other axes keep their order."""
        rank = value.rank + len(axes)
        new = sorted(a % rank for a in axes)
        if len(set(new)) != len(axes):
            raise Refused(f"an axis is twice in {list(axes)}")
        if value.tensor is None:
            return Value.of(np.expand_dims(known(value), tuple(new)))
        old = [a for a in range(rank) if a not in new]
        order = [old[a] for a in value.order]
        shape = list(value.tensor.shape)
        for axis in new:
            # beside the axis that comes after it in the model, so that plain tensors stay plain
            at = order.index(axis + 1) if axis + 1 in order else order.index(axis - 1) + 1 if axis - 1 in order else 0
            order.insert(at, axis)
            shape.insert(at, 1)
        return self.value(self.reshaped(value.tensor, shape), value.dtype, tuple(order))

    def concat(self, *xs: Value, axis: int) -> Value:
        """Tensors behind each other along an axis, in the order of axes that most of the operands have."""
        at = xs[0].axis(axis)
        xs = tuple(x for x in xs if x.shape[at]) or xs[:1]
        if len(xs) == 1:
            return xs[0]
        if all(x.array is not None for x in xs):
            self.room(sum(x.count for x in xs))
            return Value.of(np.concatenate([x.array for x in xs if x.array is not None], at))
        sizes: dict[Order, int] = {}
        for x in xs:
            if x.tensor is not None:
                sizes[x.order] = sizes.get(x.order, 0) + x.count
        order = max(sizes, key=lambda o: (sizes[o], o))
        tensors = [self.laid(x, order) for x in xs]
        shape = list(tensors[0].shape)
        place = order.index(at)
        shape[place] = sum(t.shape[place] for t in tensors)
        return self.value(self.layer("Concat", tensors, shape, tensors[0].dtype, axis=place), xs[0].dtype, order)

    def split(self, x: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
        """Parts along an axis."""
        at = x.axis(axis)
        if sum(sizes) != x.shape[at]:
            raise Refused(f"the parts {list(sizes)} are not the {x.shape[at]} elements of axis {at}")
        if len(sizes) == 1:
            return [x]
        if x.array is not None:
            return [Value.of(part) for part in np.split(x.array, np.cumsum(sizes)[:-1], at)]
        tensor, order = self.stored(x)
        place = order.index(at)
        shapes = [[size if i == place else d for i, d in enumerate(tensor.shape)] for size in sizes]
        kind = tensor.dtype
        made = self.layers_of(
            "Split", [tensor], [(s, kind) for s in shapes], axis=place, splits=[int(s) for s in sizes]
        )
        return [self.value(t, x.dtype, order) for t in made]

    def sliced(
        self, x: Value, begin: Sequence[int], end: Sequence[int], step: Sequence[int], axes: Sequence[int]
    ) -> Value:
        """A slice of a tensor (`spans`)."""
        cuts = spans(x, begin, end, step, axes)
        taken = [cuts.get(a, range(size)) for a, size in enumerate(x.shape)]
        ends = [stop_of(s, size) for s, size in zip(taken, x.shape, strict=True)]
        if x.array is not None:
            return Value.of(x.array[tuple(slice(s.start, e, s.step) for s, e in zip(taken, ends, strict=True))])
        if all(len(s) == size and s.step == 1 for s, size in zip(taken, x.shape, strict=True)):
            return x
        tensor, order = self.stored(x)
        made = self.layer(
            "Slice",
            [tensor],
            [len(taken[a]) for a in order],
            tensor.dtype,
            begin=[taken[a].start for a in order],
            end=[ends[a] for a in order],
            strides=[taken[a].step for a in order],
        )
        return self.value(made, x.dtype, order)

    def shaped_as(self, x: Value, like: Value) -> Value:
        """The elements of a tensor in the shape of another one."""
        return self.reshape(x, like.shape)

    def ranked(self, value: Value, rank: int) -> Value:
        """With leading axes of size 1."""
        return self.unsqueeze(value, range(rank - value.rank)) if value.rank < rank else value

    def last(self, value: Value, axis: int) -> tuple[Tensor, Order]:
        """The tensor with one of the model's axes last, and its order."""
        axis = value.axis(axis)
        if value.order and value.order[-1] == axis:
            return self.laid(value, value.order), value.order
        order = (*(a for a in range(value.rank) if a != axis), axis)
        return self.laid(value, order), order

    def image(self, value: Value) -> Tensor:
        """The tensor with the channels last."""
        return self.laid(value, channels_last(value.rank))

    # -- operands

    def stored(self, value: Value) -> tuple[Tensor, Order]:
        """The tensor in the order it has."""
        if value.tensor is None:
            return self.laid(value), plain(value.rank)
        return value.tensor, value.order

    def operands(self, values: Sequence[Value]) -> tuple[list[Tensor], tuple[int, ...], Order]:
        """Operands that broadcast, all in one order of axes: (tensors, the graph's shape of the result, its order)."""
        shape = broadcast_shape([v.shape for v in values])
        order = self._common_order(values, len(shape))
        tensors = []
        for value in values:
            if order != plain(len(shape)):
                tensors.append(self.laid(self.ranked(value, len(shape)), order))
            elif value.rank == 0:
                tensors.append(self.laid(self.unsqueeze(value, [0]) if shape else value))
            else:
                tensors.append(self.laid(value))
        return tensors, tuple(shape[a] for a in order), order

    def _common_order(self, values: Sequence[Value], rank: int) -> Order:
        """The order that moves the fewest elements; rather one of images than the plain one."""
        orders = {v.order for v in values if v.tensor is not None and v.rank == rank}
        return min(orders or {plain(rank)}, key=lambda o: (self._cost(values, o), o == plain(rank), o))

    def _cost(self, values: Sequence[Value], order: Order) -> int:
        total = 0
        for value in values:
            if value.tensor is None:
                continue
            lead = len(order) - value.rank
            shape = (1,) * lead + tuple(value.tensor.shape)
            own = (*range(lead), *(a + lead for a in value.order))
            perm = tuple(own.index(a) for a in order)
            if moves_data(shape, perm) and (value.tensor.name, perm) not in self._laid:
                total += value.count
        return total


def same_levels(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same scale and zero point."""
    return (one.scale, one.zero, one.axis) == (other.scale, other.zero, other.axis)


def may_be_limited(layer: Layer) -> bool:
    """Whether results of a layer of 32-bit whole numbers may lie beyond its inputs, and be limited to the type."""
    if layer.type == "Cast":
        return not layer.input.is_integer or layer.input.integer.bits == 32
    return layer.type in LIMITING and layer.attributes.get("method") not in ("MAX", "MIN")


def known(value: Value) -> Array:
    """The content of a value that is constant."""
    if value.array is None:
        raise Refused("its content is not known at import")
    return value.array


def as_stored(array: Array) -> Array:
    """An array in the type that the graph stores it in. Refused when a number does not fit."""
    dtype = numpy_dtype(stored_type(array.dtype))
    if array.dtype == dtype:
        return np.asarray(array, order="C")
    fitting(array)
    if array.dtype == np.float64 and dtype == np.float32:
        most = np.finfo(np.float32).max
        beyond = int((np.isfinite(array) & (np.abs(array) > most)).sum())
        if beyond:
            warnings.warn(f"{beyond} constants are beyond float32, and limited to it", stacklevel=2)
            array = np.where(np.isinf(array), array, np.clip(array, -most, most))
    return array.astype(dtype, order="C")

"""Single operators of ONNX, drawn: their inputs and attributes, in any opset that has the form.

`DRAWN` has a function for each, or for a few alike, which gets a `Draw` and makes a `Drawn`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSETS = (7, 9, 11, 13, 17, 18, 19, 20, 21, 22)
FAR = 1 << 62


class Known(NamedTuple):
    """An input that the model has the content of."""

    array: np.ndarray


@dataclass
class Drawn:
    """An operator with its inputs (None is left out), attributes, and how many outputs it has. `since`: the first opset of this form.
    `step`: how far whole numbers may be from the reference."""

    operator: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    since: int = 7
    step: int = 0


class Draw(random.Random):
    """Numbers, shapes and attributes."""

    def array(self, *shape: int, dtype: Any = np.float32, low: float = -3, high: float = 3) -> np.ndarray:
        numbers = np.random.default_rng(self.getrandbits(32))
        if np.dtype(dtype) == bool:
            return numbers.integers(0, 2, shape).astype(bool)
        if np.dtype(dtype).kind == "f":
            return numbers.uniform(low, high, shape).astype(dtype)
        return numbers.integers(int(low), int(high) + 1, shape).astype(dtype)

    def shape(self, ranks: tuple[int, int] = (1, 4), sizes: tuple[int, int] = (1, 5)) -> list[int]:
        return [self.randint(*sizes) for _ in range(self.randint(*ranks))]

    def some(self, **choices: Sequence[Any]) -> dict[str, Any]:
        """Some attributes, each one of its choices."""
        return {name: self.choice(listed) for name, listed in choices.items() if self.random() < 0.6}

    def axis(self, rank: int) -> int:
        return self.randint(-rank, rank - 1)

    def axes(self, rank: int) -> list[int]:
        return [a - self.choice([0, rank]) for a in self.sample(range(rank), self.randint(1, rank))]

    def window(self, rank: int, same: bool) -> tuple[list[int], dict[str, Any]]:
        """The sizes of a kernel and the attributes of its window; `same`: also with pads of SAME."""
        kernel = [self.randint(1, 3) for _ in range(rank)]
        given = self.some(
            strides=[[self.randint(1, 3) for _ in kernel]], dilations=[[self.randint(1, 2) for _ in kernel]]
        )
        how = self.random()
        if how < 0.25:
            given["auto_pad"] = self.choice(["SAME_UPPER", "SAME_LOWER", "VALID"] if same else ["VALID"])
        elif how < 0.8:
            given["pads"] = [self.randint(0, k - 1) for k in kernel * 2]
        return kernel, given


def ints(*values: int) -> Known:
    return Known(np.asarray(values, np.int64))


# -- windows


def conv(d: Draw) -> Drawn:
    rank, group = d.randint(1, 3), d.choice([1, 2])
    kernel, given = d.window(rank, same=True)
    bias = [Known(d.array(4))] * d.randint(0, 1)
    inputs = [d.array(1, 2 * group, *(d.randint(4, 7) for _ in kernel)), Known(d.array(4, 2, *kernel)), *bias]
    return Drawn("Conv", inputs, {**given, "group": group})


def conv_transpose(d: Draw) -> Drawn:
    rank, group = d.randint(1, 3), d.choice([1, 2])
    kernel, given = d.window(rank, same=False)
    if given.pop("auto_pad", "") or d.random() < 0.3:
        given["output_padding"] = [d.randint(0, s - 1) for s in given.get("strides", [1] * rank)]
    inputs = [d.array(1, 2 * group, *(d.randint(3, 5) for _ in kernel)), Known(d.array(2 * group, 2, *kernel))]
    return Drawn("ConvTranspose", inputs + [Known(d.array(2 * group))] * d.randint(0, 1), {**given, "group": group})


def pool(d: Draw) -> Drawn:
    kernel, given = d.window(d.randint(1, 3), same=False)
    given |= {"kernel_shape": kernel, **d.some(ceil_mode=[0, 1])}
    name = d.choice(["MaxPool", "AveragePool", "LpPool"])
    since = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]
    given |= d.some(p=[1, 2, 3]) if name == "LpPool" else {}
    given |= d.some(count_include_pad=[0, 1]) if name == "AveragePool" else {}
    return Drawn(name, [d.array(1, 2, *(d.randint(5, 8) for _ in kernel))], given, since=since)


def global_pool(d: Draw) -> Drawn:
    return Drawn(d.choice(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]), [d.array(*d.shape((3, 5)))])


def resize(d: Draw) -> Drawn:
    shape = [1, 2, *(d.randint(2, 6) for _ in range(d.choice([1, 2, 2, 3])))]
    given = d.some(
        mode=["nearest", "linear", "cubic"] if len(shape) == 4 else ["nearest", "linear"],
        coordinate_transformation_mode=["half_pixel", "pytorch_half_pixel", "asymmetric", "half_pixel_symmetric"],
        nearest_mode=["round_prefer_floor", "round_prefer_ceil", "floor"],
        exclude_outside=[0, 1],
        antialias=[0, 1],
    )
    sizes = ints(1, 2, *(d.randint(1, 9) for _ in shape[2:]))
    return Drawn("Resize", [d.array(*shape), None, None, sizes], given, since=19)


def grid_sample(d: Draw) -> Drawn:
    rank = d.choice([2, 2, 3])
    given = d.some(mode=["linear", "nearest"], padding_mode=["zeros", "border", "reflection"], align_corners=[0, 1])
    grid = d.array(1, *(d.randint(1, 3) for _ in range(rank)), rank, low=-1.3, high=1.3)
    return Drawn("GridSample", [d.array(1, 2, *(d.randint(2, 5) for _ in range(rank))), grid], given, since=20)


# -- moves


def cut(d: Draw) -> Drawn:
    shape = d.shape()
    axes = d.axes(len(shape))
    begin, end = ([d.choice([-100, d.randint(-7, 7), far]) for _ in axes] for far in (100, FAR))
    steps = [d.choice([-2, -1, 1, 2]) for _ in axes]
    return Drawn("Slice", [d.array(*shape), ints(*begin), ints(*end), ints(*axes), ints(*steps)], since=10)


def pad(d: Draw) -> Drawn:
    shape, mode = d.shape(sizes=(3, 5)), d.choice(["constant", "constant", "edge", "reflect", "wrap"])
    axes = d.axes(len(shape)) if d.random() < 0.4 else list(range(len(shape)))
    pads = ints(*(d.randint(-1, 1) for _ in range(2 * len(axes))))
    value = Known(np.asarray(1.5, np.float32)) if d.random() < 0.6 else None
    return Drawn("Pad", [d.array(*shape), pads, value, ints(*axes)], {"mode": mode}, since=19)


def older_pad(d: Draw) -> Drawn:
    shape = d.shape(sizes=(3, 5))
    given = {"pads": [d.randint(-1, 2) for _ in shape * 2], **d.some(value=[1.5])}
    return Drawn("Pad", [d.array(*shape)], given, since=-10)


def split(d: Draw) -> Drawn:
    shape = d.shape()
    axis = d.axis(len(shape))
    if d.random() < 0.5:
        many = d.randint(1, 3)
        return Drawn("Split", [d.array(*shape)], {"axis": axis, "num_outputs": many}, many, since=18)
    first = d.randint(0, shape[axis])
    return Drawn("Split", [d.array(*shape), ints(first, shape[axis] - first)], {"axis": axis}, 2, since=13)


def reshape(d: Draw) -> Drawn:
    shape = d.shape((2, 4), (1, 4))
    wanted = d.sample(shape, len(shape))
    wanted[d.randrange(len(shape))] = -1 if d.random() < 0.5 else wanted[0]
    fits = -1 in wanted and np.prod(shape) % np.prod([w for w in wanted if w > 0]) == 0
    return Drawn("Reshape", [d.array(*shape), ints(*(wanted if fits else [0, -1]))])


def axes_of_one(d: Draw) -> Drawn:
    if d.random() < 0.4:
        x = d.array(*d.shape((1, 3)))
        return Drawn("Unsqueeze", [x, ints(*d.axes(x.ndim + 1)[:1])], since=13)
    shape = [d.choice([1, 1, 3]) for _ in range(4)]
    ones = [a - d.choice([0, 4]) for a in range(4) if shape[a] == 1]
    return Drawn("Squeeze", [d.array(*shape), *([ints(*ones)] if ones and d.random() < 0.6 else [])], since=13)


def moved(d: Draw) -> Drawn:
    shape = d.shape((2, 4), (1, 4))
    name = d.choice(["Flatten", "Transpose", "Tile", "Expand", "Concat"])
    if name == "Flatten":
        return Drawn(name, [d.array(*shape)], d.some(axis=range(-len(shape), len(shape) + 1)), since=11)
    if name == "Transpose":
        return Drawn(name, [d.array(*shape)], d.some(perm=[d.sample(range(len(shape)), len(shape))]))
    if name == "Tile":
        return Drawn(name, [d.array(*shape), ints(*(d.randint(1, 3) for _ in shape))])
    if name == "Expand":
        return Drawn(name, [d.array(*(d.choice([1, n]) for n in shape)), ints(*shape)], since=8)
    axis = d.axis(len(shape))
    return Drawn(name, [d.array(*shape), d.array(*shape)], {"axis": axis}, since=11)


def blocks(d: Draw) -> Drawn:
    size = d.choice([2, 3])
    if d.random() < 0.5:
        return Drawn("SpaceToDepth", [d.array(1, 2, 2 * size, size)], {"blocksize": size})
    given = {"blocksize": size, **d.some(mode=["DCR", "CRD"])}
    return Drawn("DepthToSpace", [d.array(1, 2 * size * size, 2, 3)], given, since=11)


# -- elements by their places


def gather(d: Draw) -> Drawn:
    shape = d.shape((1, 3))
    axis = d.axis(len(shape))
    name, wanted = "Gather", d.shape((0, 2), (1, 3))
    if d.random() < 0.5:
        name, wanted = "GatherElements", [d.randint(1, n) for n in shape]
    places = d.array(*wanted, dtype=np.int64, low=-shape[axis], high=shape[axis] - 1)
    return Drawn(name, [d.array(*shape), places], {"axis": axis}, since=11)


def scatter(d: Draw) -> Drawn:
    shape = d.shape((1, 3), (2, 5))
    axis = d.axis(len(shape))
    order = np.argsort(d.array(*shape), axis).astype(np.int64) - d.choice([0, shape[axis]])
    part = tuple(slice(0, d.randint(1, n)) for n in shape)
    given = {"axis": axis, **d.some(reduction=["none", "add", "mul", "max", "min"])}
    return Drawn("ScatterElements", [d.array(*shape), order[part], d.array(*order[part].shape)], given, since=18)


def ordered(d: Draw) -> Drawn:
    shape = d.shape((1, 3), (2, 5))
    axis = d.axis(len(shape))
    name = d.choice(["TopK", "ArgMax", "ArgMin", "CumSum"])
    if name == "TopK":
        many = ints(d.randint(1, shape[axis]))
        return Drawn(name, [d.array(*shape), many], {"axis": axis, **d.some(largest=[0, 1])}, 2, since=11)
    if name == "CumSum":
        given = d.some(exclusive=[0, 1], reverse=[0, 1])
        return Drawn(name, [d.array(*shape), Known(np.asarray(axis, np.int64))], given, since=11)
    given = {"axis": axis, **d.some(keepdims=[0, 1], select_last_index=[0, 1])}
    return Drawn(name, [np.round(d.array(*shape, low=-1, high=1))], given, since=12)


def one_hot(d: Draw) -> Drawn:
    depth, shape = d.randint(2, 4), d.shape((1, 2))
    places = d.array(*shape, dtype=np.int64, low=-depth, high=depth - 1)
    values = Known(np.asarray([1.5, 7], np.float32))
    return Drawn("OneHot", [places, ints(depth), values], {"axis": d.axis(len(shape) + 1)}, since=11)


# -- arithmetic

DOMAINS: Mapping[str, tuple[float, float]] = {
    "Acos": (-0.9, 0.9), "Acosh": (1.1, 3), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Log": (0.1, 3), "Sqrt": (0.1, 3), "Pow": (0.5, 3),
}  # fmt: skip
NUMBERS = {"alpha": [0.3, 1.7], "beta": [0.4], "gamma": [1.3], "bias": [0.3], "lambd": [1.0]}


def element(name: str, attributes: Sequence[str], inputs: int, since: int) -> Callable[[Draw], Drawn]:
    """An operator on each element, of as many tensors, which broadcast."""
    dtype: Any = bool if name in ("Not", "And", "Or", "Xor") else np.int32 if name.startswith("Bitwise") else np.float32

    def drawn(d: Draw) -> Drawn:
        low, high = DOMAINS.get(name, (-3, 3))
        shape = d.shape((1, 3))
        shapes = [shape, *([d.choice([1, n]) for n in shape] for _ in range((inputs or 3) - 1))]
        arrays = [d.array(*s, dtype=dtype, low=low, high=high) for s in shapes]
        if name == "Round":
            arrays = [np.round(a * 2) / 2 for a in arrays]
        return Drawn(name, arrays, d.some(**{n: NUMBERS[n] for n in attributes}), since=since)

    return drawn


def clip(d: Draw) -> Drawn:
    limits = [d.choice([None, Known(v), v]) for v in (np.asarray(n, np.float32) for n in (-1, 1.5))]
    return Drawn("Clip", [d.array(*d.shape()), *limits], since=12)


def older_clip(d: Draw) -> Drawn:
    return Drawn("Clip", [d.array(*d.shape())], d.some(min=[-1.0], max=[1.5]), since=-10)


def reduction(d: Draw) -> Drawn:
    name = f"Reduce{d.choice('Max Min Mean Prod Sum L1 L2 SumSquare LogSum LogSumExp'.split())}"
    shape = d.shape(sizes=(1, 4))
    axes = [ints(*d.axes(len(shape)))] if d.random() < 0.7 else []
    given = d.some(keepdims=[0, 1], **({} if axes else {"noop_with_empty_axes": [0, 1]}))
    return Drawn(name, [d.array(*shape, low=0.1), *axes], given, since=18)


def rows(d: Draw) -> Drawn:
    shape = d.shape()
    name = d.choice(["Softmax", "LogSoftmax", "Hardmax"])
    return Drawn(name, [d.array(*shape)], {"axis": d.axis(len(shape))}, since=13)


def older_rows(d: Draw) -> Drawn:
    """ONNX's reference does not know that these are over several axes."""
    shape = [*d.shape((0, 2)), d.randint(2, 5), 1][: d.randint(2, 4)]
    return Drawn(d.choice(["Softmax", "Hardmax"]), [d.array(*shape)], {"axis": len(shape) - 1}, since=-12)


def normalised(d: Draw) -> Drawn:
    shape = d.shape((3, 4), (2, 4))
    name = d.choice(["BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization", "LRN"])
    given = d.some(epsilon=[0.1])
    if name == "LRN":
        return Drawn(
            name, [d.array(2, 3, 4, 4)], {"size": d.choice([1, 3, 5]), **d.some(alpha=[0.5], beta=[0.6], bias=[2.0])}
        )
    if name == "LayerNormalization":
        axis = d.axis(len(shape))
        return Drawn(name, [d.array(*shape), Known(d.array(*shape[axis:]))], {"axis": axis, **given}, since=17)
    if name == "GroupNormalization":
        each = [Known(d.array(4)), Known(d.array(4))]
        return Drawn(name, [d.array(2, 4, *shape[2:]), *each], {"num_groups": d.choice([1, 2, 4]), **given}, since=21)
    count = 4 if name == "BatchNormalization" else 2
    return Drawn(name, [d.array(*shape), *(Known(d.array(shape[1], low=0.5)) for _ in range(count))], given, since=15)


def gemm(d: Draw) -> Drawn:
    m, k, n = (d.randint(1, 4) for _ in range(3))
    given = d.some(alpha=[0.5], beta=[2.0], transA=[0, 1], transB=[0, 1])
    x = d.array(*((k, m) if given.get("transA") else (m, k)))
    y = d.array(*((n, k) if given.get("transB") else (k, n)))
    c = d.array(*d.choice([(n,), (1, n), (m, 1), (m, n), (1,)]))
    return Drawn("Gemm", [x, d.choice([y, Known(y)]), d.choice([c, Known(c)])], given)


def product(d: Draw) -> Drawn:
    m, k, n = (d.randint(1, 4) for _ in range(3))
    lead = d.shape((0, 2), (1, 3))
    x = d.array(*[d.choice([1, v]) for v in lead], m, k) if d.random() < 0.8 else d.array(k)
    y = d.array(*lead, k, n) if d.random() < 0.8 else d.array(k)
    return Drawn("MatMul", [x, d.choice([y, Known(y)])])


def fourier(d: Draw) -> Drawn:
    given, onesided = d.some(inverse=[0, 1]), d.randint(0, 1)
    parts = d.randint(1, 2) if not onesided else 2 if given.get("inverse") else 1
    x = d.array(2, d.randint(2, 6), parts)
    length = [Known(np.asarray(d.randint(2, 7), np.int64))] if d.random() < 0.5 else []
    return Drawn("DFT", [x, *length], {**given, "onesided": onesided}, since=20)


# -- recurrent and quantised


def recurrent(d: Draw) -> Drawn:
    name, gates, functions = d.choice([("LSTM", 4, 3), ("GRU", 3, 2), ("RNN", 1, 1)])
    direction = d.choice(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    steps, batch, inner, hidden = d.randint(1, 3), d.randint(1, 2), d.randint(1, 3), d.randint(1, 3)
    given = {"hidden_size": hidden, "direction": direction}
    if d.random() < 0.5:
        named = ["Sigmoid", "Tanh", "Relu", *(["LeakyRelu", "HardSigmoid", "Softsign"] if d.random() < 0.3 else [])]
        given["activations"] = [d.choice(named) for _ in range(functions * ways)]
    given |= d.some(linear_before_reset=[0, 1]) if name == "GRU" else {}
    weights = [Known(d.array(ways, gates * hidden, n, low=-1, high=1)) for n in (inner, hidden)]
    bias = Known(d.array(ways, 2 * gates * hidden)) if d.random() < 0.6 else None
    states = [d.array(ways, batch, hidden) if d.random() < 0.5 else None for _ in range(2 if name == "LSTM" else 1)]
    inputs = [d.array(steps, batch, inner), *weights, bias, None, *states]
    return Drawn(name, inputs, given, 3 if name == "LSTM" else 2, since=7)


def levels(d: Draw) -> Drawn:
    shape, dtype = d.shape((2, 3), (2, 4)), d.choice([np.int8, np.uint8])
    many = (shape[1],) if d.random() < 0.4 else ()
    scale, zero = d.array(*many, low=0.01, high=0.1), d.array(*many, dtype=dtype, low=0, high=9)
    given = d.some(axis=[1, 1 - len(shape)])
    if d.random() < 0.5:
        x = d.array(*shape, dtype=dtype, low=0 if dtype == np.uint8 else -100, high=100)
        return Drawn("DequantizeLinear", [x, Known(np.asarray(scale)), Known(np.asarray(zero))], given, since=13)
    return Drawn(
        "QuantizeLinear", [d.array(*shape), Known(np.asarray(scale)), Known(np.asarray(zero))], given, since=13
    )


def of_integers(d: Draw) -> Drawn:
    dtype = d.choice([np.int8, np.uint8])

    def bytes_of(*shape: int) -> np.ndarray:
        """With signs, small: ONNX Runtime limits sums of two products to 16 bits on hosts without VNNI."""
        low, high = (0, 100) if dtype == np.uint8 else (-60, 60)
        return d.array(*shape, dtype=dtype, low=low, high=high)

    def number(value: float, kind: Any = np.float32) -> Known:
        return Known(np.asarray(value, kind))

    name = d.choice(["MatMulInteger", "ConvInteger", "QLinearConv", "QLinearMatMul"])
    if name == "MatMulInteger":
        return Drawn(name, [bytes_of(2, 3), bytes_of(3, 4), number(3, dtype), Known(bytes_of(4))], since=10)
    if name == "QLinearMatMul":
        scales = [number(0.02), number(3, dtype), bytes_of(3, 4), number(0.03), number(5, dtype)]
        return Drawn(name, [bytes_of(2, 3), *scales, number(0.1), number(7, dtype)], since=10, step=1)
    kernel, given = d.window(2, same=True)
    weights = Known(bytes_of(2, 2, *kernel))
    if name == "ConvInteger":
        return Drawn(name, [bytes_of(1, 2, 6, 5), weights, number(3, dtype), number(4, dtype)], given, since=10)
    x = [bytes_of(1, 2, 6, 5), number(0.02), number(3, dtype), weights, number(0.05), number(0, dtype)]
    return Drawn(name, [*x, number(0.5), number(5, dtype)], given, since=10, step=1)


DRAWN: dict[str, Callable[[Draw], Drawn]] = {
    f.__name__: f
    for f in (
        conv, conv_transpose, pool, global_pool, resize, grid_sample, cut, pad, older_pad, split, reshape, axes_of_one, moved, blocks,
        gather, scatter, ordered, one_hot, clip, older_clip, reduction, rows, older_rows, normalised, gemm, product, fourier, recurrent,
        levels, of_integers,
    )
}  # fmt: skip


def model_of(d: Draw, drawn: Drawn) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of the operator alone, in an opset that has this form (below 0: not behind it), and its inputs by name."""
    opset = d.choice(
        [o for o in OPSETS if (o >= drawn.since if drawn.since > 0 else o <= -drawn.since)] or [drawn.since]
    )
    names, given, known = [], {}, []
    for i, item in enumerate(drawn.inputs):
        names.append("" if item is None else f"i{i}")
        if isinstance(item, Known):
            known.append(numpy_helper.from_array(item.array, f"i{i}"))
        elif item is not None:
            given[f"i{i}"] = item
    while names and not names[-1]:
        names.pop()
    outputs = [f"o{i}" for i in range(drawn.outputs)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in given.items()
    ]
    node = helper.make_node(drawn.operator, names, outputs, name="node", **drawn.attributes)
    made = [helper.make_empty_tensor_value_info(o) for o in outputs]
    graph = helper.make_graph([node], "drawn", infos, made, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model)
    for output in model.graph.output:  # of some operators nothing is inferred
        output.type.tensor_type.elem_type = output.type.tensor_type.elem_type or onnx.TensorProto.FLOAT
    return model, given

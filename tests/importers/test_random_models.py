"""Random models of operators that move, join and reduce, around convolutions: against ONNX Runtime.

They are about the order in which tensors lie: every seed mixes operators that want the channels last with others.
"""

import math

import numpy as np
import onnxruntime
import pytest

from compassc.importers.onnx import import_model
from tests.choosing import some
from tests.importers.networks import Net

LARGEST = 4000
OPERATORS = 14


class Drawing:
    """A model being drawn: `shapes` of its tensors by name."""

    def __init__(self, seed):
        self.net = Net(17, seed)
        self.random = np.random.default_rng(seed)
        self.shapes = {}

    def pick(self, choices):
        return list(choices)[int(self.random.integers(len(choices)))]

    def new(self, name, shape):
        self.shapes[name] = tuple(shape)
        return name

    def some(self, *ranks):
        """A tensor, rather one of the last ones; of certain ranks when given."""
        fitting = [n for n, s in self.shapes.items() if not ranks or len(s) in ranks]
        return self.pick(fitting[-3:]) if fitting else None


def transpose(d, x):
    perm = d.random.permutation(len(d.shapes[x])).tolist()
    d.new(d.net("Transpose", x, perm=perm), [d.shapes[x][p] for p in perm])


def reshape(d, x):
    shape = list(d.shapes[x])
    at = int(d.random.integers(len(shape)))
    factors = [k for k in range(2, shape[at]) if shape[at] % k == 0]
    if factors and d.random.random() < 0.5 and len(shape) < 5:
        k = d.pick(factors)
        shape[at : at + 1] = [k, shape[at] // k]
    elif len(shape) > 1:
        at = min(at, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    d.new(d.net("Reshape", x, d.net.ints(*shape)), shape)


def convolution(d, x):
    n, c, h, w = d.shapes[x]
    if min(h, w) < 3 or c > 64:
        return
    d.new(d.net.conv(x, c, 6, act=d.pick(["Relu", "Sigmoid", ""])), (n, 6, h, w))


def pool(d, x):
    n, c, h, w = d.shapes[x]
    if min(h, w) >= 2:
        d.new(d.net("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1]), (n, c, h - 1, w - 1))


def unary(d, x):
    d.new(d.net(d.pick(["Relu", "Tanh", "Sigmoid", "Abs", "Neg"]), x), d.shapes[x])


def with_constant(d, x):
    shape = [size if d.random.random() < 0.5 else 1 for size in d.shapes[x]]
    cut = int(d.random.integers(len(shape)))
    constant = d.net.constant(d.random.standard_normal(shape[cut:]))
    d.new(d.net(d.pick(["Add", "Mul", "Sub"]), *d.random.permutation([x, constant]).tolist()), d.shapes[x])


def binary(d, x):
    def fits(a, b):
        return all(p == q or p == 1 or q == 1 for p, q in zip(a[::-1], b[::-1], strict=False))

    others = [n for n, s in d.shapes.items() if fits(s, d.shapes[x])]
    y = d.pick(others)
    shape = np.broadcast_shapes(d.shapes[x], d.shapes[y])
    if math.prod(shape) <= LARGEST:
        d.new(d.net(d.pick(["Add", "Mul", "Max"]), x, y), shape)


def concat(d, x):
    axis = int(d.random.integers(len(d.shapes[x])))
    same = [
        n
        for n, s in d.shapes.items()
        if len(s) == len(d.shapes[x])
        and all(i == axis or p == q for i, (p, q) in enumerate(zip(s, d.shapes[x], strict=True)))
    ]
    parts = [x, d.pick(same)]
    shape = list(d.shapes[x])
    shape[axis] = sum(d.shapes[p][axis] for p in parts)
    d.new(d.net("Concat", *parts, axis=axis), shape)


def split(d, x):
    axis = int(d.random.integers(len(d.shapes[x])))
    size = d.shapes[x][axis]
    if size < 2:
        return
    first = int(d.random.integers(1, size))
    parts = d.net("Split", x, d.net.ints(first, size - first), outputs=2, axis=axis)
    for part, many in zip(parts, (first, size - first), strict=True):
        d.new(part, [many if i == axis else s for i, s in enumerate(d.shapes[x])])


def part(d, x):
    axis = int(d.random.integers(len(d.shapes[x])))
    size = d.shapes[x][axis]
    index = range(*d.pick([slice(1, None), slice(None, None, 2), slice(None, None, -1), slice(0, -1)]).indices(size))
    if len(index):
        ends = d.net.ints(index.stop if index.stop >= 0 else -(1 << 40))
        name = d.net("Slice", x, d.net.ints(index.start), ends, d.net.ints(axis), d.net.ints(index.step))
        d.new(name, [len(index) if i == axis else s for i, s in enumerate(d.shapes[x])])


def reduce(d, x):
    rank = len(d.shapes[x])
    axes = sorted(d.random.permutation(rank)[: max(1, rank // 2)].tolist())
    keep = bool(d.random.integers(2))
    if rank - len(axes) < 1:
        return
    shape = [1 if i in axes else s for i, s in enumerate(d.shapes[x]) if keep or i not in axes]
    d.new(d.net(d.pick(["ReduceMean", "ReduceMax"]), x, axes=axes, keepdims=int(keep)), shape)


def softmax(d, x):
    d.new(d.net("Softmax", x, axis=int(d.random.integers(len(d.shapes[x])))), d.shapes[x])


def pad(d, x):
    rank = len(d.shapes[x])
    pads = d.random.integers(0, 2, 2 * rank).tolist()
    d.new(d.net("Pad", x, d.net.ints(*pads)), [s + pads[i] + pads[i + rank] for i, s in enumerate(d.shapes[x])])


def gather(d, x):
    axis = int(d.random.integers(len(d.shapes[x])))
    index = d.random.integers(-d.shapes[x][axis], d.shapes[x][axis], 3)
    d.new(d.net("Gather", x, d.net.ints(*index), axis=axis), [3 if i == axis else s for i, s in enumerate(d.shapes[x])])


def squeeze(d, x):
    ones = [i for i, s in enumerate(d.shapes[x]) if s == 1]
    if ones and len(d.shapes[x]) > 1:
        at = d.pick(ones)
        d.new(d.net("Squeeze", x, d.net.ints(at)), [s for i, s in enumerate(d.shapes[x]) if i != at])
    elif len(d.shapes[x]) < 5:
        at = int(d.random.integers(len(d.shapes[x]) + 1))
        shape = list(d.shapes[x])
        shape.insert(at, 1)
        d.new(d.net("Unsqueeze", x, d.net.ints(at)), shape)


def product(d, x):
    inner = d.shapes[x][-1]
    if len(d.shapes[x]) > 1:
        d.new(d.net("MatMul", x, d.net.weights(inner, 5, scale=inner**-0.5)), (*d.shapes[x][:-1], 5))


STEPS = {
    transpose: (),
    reshape: (),
    convolution: (4,),
    pool: (4,),
    unary: (),
    with_constant: (),
    binary: (),
    concat: (),
    split: (),
    part: (),
    reduce: (2, 3, 4, 5),
    softmax: (),
    pad: (2, 3, 4),
    gather: (),
    squeeze: (),
    product: (),
}


def model(seed):
    d = Drawing(seed)
    d.new(d.net.input("x", 1, 4, 5, 6), (1, 4, 5, 6))
    for _ in range(OPERATORS):
        step = d.pick(STEPS)
        x = d.some(*STEPS[step])
        if x is not None and math.prod(d.shapes[x]) <= LARGEST:
            step(d, x)
    names = [n for n in d.shapes if n != "x"]
    used = {i for n in d.net.nodes for i in n.input}
    return d.net.model(*([n for n in names if n not in used] or names[-1:]))


@pytest.mark.parametrize("block", range(4))
def test_results_are_those_of_onnx_runtime(block, chained):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for seed in some(range(block * 40, block * 40 + 40)):
        drawn = model(seed)
        x = np.random.default_rng(seed).standard_normal((1, 4, 5, 6)).astype(np.float32)
        wanted = onnxruntime.InferenceSession(drawn.SerializeToString(), options).run(None, {"x": x})
        for got, want in some(zip(chained(import_model(drawn), x), wanted, strict=True)):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4, err_msg=f"seed {seed}")

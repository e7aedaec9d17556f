"""Random tensor expressions: what schedules of all kinds are tried on.

Each kind of operation is a function of a `Draft`; `KINDS` says how often it is drawn. Floats stay whole and small, so that
all sums are exact in whatever order they are made.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compassc import te
from compassc.ir.exprs import Expr

DTYPES = ("int32", "int32", "int16", "int8", "int8", "uint8", "uint8", "uint16", "uint32", "float32", "float16")
LIMIT = 64
"""Floats are brought into this range before they are added up, so that all sums are exact, in whatever order."""


def _better(a: tuple, b: tuple) -> tuple:
    """The larger value, with its place; the first of equal ones."""
    wins = te.any(a[1] > b[1], te.all(a[1] == b[1], a[0] <= b[0]))
    return tuple(te.if_then_else(wins, x, y) for x, y in zip(a, b))


LARGEST = te.comm_reducer(_better, lambda i, v: (te.max_value(i), te.min_value(v)), "largest")
MOST = 5000
"""More elements than these are reduced."""
MOMENTS = te.comm_reducer(
    lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda x, y: (te.const(0, x), te.const(0, y)), "moments"
)


@dataclass
class Case:
    """Expressions with their inputs; `tensors` are those that were computed."""

    inputs: list[te.Tensor]
    tensors: list[te.Tensor]
    outputs: list[te.Tensor]

    @property
    def args(self) -> list[te.Tensor]:
        return [*self.inputs, *self.outputs]

    def arrays(self, draw: random.Random) -> list[np.ndarray]:
        rng = np.random.default_rng(draw.randrange(1 << 30))
        made = []
        for t in self.args:
            low, high = (0, 2) if t.dtype.is_bool else t.dtype.range() if t.dtype.is_integer else (-50, 50)
            shape = [d.value for d in t.shape]
            made.append(rng.integers(max(low, -50), min(high, 50), shape).astype(str(t.dtype)))
        return made


def case(draw: random.Random, statements: bool = True) -> Case:
    """One to five operations on one or two inputs. `statements`: some may be functions of statements."""
    inputs = [
        te.placeholder([_extent(draw) for _ in range(draw.randint(1, 3))], draw.choice(DTYPES), name=f"x{i}")
        for i in range(draw.randint(1, 2))
    ]
    known, computed = list(inputs), []
    for i in range(draw.randint(1, 5)):
        made = (statements and _statements(draw, known, f"t{i}", computed)) or _operation(draw, known, f"t{i}", inputs)
        several = list(made) if isinstance(made, tuple) else [made]
        known += several
        computed += several
    read = {t for c in computed for t in c.op.input_tensors}
    ends = {t.op for t in computed if t not in read}
    kept = {t.op for t in computed if re.fullmatch(r"t\d+", t.op.name) and draw.random() < 0.15}  # read, and outputs
    outputs = [t for t in computed if t.op in ends | kept]
    used = {t for t in read if t in inputs}
    return Case([t for t in inputs if t in used], computed, outputs)


def _extent(draw: random.Random) -> int:
    """Small, and sometimes enough for a transfer or a vector."""
    return draw.randint(8, 40) if draw.random() < 0.15 else draw.randint(1, 7)


@dataclass
class Draft:
    """What an operation is made of: mostly a tensor that was made last, `source`."""

    draw: random.Random
    known: list[te.Tensor]
    name: str
    inputs: list[te.Tensor]
    source: te.Tensor

    @property
    def shape(self) -> list[int]:
        return sizes(self.source)

    def given(self, shape: list[int], kind: str, name: str) -> te.Tensor:
        """Another input of the kernel."""
        made = te.placeholder(shape, kind, name=f"{self.name}_{name}")
        self.inputs.append(made)
        return made

    def other(self, index: tuple, of: te.Tensor | None = None) -> Expr:
        """An element of another tensor at indices of the source, brought into its range."""
        other = self.draw.choice(self.known) if of is None else of
        return _number(other[tuple(index[k % len(index)] % d for k, d in enumerate(sizes(other)))])


Made = te.Tensor | tuple[te.Tensor, ...]


def sizes(t: te.Tensor) -> list[int]:
    """The extents of a tensor."""
    return [d.value for d in t.shape]


def _number(x: Expr, narrow: bool = False) -> Expr:
    """An element to calculate with: a whole number, or a float that is one and small. `narrow`: of its own type."""
    if x.dtype.is_bool:
        return x.astype("int32")
    if x.dtype.is_float:
        wide = x if narrow else x.astype("float32")
        return te.max(te.min(wide, te.const(LIMIT, wide.dtype)), te.const(-LIMIT, wide.dtype))
    return x if narrow else x.astype("int32")


def _like(x: Expr, number: int) -> Expr:
    return te.const(number % 2 if x.dtype.is_bool else number, x.dtype)


def _plus_one(x: Expr) -> Expr:
    x = _number(x, narrow=True)
    return x + _like(x, 1)


def two(d: Draft) -> Made:
    """Two tensors at once."""
    x = lambda i: _number(d.source[i])
    return te.compute(d.shape, lambda *i: (x(i) * _like(x(i), 2), x(i) - _like(x(i), 9)), name=d.name)


def scale(d: Draft) -> Made:
    """A byte times a fraction, rounded, as another type."""
    rounded, to = d.draw.choice((te.nearbyint, te.const(0.5, "float32").__add__)), d.draw.choice(DTYPES)
    scaled = lambda x: rounded(x.astype("int8").astype("float32") * te.const(-0.375, "float32"))
    return te.compute(d.shape, lambda *i: scaled(d.source[i]).astype(to), name=d.name)


def where(d: Draft) -> Made:
    """The place of the largest along the last axis, and it."""
    k = te.reduce_axis((0, d.shape[-1]), name="k")
    pair = lambda i: (k.var, _number(d.source[(*i[: len(d.shape) - 1], k)]))
    return te.compute(d.shape[:-1] or [1], lambda *i: LARGEST(pair(i), k), name=d.name)


def both(d: Draft) -> Made:
    """The sum and the sum of squares along the first axis."""
    k = te.reduce_axis((0, d.shape[0]), name="k")
    x = lambda i: _number(d.source[(k, *i[: len(d.shape) - 1])])
    return te.compute(d.shape[1:] or [1], lambda *i: MOMENTS((x(i), x(i) * x(i)), k), name=d.name)


def join(d: Draft) -> Made:
    """Something of this and something of another tensor."""
    other = d.draw.choice(d.known)
    value = lambda i: _number(d.source[i]).astype("int32") + d.other(i, other).astype("int32") * 3
    return te.compute(d.shape, lambda *i: value(i), name=d.name)


def outer(d: Draft) -> Made:
    """Each element with each of the first axis of another tensor."""
    other, n = d.draw.choice(d.known), d.draw.randint(1, 5)
    value = lambda i: _number(d.source[i[1:]]).astype("int32") - d.other(i[:1], other).astype("int32")
    return te.compute([n, *d.shape], lambda *i: value(i), name=d.name) if len(d.shape) < 4 else join(d)


def window(d: Draft) -> Made:
    """Sums of neighbours along the first axis."""
    n, step = d.draw.randint(1, min(3, d.shape[0])), d.draw.randint(1, 2)
    k = te.reduce_axis((0, n), name="w")
    out = [(d.shape[0] - n) // step + 1, *d.shape[1:]]
    return te.compute(out, lambda i, *r: te.sum(_number(d.source[(i * step + k, *r)]), axis=k), name=d.name)


def pool(d: Draft) -> Made:
    """The largest of neighbours along one or two axes, which go beyond the tensor."""
    rank = min(len(d.shape), d.draw.randint(1, 2))
    reach, step, by = d.draw.randint(1, 3), d.draw.randint(1, 2), d.draw.randint(0, 2)
    axes = [te.reduce_axis((0, reach), name=f"p{i}") for i in range(rank)]
    out = [max(1, (n + 2 * by - reach) // step + 1) for n in d.shape[:rank]]
    reducer, floats = d.draw.choice((te.max, te.sum)), d.source.dtype.is_float

    def value(i):
        at = [x * step + k - by for x, k in zip(i, axes)]
        inside = [c for x, n in zip(at, d.shape) for c in (x >= 0, x < n)]
        none = te.const(-LIMIT, "float32" if floats else "int32")
        return reducer(te.if_then_else(te.all(*inside), _number(d.source[(*at, *i[rank:])]), none), axis=axes)

    return te.compute([*out, *d.shape[rank:]], lambda *i: value(i), name=d.name)


def move(d: Draft) -> Made:
    """The axes in another order."""
    shape = d.shape
    order = d.draw.sample(range(len(shape)), len(shape))
    back = [order.index(k) for k in range(len(shape))]
    return te.compute([shape[k] for k in order], lambda *i: d.source[tuple(i[b] for b in back)], name=d.name)


def flip(d: Draft) -> Made:
    """Some axes from the end to the beginning, some at each second element."""
    ways = [d.draw.choice(("as it is", "turned", "second")) for _ in d.shape]
    out = [(n + 1) // 2 if way == "second" else n for n, way in zip(d.shape, ways)]
    index = {"as it is": lambda i, n: i, "turned": lambda i, n: n - 1 - i, "second": lambda i, n: i * 2}
    at = lambda i: tuple(index[way](x, n) for x, n, way in zip(i, d.shape, ways))
    return te.compute(out, lambda *i: _plus_one(d.source[at(i)]), name=d.name)


def reshape(d: Draft) -> Made:
    """The elements in their order with other extents."""
    count, shape = math.prod(d.shape), d.shape
    first = d.draw.choice([n for n in range(1, count + 1) if count % n == 0])
    out = d.draw.choice(([count], [first, count // first], [1, count]))

    def value(i):
        flat = i[0] if len(i) == 1 else i[0] * out[1] + i[1]
        index, inner = [], count
        for n in shape:
            inner //= n
            index.append(flat // inner % n)
        return d.source[tuple(index)]

    return te.compute(out, lambda *i: value(i), name=d.name)


def gather(d: Draft) -> Made:
    """Rows by numbers that are known when it runs; those beyond the tensor are brought into it."""
    n, shape = d.draw.randint(1, 9), d.shape
    places = d.given([n], d.draw.choice(("int32", "int16")), "i")
    clipped = lambda x: te.max(te.min(x, te.const(shape[0] - 1, "int32")), te.const(0, "int32"))
    wrapped = lambda x: te.floormod(x, te.const(shape[0], "int32"))
    into = d.draw.choice((clipped, wrapped))
    return te.compute([n, *shape[1:]], lambda i, *r: d.source[(into(places[i].astype("int32")), *r)], name=d.name)


def concatenate(d: Draft) -> Made:
    """The elements of two tensors behind each other, along the first axis."""
    other, n, more = d.draw.choice(d.known), d.shape[0], d.draw.randint(1, 4)

    def value(i, r):
        here = lambda: _number(d.source[(i, *r)]).astype("int32")
        return te.if_then_else(i < n, here(), d.other((i - n, *r), other).astype("int32"))

    return te.compute([n + more, *d.shape[1:]], lambda i, *r: value(i, r), name=d.name)


def spread(d: Draft) -> Made:
    """Zeros between the elements of the last axis."""
    n, by = d.shape[-1], d.draw.randint(2, 3)
    value = lambda i, last: te.if_then_else((last % by).equal(0), d.source[(*i, last // by)], _like(d.source, 0))
    return te.compute([*d.shape[:-1], (n - 1) * by + 1], lambda *i: value(i[:-1], i[-1]), name=d.name)


def reduce(d: Draft) -> Made:
    """Some axes from the first on become one value; sometimes of elements that a condition chooses."""
    axes = [te.reduce_axis((0, n), name=f"r{k}") for k, n in enumerate(d.shape[: d.draw.randint(1, len(d.shape))])]
    reducer = d.draw.choice((te.sum, te.max, te.min))
    narrow = d.draw.random() < 0.4 and not d.source.dtype.is_float  # sums of bytes run over, all the same
    if not d.source.dtype.is_float and d.draw.random() < 0.2:
        reducer = te.prod
    kept = d.shape[len(axes) :]

    def body(*i):
        chosen = (axes[0] + 0) % 2 == 0 if d.draw.random() < 0.3 else None
        return reducer(_number(d.source[(*axes, *i)], narrow), axes, chosen)

    return te.compute(kept or [1], (lambda *i: body(*i[: len(kept)])), name=d.name)


def pad(d: Draft) -> Made:
    """A frame of constants around the first axis, or around all of them."""
    rank = d.draw.choice((1, len(d.shape)))
    before, after = ([d.draw.randint(0, 2) for _ in range(rank)] for _ in range(2))
    out = [n + b + a for n, b, a in zip(d.shape, before, after)]

    def value(i):
        inside = te.all(*(c for x, n, b in zip(i, d.shape, before) for c in (x >= b, x < n + b)))
        at = tuple(x - b for x, b in zip(i, before))
        return te.if_then_else(inside, d.source[(*at, *i[rank:])], _like(d.source, 5))

    return te.compute([*out, *d.shape[rank:]], lambda *i: value(i), name=d.name)


def pick(d: Draft) -> Made:
    """Rows by a sum that goes round."""
    k = d.draw.randint(1, 3)
    row = lambda i, r: d.source[(((i * k) // 2) % d.shape[0], *r)]
    return te.compute([d.draw.randint(1, 8), *d.shape[1:]], lambda i, *r: _plus_one(row(i, r)), name=d.name)


def choose(d: Draft) -> Made:
    """One of two values, by what they are or by where they are."""
    other, pieces = d.draw.choice(d.known), d.draw.random() < 0.5
    way = d.draw.choice((te.Select, te.if_then_else))

    def value(i):
        a, b = _number(d.source[i]).astype("int32"), d.other(i, other).astype("int32")
        condition = te.any(i[0] % 3 < 1, i[-1] >= 2) if pieces else te.all(a > b, a % 2 < 1)
        return way(condition, a - 1, b * 2)

    return te.compute(d.shape, lambda *i: value(i), name=d.name)


def compare(d: Draft) -> Made:
    """Whether something holds, as such or as a small number."""
    to, other = d.draw.choice(("bool", "bool", "int8", "uint8", "float32")), d.draw.choice(d.known)
    holds = lambda i: _number(d.source[i]).astype("int32") <= d.other(i, other).astype("int32")
    return te.compute(d.shape, lambda *i: holds(i).astype(to), name=d.name)


def cast(d: Draft) -> Made:
    """Through one type into another."""
    by, to = (d.draw.choice([k for k in DTYPES if not k.startswith("float")]) for _ in range(2))
    return te.compute(d.shape, lambda *i: _number(d.source[i]).astype("int32").astype(by).astype(to), name=d.name)


def divide(d: Draft) -> Made:
    """Quotients and remainders of signed numbers, by constants and by what is computed."""
    divide = d.draw.choice((te.floordiv, te.floormod, te.truncdiv, te.truncmod))
    constant = d.draw.choice((-7, -2, -1, 1, 3, 8))
    by = d.draw.choice((lambda x: te.const(constant, "int32"), lambda x: x % 5 + 1, lambda x: x % 4 - 4))
    x = lambda i: _number(d.source[i]).astype("int32")
    return te.compute(d.shape, lambda *i: divide(x(i), by(x(i))), name=d.name)


def bits(d: Draft) -> Made:
    """Operations on bits, of its own type or of 32."""
    if d.source.dtype.is_float:
        return divide(d)
    narrow, by = d.draw.random() < 0.5, d.draw.randint(0, 6)
    ops = (lambda x: x & _like(x, 11), lambda x: x | _like(x, 6), lambda x: x ^ _like(x, 93), lambda x: ~x)
    ops += (lambda x: x << _like(x, by), lambda x: x >> _like(x, by), te.popcount)
    op = d.draw.choice(ops)
    return te.compute(d.shape, lambda *i: op(_number(d.source[i], narrow)), name=d.name)


def simple(d: Draft) -> Made:
    """One operator."""
    narrow = d.draw.random() < 0.4
    ops = [lambda x: x * _like(x, 2) + _like(x, 1), lambda x: x - _like(x, 7), lambda x: te.max(x, _like(x, 3))]
    if d.source.dtype.is_float:
        ops += [lambda x: -x, te.abs]
    else:
        ops += [lambda x: x // _like(x, 3), lambda x: x % _like(x, 5)]
    op = d.draw.choice(ops)
    return te.compute(d.shape, lambda *i: op(_number(d.source[i], narrow)), name=d.name)


def _weights(d: Draft, shape: list[int]) -> te.Tensor:
    """An input of the type of the source, or of bytes."""
    own = d.source.dtype.is_float or d.draw.random() < 0.6
    return d.given(shape, str(d.source.dtype) if own else d.draw.choice(("int8", "uint8")), "w")


def product(d: Draft) -> Made:
    """A matrix product over the last axis."""
    n, length = _extent(d.draw), d.shape[-1]
    turned = d.draw.random() < 0.5
    w = _weights(d, [n, length] if turned else [length, n])
    k = te.reduce_axis((0, length), name="k")
    a = lambda i: _number(d.source[(*i[:-1], k)])
    b = lambda i: _number(w[i[-1], k] if turned else w[k, i[-1]])
    return te.compute([*d.shape[:-1], n], lambda *i: te.sum(a(i) * b(i), axis=k), name=d.name)


def convolve(d: Draft) -> Made:
    """A convolution along one or two axes, of which a channel is its own or all are added up."""
    rank = min(len(d.shape), d.draw.randint(1, 2))
    reach = [d.draw.randint(1, min(3, n)) for n in d.shape[:rank]]
    steps = [d.draw.randint(1, 2) for _ in reach]
    out = [(n - m) // by + 1 for n, m, by in zip(d.shape, reach, steps)]
    rest = d.shape[rank:]
    w = _weights(d, [*reach, *rest])
    axes = [te.reduce_axis((0, n), name=f"w{i}") for i, n in enumerate(reach)]
    joined = [te.reduce_axis((0, n), name=f"c{i}") for i, n in enumerate(rest)] if d.draw.random() < 0.5 else []

    def body(*i):
        inner = joined or i[rank:]
        at = [x * by + k for x, by, k in zip(i, steps, axes)]
        return te.sum(_number(d.source[(*at, *inner)]) * _number(w[(*axes, *inner)]), axis=[*axes, *joined])

    return te.compute(out if joined else [*out, *rest], lambda *i: body(*i), name=d.name)


KINDS: dict[Callable[[Draft], Made], int] = {
    simple: 4,
    join: 2,
    window: 2,
    move: 2,
    reduce: 4,
    pad: 2,
    pick: 2,
    two: 1,
    where: 1,
    both: 1,
    scale: 1,
    product: 3,
    convolve: 2,
    outer: 1,
    pool: 2,
    flip: 2,
    reshape: 1,
    gather: 2,
    concatenate: 1,
    spread: 1,
    choose: 2,
    compare: 1,
    cast: 1,
    divide: 2,
    bits: 1,
}


def _operation(draw: random.Random, known: list[te.Tensor], name: str, inputs: list[te.Tensor]) -> Made:
    source = draw.choice(known[-3:])
    kind = draw.choices(list(KINDS), KINDS.values())[0]
    if math.prod(sizes(source)) > MOST:
        kind = reduce
    return kind(Draft(draw, known, name, inputs, source))


def _statements(draw: random.Random, known: list[te.Tensor], name: str, computed: list[te.Tensor]) -> te.Tensor | None:
    """Sometimes a scan, whose parts are `computed`, too, or statements as an operation."""
    kind = draw.choice(("none",) * 8 + ("scan", "extern"))
    source = draw.choice(known[-3:])
    shape = [d.value for d in source.shape]
    if kind == "scan":
        state = te.placeholder(shape, "int32", name=f"{name}_state")
        init = te.compute([1, *shape[1:]], lambda i, *r: _number(source[(0, *r)]).astype("int32"), name=f"{name}_init")
        between = te.compute(shape, lambda t, *r: state[(t - 1, *r)] * 3, name=f"{name}_between")
        read = draw.choice((state, between))
        back = 0 if read is between else 1
        update = te.compute(
            shape, lambda t, *r: read[(t - back, *r)] - _number(source[(t, *r)]).astype("int32"), name=f"{name}_update"
        )
        computed += [init, update, *([between] if read is between else [])]
        return te.scan(init, update, state, name=name)
    if kind == "extern":
        return te.extern(shape, [source], lambda ins, outs: _backwards(ins[0], outs[0], ()), name=name)
    return None


def _backwards(source: te.View, target: te.View, indices: tuple) -> object:
    """Statements that turn the first dimension round."""
    dims = [d.value for d in source.shape]
    if len(indices) < len(dims):
        return te.for_range(0, dims[len(indices)], lambda i: _backwards(source, target, (*indices, i)))
    return target.store(source[(dims[0] - 1 - indices[0], *indices[1:])], *indices)

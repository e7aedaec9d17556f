"""Random numbers by keys: Threefry, a function of a key and a counter.

A key is ten words of 64 bits: the key itself (0 to 3), the path of splits (4, 5), the counter (6, 7), and the bit at which
the path goes on (8, 9).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.operators.declare import sample
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Constant, Expr, TupleWrapper, const
from compassc.relay.ops.declare import OPAQUE, VOID, declare, record
from compassc.relay.ops.relations import require, shaped
from compassc.relay.types import TensorType, TupleType, Type

KEY = TensorType((10,), "uint64")
WORD = (1 << 64) - 1
_TURNS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_PARITY = 0x1BD11BDAA9FC1A22
ROUNDS = 20


def block(key: Sequence[int], counter: Sequence[int]) -> list[int]:
    """Threefry of four words and 20 rounds: four random words."""
    extended = [*key, _PARITY ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(c + k) & WORD for c, k in zip(counter, key)]
    for n in range(ROUNDS):
        for first, (a, b) in enumerate(((0, 1), (2, 3)) if n % 2 == 0 else ((0, 3), (2, 1))):
            turn = _TURNS[n % 8][first]
            x[a] = (x[a] + x[b]) & WORD
            x[b] = ((x[b] << turn | x[b] >> (64 - turn)) & WORD) ^ x[a]
        if n % 4 == 3:
            step = n // 4 + 1
            x = [(v + extended[(step + i) % 5] + (step if i == 3 else 0)) & WORD for i, v in enumerate(x)]
    return x


def derived(key: Sequence[int]) -> list[int]:
    """A new key by the hash of one whose path or counter is at its end."""
    return [*block(key[:4], key[4:8]), 0, 0, 0, 0, 1 << 63, 0]


def generated(key: Sequence[int], count: int) -> tuple[list[int], list[int]]:
    """The key for what comes next, and so many random words."""
    words = list(key)
    if words[7] + count > WORD:  # the counter would begin again
        words = derived(words)
    found: list[int] = []
    for n in range(-(-count // 4)):
        found += block(words[:4], [words[4], words[5], words[6], (words[7] + 4 * n) & WORD])
    words[7] = words[7] + count
    return words, found[:count]


def split(key: Sequence[int]) -> tuple[list[int], list[int]]:
    """Two keys whose numbers have nothing to do with each other."""
    words = derived(key) if key[8] == 0 and key[9] == 0 else list(key)
    position = words[8] << 64 | words[9]
    path = words[4] << 64 | words[5]
    after = position >> 1

    def child(way: int) -> list[int]:
        return [*words[:4], way >> 64, way & WORD, 0, 0, after >> 64, after & WORD]

    return child(path), child(path | position)


def _is_key(t: TensorType) -> None:
    fits = t.dtype == KEY.dtype and len(t.shape) == 1 and t.shape[0] in (10,)
    require(fits, lambda: f"the key must be {KEY}, it is {t}")


def _words(key: Array) -> list[int]:
    return [int(w) for w in key]


def _generate_rule(a: Attrs, key: TensorType) -> Type:
    _is_key(key)
    require(math.prod(a.out_shape) <= WORD, lambda: f"the shape {a.out_shape} has more elements than there are numbers")
    return TupleType([KEY, TensorType(a.out_shape, "uint64")])


def _generate(a: Attrs, t: TupleType, key: Array) -> Sequence[Array]:
    after, found = generated(_words(key), math.prod(a.out_shape))
    return np.array(after, "uint64"), np.array(found, "uint64").reshape(a.out_shape)


def key_of(seed: int) -> Array:
    """The key of a seed, as an array."""
    return np.array([*((seed >> 64 * n) & WORD for n in range(4)), 0, 0, 0, 0, 1 << 63, 0], "uint64")


@builder("random.threefry_key")
def threefry_key(seed: int) -> Constant:
    """The key of a seed."""
    return const(key_of(seed))


_KEY = key_of(7)
_shape = record("ThreefryGenerateAttrs", out_shape=...)
declare("random.threefry_generate", "key, out_shape", _generate_rule, OPAQUE, sample(_KEY, out_shape=[2, 3]), record=_shape, build=False,
        reference=_generate)  # fmt: skip


@builder("random.threefry_generate")
def threefry_generate(key: Expr, shape: object) -> TupleWrapper:
    """The next key, and random words."""
    return TupleWrapper(call("random.threefry_generate", key, out_shape=shape), 2)


def _pair(a: object, key: TensorType) -> Type:
    _is_key(key)
    return TupleType([KEY, KEY])


declare("random.threefry_split", "key", _pair, OPAQUE, sample(_KEY), results=2,
        reference=lambda a, t, key: tuple(np.array(k, "uint64") for k in split(_words(key))))  # fmt: skip

_REALS = {"float32": (23, np.uint32, 127), "float64": (52, np.uint64, 1023)}
"""Of a type of reals: bits of the mantissa, words of its size, the exponent of 1."""


def unit(words: Array, dtype: str) -> Array:
    """Random words as reals from 0 to before 1: their highest bits are the mantissa of a number from 1 to before 2."""
    bits, word, exponent = _REALS[dtype]
    size = np.dtype(word).itemsize * 8
    narrow = words.astype(np.uint64).astype(word)
    mantissa = narrow >> word(size - bits)
    made: Array = (mantissa | word(exponent << bits)).view(dtype) - np.dtype(dtype).type(1)
    return made


def _drawn(a: Attrs, key: TensorType, first: TensorType, second: TensorType) -> Type:
    _is_key(key)
    require(a.out_dtype in _REALS, lambda: f"We only support generating uniform random value of type float32 or float64, got {a.out_dtype}.")  # fmt: skip
    for t in (first, second):
        require(not t.shape and t.dtype == a.out_dtype, lambda: f"bounds must be scalars of {a.out_dtype}, one is {t}")  # noqa: B023
    return TupleType([KEY, TensorType(a.out_shape, a.out_dtype)])


def _uniform(a: Attrs, t: TupleType, key: Array, low: Array, high: Array) -> Sequence[Array]:
    after, found = generated(_words(key), math.prod(a.out_shape))
    values = unit(np.array(found, "uint64"), a.out_dtype).reshape(a.out_shape)
    return np.array(after, "uint64"), values * (high - low) + low


def _normal(a: Attrs, t: TupleType, key: Array, mean: Array, scale: Array) -> Sequence[Array]:
    """By the transformation of Box and Muller."""
    after, found = generated(_words(key), 2 * math.prod(a.out_shape))
    first, second = unit(np.array(found, "uint64"), a.out_dtype).reshape(2, *a.out_shape)
    kind = np.dtype(a.out_dtype).type
    values = np.sqrt(kind(-2) * np.log(kind(1) - first)) * np.sin(kind(2 * math.pi) * second)
    return np.array(after, "uint64"), mean + scale * values


for _name, _record, _function in (("uniform", "UniformAttrs", _uniform), ("normal", "NormalAttrs", _normal)):
    declare(
        f"random.{_name}", "key, first, second", _drawn, OPAQUE,
        sample(_KEY, np.array(-1, "float32"), np.array(2, "float32"), out_shape=[3, 4], out_dtype="float32"),
        record=record(_record, out_shape=..., out_dtype=VOID), build=False, reference=_function,
    )  # fmt: skip


@builder("random.uniform")
def uniform(key: Expr, shape: object, dtype: str = "float32", low: object = 0.0, high: object = 1.0) -> TupleWrapper:
    """The next key, and reals from `low` to before `high`."""
    bounds = [v if isinstance(v, Expr) else const(v, dtype) for v in (low, high)]
    return TupleWrapper(call("random.uniform", key, *bounds, out_shape=shape, out_dtype=dtype), 2)


@builder("random.normal")
def normal(key: Expr, shape: object, dtype: str = "float32", mean: object = 0.0, scale: object = 1.0) -> TupleWrapper:
    """The next key, and reals of a normal distribution."""
    numbers = [v if isinstance(v, Expr) else const(v, dtype) for v in (mean, scale)]
    return TupleWrapper(call("random.normal", key, *numbers, out_shape=shape, out_dtype=dtype), 2)


def _choices(a: Attrs, key: TensorType, probabilities: TensorType) -> Type:
    _is_key(key)
    require(len(probabilities.shape) > 0, lambda: f"the probabilities need a dimension, they are {probabilities}")
    return TupleType([KEY, shaped(probabilities, [*probabilities.shape[:-1], a.num_samples], "int32")])


def _multinomial(a: Attrs, t: TupleType, key: Array, probabilities: Array) -> Sequence[Array]:
    rows = np.maximum(probabilities.astype("float64"), 0)
    ends = np.cumsum(rows / rows.sum(-1, keepdims=True), -1)
    shape = (*probabilities.shape[:-1], a.num_samples)
    after, found = generated(_words(key), math.prod(shape))
    drawn = unit(np.array(found, "uint64"), "float32").reshape(shape).astype("float64")
    places = (drawn[..., None] >= ends[..., None, :]).sum(-1)
    return np.array(after, "uint64"), np.minimum(places, probabilities.shape[-1] - 1)


declare("random.multinomial", "key, probs, num_samples", _choices, OPAQUE, sample(_KEY, (2, 4), low=0.1, high=1.0, num_samples=5),
        record=record("MultinomialAttrs", num_samples=1), reference=_multinomial, results=2)  # fmt: skip

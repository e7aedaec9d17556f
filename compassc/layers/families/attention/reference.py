"""Attention as one layer, and the rotation of its vectors by their positions."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError


class Rotation(NamedTuple):
    """The sizes of a RotaryEmbedding, and elements from one image, head and step to the next."""

    images: int
    heads: int
    steps: int
    width: int
    rotated: int
    of_image: int
    of_head: int
    of_step: int
    positions: int
    cached: int
    cache_per_image: bool


def rotation_of(layer: Layer) -> Rotation:
    if len(layer.inputs) not in (3, 4):
        raise LayerError("it has the inputs x, cosines, sines and perhaps positions")
    x, cos, sin = (t.shape for t in layer.inputs[:3])
    if len(x) == 4:
        n, heads, steps, width = x
        strides = (heads * steps * width, steps * width, width)
    elif len(x) == 3:
        n, steps, total = x
        heads = layer.integer("num_heads")
        if heads < 1 or total % heads:
            raise LayerError(f"'num_heads' is {heads}, which does not divide the {total} channels")
        width = total // heads
        strides = (steps * total, width, total)
    else:
        raise LayerError(f"x has {len(x)} dimensions, expected 3 or 4")
    rotated = layer.integer("rotary_embedding_dim", 0)
    rotated = width if rotated < 1 else rotated
    if rotated > width or rotated % 2:
        raise LayerError(f"'rotary_embedding_dim' is {rotated}, expected an even number up to {width}")
    if cos != sin or len(cos) not in (2, 3) or cos[-1] < rotated // 2 or (len(cos) == 3 and cos[0] != n) or 0 in cos:
        raise LayerError(f"cosines {list(cos)} and sines {list(sin)} do not fit {list(x)}")
    if len(layer.inputs) == 4 and layer.inputs[3].count != n * steps:
        raise LayerError(f"{layer.inputs[3].count} positions for {n} x {steps} steps")
    if layer.output.shape != x:
        raise LayerError(f"the output is {list(layer.output.shape)}, expected {list(x)}")
    return Rotation(n, heads, steps, width, rotated, *strides, cos[-2], cos[-1], len(cos) == 3)


def rotary_embedding(layer: Layer, x: Array, cos: Array, sin: Array, *positions: Array) -> Array:
    """Positions that are not cached count as the nearest that is."""
    r = rotation_of(layer)
    wide = x.astype(np.float32)
    if x.ndim == 3:
        wide = wide.reshape(r.images, r.steps, r.heads, r.width).transpose(0, 2, 1, 3)
    at = positions[0].reshape(r.images, r.steps) if positions else np.arange(r.steps)[None].repeat(r.images, 0)
    at = np.clip(at, 0, r.positions - 1).astype(np.int64)
    half = r.rotated // 2
    pick = np.arange(r.images)[:, None]
    c, s = ((v[pick, at] if r.cache_per_image else v[at]).astype(np.float32)[:, None, :, :half] for v in (cos, sin))
    first, second = parts(layer, r)
    a, b = wide[..., first], wide[..., second]
    found = wide.copy()
    found[..., first], found[..., second] = c * a - s * b, s * a + c * b
    return (found.transpose(0, 2, 1, 3) if x.ndim == 3 else found).reshape(x.shape)


def parts(layer: Layer, r: Rotation) -> tuple[slice, slice]:
    """The channels of the two parts of pairs."""
    if layer.flag("interleaved", False):
        return slice(0, r.rotated, 2), slice(1, r.rotated, 2)
    return slice(0, r.rotated // 2), slice(r.rotated // 2, r.rotated)


class Attention(NamedTuple):
    """The sizes of an SDPAttention."""

    images: int
    heads: int
    shared: int
    queries: int
    width: int
    keys: int
    values: int


def attention_of(layer: Layer) -> Attention:
    masked = layer.flag("with_mask", len(layer.inputs) == 4)
    if len(layer.inputs) != 3 + masked or any(len(t.shape) != 4 for t in layer.inputs):
        raise LayerError("it has the inputs queries, keys and values of four dimensions, and with_mask a mask")
    q, k, v = (_turned(t.shape, layer.flag(f"trans_{n}", False)) for t, n in zip(layer.inputs[:3], "qkv", strict=True))
    n, heads, queries, width = q
    if k[:3] != (n, k[1], width) or v[:3] != (n, k[1], k[3]) or 0 in (*q, *k, *v) or heads % k[1]:
        raise LayerError(f"queries {list(q)}, keys {list(k)} and values {list(v)} do not fit")
    if heads != k[1] and not layer.flag("enable_gqa", False):
        raise LayerError(f"{heads} heads of queries and {k[1]} of keys, without 'enable_gqa'")
    if layer.output.shape != (n, heads, queries, v[3]):
        raise LayerError(f"the output is {list(layer.output.shape)}, expected {[n, heads, queries, v[3]]}")
    if masked:
        mask = layer.inputs[3].shape
        if mask[2:] != (queries, k[3]) or mask[0] not in (1, n) or mask[1] not in (1, heads):
            raise LayerError(f"a mask of {list(mask)} does not fit {[n, heads, queries, k[3]]}")
    return Attention(n, heads, heads // k[1], queries, width, k[3], v[3])


def _turned(shape: tuple[int, ...], turned: bool) -> tuple[int, ...]:
    return (*shape[:2], shape[3], shape[2]) if turned else tuple(shape)


def attention(layer: Layer, *inputs: Array) -> Array:
    a = attention_of(layer)
    q, k, v = (
        np.swapaxes(x, 2, 3) if layer.flag(f"trans_{n}", False) else x
        for x, n in zip((i.astype(np.float32) for i in inputs[:3]), "qkv", strict=True)
    )
    k, v = (np.repeat(x, a.shared, axis=1) for x in (k, v))
    scores = (q @ k) * np.float32(layer.number("scale_factor", 1.0))
    if len(inputs) > 3:
        scores = scores + inputs[3].astype(np.float32)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray((powers / powers.sum(-1, keepdims=True)) @ v)

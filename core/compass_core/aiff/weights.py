"""Packed weights of 1x1 convolutions, as MTPs read them.

The weights of `inputs` channels in and `outputs` channels out are cut into chunks of 256 input channels, these into groups
of 32 output channels; in a group the weights of an input channel stand together. Output channels are filled up to 32 with
zeros. In that order they are a stream of bits, the least significant of each byte first, of codes of `bits` bits: a code is
the weight in two's complement; the smallest number is no weight, but says that the next two codes hold one of ten bits,
its lower bits first. The stream is filled up to blocks of 32 bytes.
"""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError

CHUNK, GROUP, BLOCK = 256, 32, 32
_LONG = 10
"""Bits of a weight behind an escape."""


def _bad(message: str) -> CompassError:
    return CompassError(message, code="aiff-weights")


def pack(weights: object, bits: int = 6) -> bytes:
    """The stream of int8 weights of the shape (inputs, outputs). `bits`: of a code, 5 or 6.

    CompassError where the weights have another type or shape, or `inputs` is no multiple of 32.
    """
    array = np.asarray(weights)
    if array.dtype != np.int8 or array.ndim != 2 or array.shape[0] % GROUP or not array.size:
        raise _bad(f"weights are int8 of the shape (multiple of 32, outputs), got {array.dtype} {array.shape}")
    inputs, outputs = array.shape
    padded = np.zeros((inputs, -(-outputs // GROUP) * GROUP), np.int64)
    padded[:, :outputs] = array
    chunks = (padded[first : first + CHUNK] for first in range(0, inputs, CHUNK))
    flat = np.concatenate([c.reshape(len(c), -1, GROUP).transpose(1, 0, 2).reshape(-1) for c in chunks])
    codes = _codes(flat, bits)
    stream = np.packbits((codes[:, None] >> np.arange(bits) & 1).astype(np.uint8).reshape(-1), bitorder="little")
    return stream.tobytes() + bytes(-stream.size % BLOCK)


def _codes(flat: Array, bits: int) -> Array:
    """Weights as codes; those that are not between the escape and its opposite take three."""
    escape = 1 << (bits - 1)
    long = abs(flat) >= escape
    ends = np.cumsum(np.where(long, 3, 1))
    codes = np.zeros(int(ends[-1]), np.int64)
    mask = (1 << bits) - 1
    codes[ends[~long] - 1] = flat[~long] & mask
    field = flat[long] & ((1 << _LONG) - 1)
    last = ends[long] - 1
    codes[last - 2], codes[last - 1], codes[last] = escape, field & mask, field >> bits
    return codes


def unpack(stream: bytes, inputs: int, outputs: int, bits: int = 6) -> Array:
    """The weights of a stream, int8 of the shape (inputs, outputs). CompassError where it ends too early or holds what is
    no weight of eight bits."""
    padded = -(-outputs // GROUP) * GROUP
    flags = np.unpackbits(np.frombuffer(stream, np.uint8), bitorder="little")
    codes = (flags[: flags.size // bits * bits].reshape(-1, bits) << np.arange(bits)).sum(axis=1)
    flat = np.zeros(inputs * padded, np.int64)
    at, escape = 0, 1 << (bits - 1)
    for i in range(flat.size):
        step = 3 if at < codes.size and codes[at] == escape else 1
        if at + step > codes.size:
            raise _bad(f"the stream of {len(stream)} bytes ends at weight {i} of {flat.size}")
        field, width = (codes[at + 1] | codes[at + 2] << bits, _LONG) if step == 3 else (codes[at], bits)
        flat[i] = (field ^ 1 << (width - 1)) - (1 << (width - 1))
        if not -128 <= flat[i] <= 127 or field >> width:
            raise _bad(f"weight {i} of the stream has more than eight bits")
        at += step
    chunks = []
    for first in range(0, inputs, CHUNK):
        count = min(CHUNK, inputs - first)
        part = flat[first * padded : (first + count) * padded]
        chunks.append(part.reshape(-1, count, GROUP).transpose(1, 0, 2).reshape(count, padded))
    return np.concatenate(chunks)[:, :outputs].astype(np.int8)

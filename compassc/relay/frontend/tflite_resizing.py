"""Images of integers in other sizes, as runtimes of TFLite compute them (`tflite_integers`)."""

from __future__ import annotations

import numpy as np

from compass_core.arrays import Array
from compassc.importers.values import Refused
from compassc.relay.frontend.terms import Expressions, Term
from compassc.relay.frontend.tflite_integers import IntegerNode, Whole, integers

BITS = 10
"""Bits behind the point of places and of parts."""
ONE = 1 << BITS


def _sizes(node: IntegerNode) -> tuple[Whole, list[tuple[int, int]]] | None:
    """The image, with the size that each of its two axes has and gets; None where its result has other steps."""
    x, wanted = node.whole(0), node.known(1)
    if not (x.levels.is_one and x.levels.matches(node.out)):
        return None
    sizes = x.term.shape[1:3]
    if wanted is None or wanted.size != 2 or x.term.rank != 4 or not all(isinstance(n, int) for n in sizes):
        raise Refused("its sizes are not known")
    return x, [(int(n), int(m)) for n, m in zip(sizes, wanted.reshape(-1), strict=True)]


def _taken(b: Expressions, x: Term, places: Array, axis: int) -> Term:
    return b.call("take", x, b.known(places.astype(np.int32)), axis=axis)


@integers("RESIZE_NEAREST_NEIGHBOR")
def nearest(b: Expressions, node: IntegerNode) -> Term | None:
    """Places in single precision."""
    found = _sizes(node)
    if found is None:
        return None
    (x, sizes), corners = found, bool(node.options.get("align_corners"))
    offset = np.float32(0.5 if node.options.get("half_pixel_centers") else 0)
    made = x.term
    for axis, (size, wanted) in enumerate(sizes, 1):
        part = (size - 1, wanted - 1) if corners and wanted > 1 else (size, wanted)
        at = (np.arange(wanted, dtype=np.float32) + offset) * (np.float32(part[0]) / np.float32(part[1]))
        whole = np.floor(at + np.float32(0.5)) if corners else np.floor(at)
        made = _taken(b, made, np.clip(whole, 0, size - 1), axis)
    return made


def _parts(size: int, wanted: int, corners: bool, centres: bool) -> tuple[Array, Array, Array]:
    """For each place of a result the two places that it lies between, and how far it is from the first one, in 1/1024."""
    step = (ONE * size + wanted // 2) // wanted
    if corners and wanted > 1:
        step = (ONE * (size - 1) + (wanted - 1) // 2) // (wanted - 1)
    at = np.arange(wanted, dtype=np.int64) * step + (step // 2 - ONE // 2 if centres else 0)
    low = np.clip(at >> BITS, 0, size - 1)
    high = np.clip((at + ONE - 1) >> BITS, 0, size - 1)
    return low, high, at - ONE * low


@integers("RESIZE_BILINEAR")
def bilinear(b: Expressions, node: IntegerNode) -> Term | None:
    """Of signed integers: both axes with parts of 10 bits, and one rounding, halves away from zero. Runtimes compute those of uint8 in floats."""
    found = _sizes(node)
    if found is None or node.out.dtype.kind != "i":
        return None
    (x, sizes), kind = found, "int32" if node.out.dtype.itemsize == 1 else "int64"
    given = bool(node.options.get("align_corners")), bool(node.options.get("half_pixel_centers"))
    made = b.cast(x.term, kind)
    for axis, (size, wanted) in enumerate(sizes, 1):
        low, high, part = _parts(size, wanted, *given)
        along = [-1 if d == axis else 1 for d in range(4)]
        ends = [
            b.call("multiply", _taken(b, made, at, axis), b.known(share.reshape(along).astype(kind)))
            for at, share in ((low, ONE - part), (high, part))
        ]
        made = b.call("add", *ends)
    magnitude = b.call("add", b.call("abs", made), b.known(np.asarray(1 << (2 * BITS - 1), kind)))
    magnitude = b.call("right_shift", magnitude, b.known(np.asarray(2 * BITS, kind)))
    signed = b.call(
        "where", b.call("less", made, b.known(np.zeros((), kind))), b.call("negative", magnitude), magnitude
    )
    return b.cast(signed, node.out.dtype)

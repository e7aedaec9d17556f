"""Sums over products by name of axis."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from compassc.importers.building import Building
from compassc.importers.onnx.declare import operator
from compassc.importers.onnx.operators.elementwise import arithmetic
from compassc.importers.onnx.operators.indexing import gather
from compassc.importers.onnx.operators.linear import multiply
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.values import Refused, Value

# -- Einsum


@operator("Einsum", since=12)
def einsum(b: Building, *xs: Value, equation: str) -> Value:
    """From left to right, two operands at a time; each product a MatMul."""
    text = equation.replace(" ", "")
    left, _, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise Refused(f"'{equation}' has {len(terms)} operands, the node {len(xs)}")
    _check_names(equation, terms, right)
    spelled = _without_dots([*terms, right], [x.rank for x in xs])
    terms, result = spelled[:-1], spelled[-1]
    if "->" not in text:
        counts = "".join(terms)
        named = sorted(c for c in set(counts) if c.islower() or c.isupper() if counts.count(c) == 1)
        result = "".join(c for c in counts[: len(counts)] if c.isdigit() and counts.count(c) >= 1)
        result = "".join(dict.fromkeys(result)) + "".join(named)
    items = [_diagonal(b, x, t) for x, t in zip(xs, terms, strict=True)]
    value, axes = items[0]
    for i, (other, names) in enumerate(items[1:], 1):
        later = set(result).union(*(n for _, n in items[i + 1 :]))
        value, axes = _pair(b, value, axes, other, names, later)
    gone = [i for i, c in enumerate(axes) if c not in result]
    if gone:
        value = b.squeeze(reduced(b, value, "SUM", gone), gone)
        axes = "".join(c for c in axes if c in result)
    return b.transpose(value, [axes.index(c) for c in result])


def _check_names(equation: str, terms: Sequence[str], result: str) -> None:
    """Refused for what names no axes, and for a result whose axes are not each one of the operands'."""
    for term in (*terms, result):
        if not re.fullmatch(r"[A-Za-z]*(\.{3})?[A-Za-z]*", term):
            raise Refused(f"'{term}' in '{equation}' is no list of axes: expected letters, and '...' once")
    for name in result.replace(".", ""):
        if result.count(name) > 1:
            raise Refused(f"the result of '{equation}' has the axis '{name}' twice")
        if not any(name in term for term in terms):
            raise Refused(f"the result of '{equation}' has the axis '{name}', which no operand has")


def _without_dots(terms: Sequence[str], ranks: Sequence[int]) -> list[str]:
    """The terms with `...` replaced by a digit per axis."""
    many = max((r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=False) if "..." in t), default=0)
    found = []
    for i, term in enumerate(terms):
        count = ranks[i] - len(term.replace("...", "")) if i < len(ranks) else many
        digits = "".join(str(d) for d in range(many - count, many)) if "..." in term else ""
        found.append(term.replace("...", digits))
    return found


def _diagonal(b: Building, x: Value, term: str) -> tuple[Value, str]:
    """Axes of one name become one."""
    if len(term) != x.rank:
        raise Refused(f"'{term}' does not name the {x.rank} axes of an operand")
    while len(set(term)) < len(term):
        c = next(c for c in term if term.count(c) > 1)
        i = term.index(c)
        j = term.index(c, i + 1)
        size = x.shape[i]
        if x.shape[j] != size:
            raise Refused(f"the axis '{c}' of '{term}' has {size} and {x.shape[j]} elements")
        perm = [i, j, *(a for a in range(x.rank) if a not in (i, j))]
        moved = b.transpose(x, perm)
        flat = b.reshape(moved, (size * size, *moved.shape[2:]))
        b.room(size)
        x = gather(b, flat, Value.of((np.arange(size) * (size + 1)).astype(np.int32)), axis=0)
        term = c + "".join(term[a] for a in perm[2:])
    return x, term


def _pair(b: Building, x: Value, xs: str, y: Value, ys: str, later: set[str]) -> tuple[Value, str]:
    """The product of two operands, summed over the axes not needed later; its axes are batch, left, summed, right."""
    for value, names, other in ((0, xs, ys), (1, ys, xs)):
        alone = [i for i, c in enumerate(names) if c not in other and c not in later]
        if alone:
            source = y if value else x
            summed = b.squeeze(reduced(b, source, "SUM", alone), alone)
            kept = "".join(c for i, c in enumerate(names) if i not in alone)
            x, xs, y, ys = (x, xs, summed, kept) if value else (summed, kept, y, ys)
    shared = [c for c in xs if c in ys]
    batch, summed_over = [c for c in shared if c in later], [c for c in shared if c not in later]
    own, others = [c for c in xs if c not in ys], [c for c in ys if c not in xs]
    sizes = dict(zip(ys, y.shape, strict=True)) | {
        c: max(s, dict(zip(ys, y.shape, strict=True)).get(c, 1)) for c, s in zip(xs, x.shape, strict=True)
    }
    if not summed_over:
        names = "".join(batch + own + others)
        wide = [_aligned(b, v, n, names) for v, n in ((x, xs), (y, ys))]
        return arithmetic(b, wide[0], wide[1], "Mul"), names
    if any(dict(zip(xs, x.shape, strict=True))[c] != dict(zip(ys, y.shape, strict=True))[c] for c in shared):
        raise Refused("axes of one name have different sizes")
    left = b.transpose(x, [xs.index(c) for c in batch + own + summed_over])
    right = b.transpose(y, [ys.index(c) for c in batch + summed_over + others])

    def size(names: Sequence[str]) -> int:
        return int(np.prod([sizes[c] for c in names], dtype=np.int64))

    lead = [sizes[c] for c in batch]
    product = multiply(
        b,
        b.reshape(left, [*lead, size(own), size(summed_over)]),
        b.reshape(right, [*lead, size(summed_over), size(others)]),
    )
    names = "".join(batch + own + others)
    return b.reshape(product, [sizes[c] for c in names]), names


def _aligned(b: Building, x: Value, names: str, wanted: str) -> Value:
    """The axes in the wanted order, with size 1 where there is none."""
    moved = b.transpose(x, [names.index(c) for c in wanted if c in names])
    return b.unsqueeze(moved, [i for i, c in enumerate(wanted) if c not in names])

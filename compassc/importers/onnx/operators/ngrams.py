"""TfIdfVectorizer of whole numbers: how often n-grams of a pool stand in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.declare import operator
from compassc.importers.onnx.operators.elementwise import arithmetic, cast, combined, compare, extreme
from compassc.importers.onnx.operators.reduce import reduced
from compassc.importers.values import Refused, Value

MODES = ("TF", "IDF", "TFIDF")


def _levels(pool: Array, starts: Sequence[int]) -> Iterator[Array]:
    """The n-grams of each length, [n-grams, n]."""
    ends = [*starts[1:], pool.size]
    for n, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= pool.size or (end - start) % n:
            raise Refused(f"its ngram_counts {list(starts)} do not divide a pool of {pool.size}")
        yield pool[start:end].reshape(-1, n)


def _counted(b: Building, rows: Value, grams: Array, step: int) -> Value | None:
    """How often each n-gram stands in each row, with its numbers `step` apart, [rows, n-grams]; None where none fits."""
    n, length = grams.shape[1], rows.shape[1]
    places = length - (n - 1) * step
    if places <= 0 or not len(grams):
        return None
    found: Value | None = None
    for k in range(n):
        part = b.unsqueeze(b.sliced(rows, [k * step], [k * step + places], [1], [1]), [2])
        same = compare(b, part, Value.of(grams[:, k].reshape(1, 1, -1)), "EQUAL")
        found = same if found is None else combined(b, [found, same], "Logical", bool, method="AND")
    assert found is not None
    return b.squeeze(reduced(b, cast(b, found, np.float32), "SUM", [1]), [1])


@operator("TfIdfVectorizer", since=9, partly="of whole numbers")
def tf_idf_vectorizer(
    b: Building,
    x: Value,
    *,
    max_gram_length: int,
    min_gram_length: int,
    max_skip_count: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Value:
    """Single numbers are counted once, whatever may be skipped."""
    if pool_int64s is None or x.dtype.kind not in "iu":
        raise Refused("text is not supported")
    if mode not in MODES:
        raise Refused(f"its mode is {mode}, expected {', '.join(MODES)}")
    levels = list(_levels(np.asarray(pool_int64s, x.dtype), ngram_counts))
    columns, size = np.asarray(ngram_indexes), max(ngram_indexes) + 1
    if columns.min() < 0 or columns.size != sum(map(len, levels)):
        raise Refused(f"it has {columns.size} indexes for {sum(map(len, levels))} n-grams")
    if len(set(ngram_indexes)) < columns.size:
        raise Refused("several of its n-grams have one index")
    rows, total, first = x if x.rank == 2 else b.unsqueeze(x, [0]), None, 0
    for n, grams in enumerate(levels, 1):
        at, first = columns[first : first + len(grams)], first + len(grams)
        if not min_gram_length <= n <= max_gram_length:
            continue
        ordered = np.zeros((size, n), x.dtype)
        ordered[at] = grams
        counts = np.isin(np.arange(size), at).astype(np.float32)
        for skip in range(max_skip_count + 1 if n > 1 else 1):
            made = _counted(b, rows, ordered, skip + 1)
            if made is not None:
                made = arithmetic(b, made, Value.of(counts), "Mul")
                total = made if total is None else arithmetic(b, total, made, "Add")
    total = Value.of(np.zeros((rows.shape[0], size), np.float32)) if total is None else total
    if mode == "IDF":
        total = extreme(b, total, Value.of(np.ones(1, np.float32)), "MIN")
    if mode != "TF" and weights is not None:
        scales = np.ones(size, np.float32)
        scales[columns] = np.asarray(weights, np.float32)
        total = arithmetic(b, total, Value.of(scales), "Mul")
    return total if x.rank == 2 else b.squeeze(total, [0])

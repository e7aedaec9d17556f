"""Loops over float32 in C give the bits of those in NumPy, of which some are held against what they approximate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.arrays import Array
from compass_core.errors import ToolchainError
from compassc.layers import float_loops
from compassc.layers.float_loops import Wanted
from compassc.layers.threads import results
from compassc.layers.window_products import Filters, WindowSums, window_sums
from compassc.layers.windows import Window
from compassc.targets.own_library import OwnLibrary

Made = TypeVar("Made")
SEEDS = st.integers(0, 2**32 - 1)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 3e38, -3e38, 88.7, -87.4, -103.9, 1.0)
LIMITS = st.sampled_from([(-math.inf, math.inf), (0, math.inf), (0, 6)])
WINDOWS = st.builds(
    lambda kernel, stride, dilation, pads: Window(*(tuple(v) for v in (kernel, stride, dilation, pads))),
    *(st.lists(st.integers(1, n), min_size=2, max_size=2) for n in (3, 3, 2)),
    st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=2, max_size=2),
)


def drawn(seed: int, shape: tuple[int, ...], special: bool) -> Array:
    """Numbers of all magnitudes, some of them `SPECIAL`."""
    random = np.random.default_rng(seed)
    made = random.standard_normal(shape) * np.exp(random.uniform(-30, 8, shape))
    if special:
        made = np.where(random.random(shape) < 0.2, random.choice(SPECIAL, shape), made)
    return made.astype(np.float32)


def bits(made: Array) -> Array:
    """NaN, of which there are many, as one."""
    return np.where(np.isnan(made), np.float32(np.nan), made).view(np.uint32)


def both(work: Callable[[], Made]) -> tuple[Made, Made]:
    """What is made with the library, and without."""
    assert float_loops._library() is not None
    with np.errstate(all="ignore"):
        found = work()
        with patch.object(float_loops, "_library", lambda: None):
            return found, work()


@given(SEEDS, st.integers(1, 70), st.sampled_from(sorted(float_loops.FUNCTIONS)))
def test_functions_are_those_of_numpy(seed, many, name):
    x = drawn(seed, (many,), True)

    def made() -> Array:
        out = np.empty_like(x)
        float_loops.each(name, x, out)
        return out

    found, want = both(made)
    assert np.array_equal(bits(found), bits(want))


@pytest.mark.parametrize(
    ("name", "exact", "error"),
    [
        ("exp", math.exp, 2e-7),
        ("sigmoid", lambda x: 1 / (1 + math.exp(-x)), 3e-7),
        ("silu", lambda x: x / (1 + math.exp(-x)), 3e-7),
        ("erf", math.erf, 1e-6),
        ("gelu", lambda x: x * (1 + math.erf(x * 0.5**0.5)) / 2, 3e-6),
    ],
)
def test_functions_are_what_they_approximate(name, exact, error):
    x = np.linspace(-40, 40, 2001, dtype=np.float32)
    found, want = np.empty_like(x), np.array([exact(float(v)) for v in x])
    float_loops.each(name, x, found)
    scale = np.abs(want) if name in ("exp", "sigmoid", "silu") else np.maximum(np.abs(x), 1)
    assert (np.abs(found - want) <= error * scale + 1e-37).all()


def test_ends_of_exponential_functions_are_numbers():
    x = np.array([np.inf, -np.inf, 1000, -1000], np.float32)
    made = {name: np.empty_like(x) for name in ("exp", "sigmoid")}
    for name, out in made.items():
        float_loops.each(name, x, out)
    assert made["exp"].tolist() == [np.inf, 0, np.inf, 0] and made["sigmoid"].tolist() == [1, 0, 1, 0]


@given(
    SEEDS, st.integers(1, 3), st.integers(1, 100) | st.just(5000), st.booleans(), st.sampled_from([0, 1, 3, 70, 20000])
)
def test_extremes_are_those_of_numpy(seed, rows, many, special, step):
    x = drawn(seed, (rows, many), special)
    found, want = both(lambda: float_loops.extremes(x, step))
    assert all(np.array_equal(bits(a), bits(b)) for a, b in zip(found, want, strict=True))
    assert np.array_equal(found[2], x.reshape(-1)[::step] if step else [], equal_nan=True)
    assert np.array_equal(found[0], x.min(1), equal_nan=True) and np.array_equal(found[1], x.max(1), equal_nan=True)


@given(SEEDS, st.integers(1, 100) | st.just(20001), st.sampled_from([4, 256, 4096, 5000]), st.floats(1.0, 4.0))
def test_counts_are_those_of_numpy(seed, many, bins, room):
    x = drawn(seed, (many,), False)
    x[:2] = np.abs(x).max() * np.array([1, -1])[:many]
    found, want = both(lambda: float_loops.counts(x, float(np.abs(x).max()) * room, bins))
    assert np.array_equal(found, want) and found.sum() == many and len(found) == bins + 1


def test_counts_of_what_lies_outside_are_refused():
    for value in (-2.5, np.nan, -np.inf):
        with pytest.raises(ValueError, match="negative"), np.errstate(all="ignore"):
            float_loops.counts(np.array([0.0] * 20 + [value], np.float32), 2.0, 8)


@given(SEEDS, st.integers(1, 4), st.integers(1, 70), LIMITS)
def test_ends_of_sums_are_those_of_numpy(seed, rows, many, limits):
    sums, line = drawn(seed, (rows, many), True), drawn(seed + 1, (many,), True)

    def made() -> Array:
        own = sums.copy()
        float_loops.finish(own, line, *limits)
        return own

    found, want = both(made)
    assert np.array_equal(bits(found), bits(want))


@given(SEEDS, st.integers(1, 70) | st.just(5000), st.sampled_from(sorted(float_loops.PAIRS)), LIMITS)
def test_functions_of_pairs_are_those_of_numpy(seed, many, name, limits):
    a, b = drawn(seed, (2, many), True), drawn(seed + 1, (2, many), True)

    def made() -> Array:
        out = np.empty_like(a)
        float_loops.pairs(name, limits, a, b, out)
        return out

    found, want = both(made)
    assert np.array_equal(bits(found), bits(want))
    with np.errstate(all="ignore"):
        exact = np.clip(getattr(np, name)(a, b), *map(np.float32, limits))
    assert np.array_equal(found, exact, equal_nan=True)


@given(SEEDS, st.integers(1, 70) | st.just(5000), st.sampled_from([0, 1, 7]))
def test_extremes_of_pairs_are_found_on_the_way(seed, many, step):
    a, b = drawn(seed, (3, many), True), drawn(seed + 1, (3, many), True)
    wanted, out = Wanted(3, many, step), np.empty_like(a)
    float_loops.pairs("add", (-math.inf, math.inf), a, b, out, wanted)
    want = float_loops.extremes(out, step)
    assert wanted.done and [bits(x).tolist() for x in wanted.found] == [bits(x).tolist() for x in want]


def test_pairs_that_do_not_fit_are_refused():
    a, limits = np.zeros((2, 4), np.float32), (0.0, 6.0)
    with pytest.raises(ValueError, match="of arrays of"):
        float_loops.pairs("add", limits, a, a[:1], a)
    with pytest.raises(ValueError, match="of arrays of"):
        float_loops.pairs("add", limits, a, a, a.copy(), Wanted(2, 3, 0))


def test_a_line_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="a line of"):
        float_loops.finish(np.zeros((2, 4), np.float32), np.zeros(2, np.float32))


def sums_of(window: Window, channels: int, outputs: int, groups: int, limits: tuple[float, float], seed: int) -> bool:
    """Whether sums of three images under a window, with biases and limits or without, are those of NumPy."""
    x = drawn(seed, (3, 8, 9, channels), True)
    weights = drawn(seed, (outputs, *window.kernel, channels // groups), False)
    ended = Filters(weights, drawn(seed + 1, (outputs,), True), limits)
    made = [
        both(lambda f=f: WindowSums(x.shape, f, window, groups, 0.0)(x, lambda m: m, np.float32))
        for f in (Filters(weights), ended)
    ]
    return all(np.array_equal(*map(bits, each)) for each in made)


@given(WINDOWS, st.integers(2, 70), st.sampled_from([1, 2]), LIMITS, SEEDS)
def test_sums_of_channels_are_those_of_numpy(window, channels, multiplier, limits, seed):
    assert sums_of(window, channels, channels * multiplier, channels, limits, seed)


def test_sums_of_many_cells_are_those_of_numpy():
    assert sums_of(Window((8, 9), (1, 1), (1, 1), ((4, 3), (4, 4))), 29, 29, 29, (0, 6), 0)


@given(WINDOWS, st.integers(1, 20), st.integers(1, 70), LIMITS, SEEDS)
def test_sums_of_filters_are_those_of_numpy(window, channels, outputs, limits, seed):
    assert sums_of(window, channels, outputs, 1, limits, seed)


@given(WINDOWS, st.sampled_from([(6, 6), (40, 40), (5, 1)]), st.integers(7, 20), st.sampled_from([0, 1, 7]), SEEDS)
def test_extremes_of_sums_are_found_on_the_way(window, channels, wide, step, seed):
    """By a thread that makes an output in one call: those of what it gives, of each of three images."""
    inputs, groups = channels
    x = drawn(seed, (3, 7, wide, inputs), True)
    weights = drawn(seed, (20 if groups == 1 else inputs, *window.kernel, inputs // groups), False)
    sums = WindowSums(x.shape, Filters(weights), window, groups, 0.0)
    many = weights.shape[0] * math.prod(window.positions(x.shape[1:-1]))
    asked = [Wanted(3, many, step) for _ in range(2)]
    made = results(lambda wanted: sums(x, None, np.float32, wanted), asked)
    want = [float_loops.extremes(own.reshape(3, -1), step) for own in made]
    assert all(wanted.done for wanted in asked)
    assert [[bits(a).tolist() for a in wanted.found] for wanted in asked] == [
        [bits(a).tolist() for a in w] for w in want
    ]


@given(st.integers(6, 24), st.sampled_from([1, 2]), st.integers(0, 2), st.integers(1, 3), SEEDS)
def test_sums_of_lines_are_those_of_numpy(wide, right, pad, high, seed):
    """Of windows that share columns, so many as fit a line and fewer."""
    window = Window((high, 3), (1, right), (1, 1), ((0, high - 1), (pad, 1)))
    x, weights = drawn(seed, (2, 5, wide, 11), True), drawn(seed, (11, high, 3, 1), False)
    found, want = both(lambda: window_sums(x, weights, window, 11, 0.0, np.negative, np.float32))
    assert np.array_equal(bits(found), bits(want))


def test_without_a_compiler_there_is_no_library(monkeypatch):
    def none(library: OwnLibrary) -> None:
        raise ToolchainError("no clang")

    monkeypatch.setattr(OwnLibrary, "path", none)
    assert float_loops._library.load() is None


def test_the_library_is_built_where_set_up_has_not(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path))
    library = OwnLibrary("tried", "int answer(void) { return 42; }")
    path = library.path()
    assert path.is_relative_to(tmp_path) and path == OwnLibrary(library.name, library.text).path()

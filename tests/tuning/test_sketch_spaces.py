"""Sketches: every sampled schedule is legal, fits the memory, can be made again from its trace, and computes the same."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest

from compassc import te, topi
from compassc.analysis.interpret import Interpreter
from compassc.tuning.sketches import SketchTask
from compassc.tuning.sketches.choices import Choices, sizes_of
from compassc.tuning.space import key_of
from compassc.tuning.task import Infeasible

TARGET = "X2_1204"


def matmul():
    a, b = te.placeholder((16, 64), "int8", name="a"), te.placeholder((32, 64), "int8", name="b")
    return [a, b, topi.matmul(a, b, False, True)]


def convolution():
    x = te.placeholder((1, 4, 8, 8), "int8", name="x")
    w = te.placeholder((3, 3, 8, 8), "int8", name="w")
    return [x, w, topi.conv2d_nhwc(x, w, 1, 1)]


def depthwise():
    x, w = te.placeholder((10, 10, 16), "int32", name="x"), te.placeholder((9, 16), "int32", name="w")
    di, dj = te.reduce_axis((0, 3), "di"), te.reduce_axis((0, 3), "dj")
    y = te.compute(
        (8, 8, 16), lambda i, j, c: te.sum(x[i + di, j + dj, c] * w[di * 3 + dj, c], axis=[di, dj]), name="y"
    )
    return [x, w, y]


def rows():
    """A row's sum is needed before its elements, like in softmax, in whole numbers."""
    x = te.placeholder((12, 40), "int32", name="x")
    k = te.reduce_axis((0, 40), "k")
    top = te.compute((12,), lambda r: te.max(x[r, k], axis=k), name="top")
    e = te.compute((12, 40), lambda r, c: x[r, c] - top[r], name="e")
    j = te.reduce_axis((0, 40), "j")
    total = te.compute((12,), lambda r: te.sum(e[r, j], axis=j), name="total")
    y = te.compute((12, 40), lambda r, c: e[r, c] * 2 + total[r], name="y")
    return [x, y]


def largest():
    x = te.placeholder((4096,), "int32", name="x")
    k = te.reduce_axis((0, 4096), "k")
    return [x, te.compute((1,), lambda i: te.max(x[k], axis=k), name="out")]


GRAPHS = [matmul, convolution, depthwise, rows, largest]


def task_of(graph):
    return SketchTask(graph.__name__, graph(), TARGET)


@pytest.mark.parametrize("graph", GRAPHS)
def test_samples_are_legal_and_compute_what_the_expressions_say(graph):
    task, rng = task_of(graph), Random(0)
    plain = te.lower(te.create_schedule(task.outputs), task.tensors, "plain", TARGET, simple_mode=True)
    right = task.arguments()
    Interpreter(plain.entry_func)(*right)
    sketches = set()
    for i in range(5):
        candidate = task.space.sample(rng)
        if i > 2:
            candidate = task.space.mutate(candidate, rng)
        sketches.add(candidate["decisions"]["sketch"])
        arguments = task.arguments()
        Interpreter(task.program(candidate).kernel.entry_func)(*arguments)
        assert np.array_equal(arguments[-1], right[-1]), candidate["decisions"]
    assert sketches - {"default"}


@pytest.mark.parametrize("graph", [matmul, rows])
def test_candidates_are_json_and_made_again_from_it(graph):
    task = task_of(graph)
    candidate = task.space.sample(Random(3))
    again = json.loads(json.dumps(candidate))
    assert again == candidate and again in task.space
    text = str(task.program(candidate).kernel)
    assert str(SketchTask("rows" if graph is rows else "matmul", graph(), TARGET).program(again).kernel) == text
    damaged = {**again, "trace": again["trace"][:-1]}
    assert damaged not in task.space and 5 not in task.space


def test_the_same_seed_gives_the_same_candidates():
    first, second = ([task_of(matmul).space.sample(rng) for _ in range(3)] for rng in (Random(5), Random(5)))
    assert first == second


def test_children_differ_and_take_after_their_parents():
    task, rng = task_of(matmul), Random(2)
    a, b = (
        next(c for c in iter(lambda: task.space.sample(rng), None) if c["decisions"]["sketch"] == "tiles") for _ in "ab"
    )
    changed = task.space.mutate(a, rng)
    assert key_of(changed) != key_of(a)
    child = task.space.crossover(a, b, rng)["decisions"]
    own = [n for n, v in child.items() if v in (a["decisions"].get(n), b["decisions"].get(n))]
    assert len(own) >= len(child) - 2  # what neither of them can have with the other is chosen anew


def test_the_default_is_one_of_the_candidates():
    task = task_of(matmul)
    own = te.lower(topi.schedule(task.outputs, TARGET), task.tensors, "matmul", TARGET)
    assert str(task.program(task.default).kernel) == str(own)


def test_schedules_of_other_sizes_give_those_that_are_most_like_them():
    task, rng = task_of(matmul), Random(0)
    a, b = te.placeholder((32, 64), "int8", name="a"), te.placeholder((32, 64), "int8", name="b")
    other = SketchTask("matmul", [a, b, topi.matmul(a, b, False, True)], TARGET)
    for _ in range(4):
        candidate = task.space.sample(rng)
        assert task.space.near(candidate, rng) == candidate
        found = other.space.near(candidate, rng)
        assert found in other.space
        own, given = found["decisions"], candidate["decisions"]
        tiles = [name for name, value in given.items() if isinstance(value, list)]
        assert own.keys() == given.keys() and all(own[n] == v for n, v in given.items() if n not in tiles)
        assert all(own[n][1:] == given[n][1:] for n in tiles), "the inner sizes divide twice the extent, too"
    assert task.space.near({"decisions": 3}, rng) is None


def test_decisions_that_are_not_possible_are_no_candidates():
    choices = Choices({"a": 3})
    assert choices.one_of("a", [1, 3]) == 3
    with pytest.raises(Infeasible, match="'b' is None"):
        choices.one_of("b", [1, 2])
    with pytest.raises(Infeasible, match="nothing to choose for 'c'"):
        choices.one_of("c", [])
    rng = Random(0)
    assert all(Choices({"a": 3}, rng, changed="a").one_of("a", [1, 3, 5]) != 3 for _ in range(20))


@pytest.mark.parametrize("extent", [1, 7, 12, 30, 64])
def test_sizes_of_tiles_cover_the_extent(extent):
    assert {1, extent} <= set(sizes_of(extent))
    for seed in range(10):
        outer, middle, inner = Choices({}, Random(seed)).tile("t", extent, 3, extent)
        assert outer * middle * inner >= extent > (outer - 1) * middle * inner

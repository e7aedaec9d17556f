"""Templates: the values of knobs, what entities do to a schedule, and that every candidate computes the same."""

from __future__ import annotations

import json
from math import prod
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import UsageError
from compassc import te, topi
from compassc.analysis.interpret import Interpreter
from compassc.tuning.task import Infeasible
from compassc.tuning.templates import Configuration, KnobsTask, template
from tests.choosing import some

TARGET = "X2_1204"


@template
def scaled(cfg, n, factor=3):
    a = te.placeholder((n, n), "int32", name="a")
    b = te.compute((n, n), lambda i, j: a[i, j] * factor, name="b")
    s = te.create_schedule(b)
    i, j = b.op.axis
    cfg.define_split("rows", i, num_outputs=2)
    cfg.define_split("columns", j, num_outputs=2, policy="power2", max_factor=16)
    io, ii = cfg["rows"].apply(s, b, i)
    jo, ji = cfg["columns"].apply(s, b, j)
    cfg.define_reorder("order", [io, jo, ii], policy="all")
    cfg["order"].apply(s, b, [io, jo, ii])
    cfg.define_annotate("inner", [ji], policy="try_unroll_vec")
    cfg["inner"].apply(s, b, [ji])
    cfg.define_knob("bound", [False, True])
    if cfg["bound"].val:
        s[b].bind(io, te.thread_axis("threadIdx.x"))
    return s, [a, b]


def test_the_space_has_every_knob():
    task = scaled.task(12, target=TARGET)
    assert task.space.parameters["rows"] == ("-1,1", "-1,2", "-1,3", "-1,4", "-1,6", "-1,12")
    assert task.space.parameters["columns"] == ("-1,1", "-1,2", "-1,4", "-1,8", "-1,16")
    assert len(task.space.parameters["order"]) == 6 and task.space.size == 6 * 5 * 6 * 3 * 2
    assert task.default == {"rows": "-1,1", "columns": "-1,1", "order": "0,1,2", "inner": "none", "bound": False}


def test_candidates_compute_what_the_expressions_say():
    task = scaled.task(12, target=TARGET)
    rng = Random(1)
    for _ in range(12):
        candidate = json.loads(json.dumps(task.space.sample(rng)))
        arguments = task.arguments()
        Interpreter(task.program(candidate).kernel.entry_func)(*arguments)
        assert np.array_equal(arguments[1], 3 * arguments[0]), candidate


def test_workloads_know_shapes_and_structure_but_no_names():
    small, big, other = (
        scaled.task(12, target=TARGET),
        scaled.task(24, target=TARGET),
        scaled.task(12, 5, target=TARGET),
    )
    assert small.workload.family == big.workload.family != other.workload.family
    assert small.workload.key != big.workload.key
    assert small.workload.key == scaled.task(12, target=TARGET, name="other").workload.key


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 96), st.integers(2, 4), st.sampled_from(["factors", "power2"]), st.integers(1, 32))
def test_splits_cover_the_axis(extent, parts, policy, most):
    cfg = Configuration()
    cfg.define_split("s", extent, parts, policy, max_factor=most)
    for text in some(cfg.parameters["s"]):
        first, *inner = map(int, text.split(","))
        again = Configuration({"s": text})
        again.define_split("s", extent, parts, policy, max_factor=most)
        assert first == -1 and again["s"].sizes[1:] == tuple(inner) and all(f <= most for f in inner)
        assert prod(again["s"].sizes) >= extent and (policy == "power2" or prod(again["s"].sizes) == extent)


def test_filters_and_candidates_of_splits():
    cfg = Configuration()
    cfg.define_split("few", 64, 2, filter=lambda e: e.sizes[-1] >= 16)
    cfg.define_split("listed", 64, 3, policy="candidate", candidate=[[-1, 4, 8], [-1, 2, 2]])
    assert cfg.parameters == {"few": ("-1,16", "-1,32", "-1,64"), "listed": ("-1,4,8", "-1,2,2")}
    assert cfg["listed"].sizes == (2, 4, 8) and "few" in cfg and "many" not in cfg


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (lambda cfg: (cfg.define_knob("k", [1]), cfg.define_knob("k", [2])), "'k' is defined twice"),
        (lambda cfg: cfg.define_split("k", 8, filter=lambda e: False), "'k' has no values"),
        (lambda cfg: cfg.define_split("k", 8, policy="best"), "no policy 'best'"),
        (lambda cfg: cfg["k"], "no knob 'k'"),
    ],
)
def test_mistakes_in_templates_are_told(define, words):
    with pytest.raises(UsageError, match=words):
        define(Configuration())


def test_candidates_of_other_spaces_are_refused():
    task = scaled.task(12, target=TARGET)
    with pytest.raises(UsageError, match="'rows' has no value '-1,5'"):
        task.program({**task.default, "rows": "-1,5"})


def test_schedules_without_a_program_are_infeasible():
    @template
    def wide(cfg, n):
        a = te.placeholder((n,), "int32", name="a")
        b = te.compute((n,), lambda i: a[i] + 1, name="b")
        s = te.create_schedule(b)
        cfg.define_knob("tile", [64, 1 << 16])
        copy = s.cache_read(a, "lsram", [b])
        s[copy].compute_at(s[b], s[b].split(b.op.axis[0], factor=cfg["tile"].val)[0])
        return s, [a, b]

    task = wide.task(1 << 17, target=TARGET)
    task.program({"tile": 64})
    with pytest.raises(Infeasible, match="LSRAM"):
        task.program({"tile": 1 << 16})


def test_the_default_schedules_have_knobs():
    x = te.placeholder((8, 256), "float32", name="x")
    task = KnobsTask("relu", topi.nn.relu(x), TARGET)
    text = {c: str(task.program({**task.default, "lanes": c}).kernel) for c in (0, 8, 32)}
    assert len(set(text.values())) == 3
    assert text[0] == str(te.lower(topi.schedule(task.outputs, TARGET), task.tensors, "relu", TARGET))

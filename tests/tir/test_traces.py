"""The trace of every kind of step, as JSON and as Python, and what a damaged one says."""

from __future__ import annotations

import json

import pytest

from compassc import te, tir
from compassc.ir.verify import VerifyError
from compassc.reference.block_steps import EXAMPLES
from compassc.tir.trace import KINDS
from tests.tir.random_blocks import check_texts
from tests.tir.test_steps import chain

QUERIES = {"get_block", "get_loops", "get_child_blocks", "get_producers", "get_consumers", "get_output_blocks"}


def test_there_is_an_example_of_each_step():
    assert {k.method for k in KINDS.values()} == EXAMPLES.keys() | QUERIES | {"enter_postproc"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_traces_of_all_steps_make_the_same_again(name):
    began = []

    def watched(mod, **options):
        began.append(mod)
        return tir.Schedule(mod, **options)

    names = {"te": te, "watched": watched}
    text = f"{EXAMPLES[name].program}\n{EXAMPLES[name].step}".replace("s = tir.Schedule(", "s = watched(")
    exec(text, names)  # noqa: S102 - our own text
    s = names["s"]
    assert any(KINDS[i.kind].method == name for i in s.trace), s.trace
    check_texts(s, began[-1])


def test_queries_are_in_the_trace():
    s = tir.Schedule(chain())
    s.get_child_blocks(s.get_block("root"))
    s.get_consumers(s.get_producers("C")[0])
    s.get_output_blocks("root")
    s.enter_postproc()
    assert {KINDS[i.kind].method for i in s.trace} == (QUERIES - {"get_loops"}) | {"enter_postproc"}
    check_texts(s, chain())
    assert s.trace.simplified(remove_postproc=True).insts == []


GB, GL = ["GetBlock", [], ["C", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l1", "l2"]]
TILE = ["SamplePerfectTile", ["l1"], [2, 16], ["v3", "v4"]]
DAMAGED = [
    ([GB, ["Foo", [], [], []]], [], "step 1: there is no instruction 'Foo'"),
    ([GB, ["GetLoops", ["b0"], [], ["l1"]]], [], "step 1, GetLoops: it gives 2 values, not 1"),
    ([GB, ["GetLoops", [""], [], ["l1"]]], [], "step 1, GetLoops: '' was not made by the steps before"),
    ([GB, GL, ["Vectorize", ["b0"], [], []]], [], "step 2, Vectorize: vectorize: loop is a LoopRV, got BlockRV"),
    ([GB, GL, ["Vectorize", [3], [], []]], [], "step 2, Vectorize: vectorize: loop is a LoopRV, got int"),
    ([GB, GL, ["Vectorize", ["l1", "l2"], [], []]], [], "step 2, Vectorize: it takes 1 inputs and 0 attributes"),
    ([GB, GL, ["ComputeAt", ["b0"], [0, -1], []]], [], "step 2, ComputeAt: the input loop is missing"),
    ([GB, GL, ["Bind", ["l1"], [], []]], [], "step 2, Bind: bind: missing a required argument"),
    ([GB, GL, ["Bind", ["l1"], ["threadIdx.x", 1], []]], [], "step 2, Bind: it takes 1 inputs and 1 attributes"),
    ([GB, GL, ["Split", ["l1", 0, 2], [1, 0], ["l3", "l4"]]], [], "step 2, Split: split of 'i': factor 0 is 0"),
    ([GB, GL, TILE], [[2, "x"]], "step 2, SamplePerfectTile: sample_perfect_tile: decision is a list, got str"),
    ([GB, GL], [[1, 3]], "step 1, GetLoops: it decides nothing, the decision is 3"),
    ([GB, GL], [[2, 3]], "there is a decision for step 2, of 2"),
]


@pytest.mark.parametrize("steps,decisions,message", DAMAGED)
def test_a_damaged_trace_says_which_step_is_wrong(steps, decisions, message):
    with pytest.raises((tir.ScheduleError, TypeError), match=message):
        tir.Trace.apply_json_to_schedule(json.dumps([steps, decisions]), tir.Schedule(chain()))


def test_only_steps_that_sample_have_decisions():
    s = tir.Schedule(chain())
    s.get_block("C")
    with pytest.raises(tir.ScheduleError, match="GetBlock decides nothing"):
        s.trace.with_decision(s.trace.insts[0], 3)


def test_buffers_are_places_in_the_text_of_a_trace():
    s = tir.Schedule(chain())
    s.transform_layout("B", "B", lambda i, j: (j, i))
    assert s.trace.as_json()[0][-1][2][:2] == [0, "write"]


def test_a_symbol_that_is_gone_says_what_it_was():
    s = tir.Schedule(chain())
    i, j = s.get_loops("B")
    s.fuse(i, j)
    with pytest.raises(tir.ScheduleError, match="the LoopRV of 'i' is no more"):
        s.unroll(i)


@pytest.mark.parametrize("step", ["reorder", "merge", "fuse"])
def test_one_loop_is_not_given_twice(step):
    s = tir.Schedule(chain())
    loop, again = s.get_loops("B")[0], s.get_loops("B")[0]
    with pytest.raises(ValueError, match="the loop 'i' is given twice"):
        getattr(s, step)(loop, again)


def test_errors_are_of_the_kinds_that_programs_expect():
    s = tir.Schedule(chain())
    with pytest.raises(ValueError, match="give a loop at least"):
        s.fuse()
    with pytest.raises(AssertionError, match="'Q' is 0 times among its reads"):
        s.cache_read("B", "Q", "lsram")
    with pytest.raises(tir.ScheduleError, match="pad_value is 1.5, which int32 does not hold"):
        s.transform_layout("B", "B", lambda i, j: (i // 5, j, i % 5), pad_value=1.5)


def test_the_debug_mask_looks_at_each_change(monkeypatch):
    s = tir.Schedule(chain(), debug_mask=1)
    s.split(s.get_loops("B")[0], [4, None])
    assert s.copy().debug_mask == 1 and tir.Schedule(chain(), debug_mask="all").debug_mask == 3
    monkeypatch.setattr("compassc.tir.loops._loop", lambda var, extent, body: body[0])  # a loop is forgotten
    with pytest.raises(VerifyError):
        s.split(s.get_loops("B")[1], [2, None])

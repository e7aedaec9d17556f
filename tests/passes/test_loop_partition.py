"""LoopPartition: guards that matter at the edge only stand there."""

from __future__ import annotations

PARAMS = 'p: T.ptr("int32", "global"), n: T.int32'
NEST = """for i in T.serial(0, {}, 1, nonneg=True):
    for j in T.serial(0, 8, 1, nonneg=True):
        if (((i * 8) + j) < {}):
            p[((i * 8) + j)] = 1"""


def test_the_last_turn_is_a_loop_of_its_own(transform):
    text = transform("LoopPartition", NEST.format(13, 100), PARAMS)
    assert "T.serial(0, 12, 1" in text and "T.serial(12, 13, 1" in text and text.count("if ") == 1


def test_where_the_edge_is_no_number_both_forms_stand_in_the_loop(transform):
    text = transform("LoopPartition", NEST.format(13, "n"), PARAMS)
    assert text.count("for i") == 1 and text.count("for j") == 2 and text.count("if ") == 2


def test_a_guard_without_an_inner_loop_and_what_waits_stay(check):
    check("LoopPartition", PARAMS, "for i in T.serial(0, 13, 1, nonneg=True):\n    if (i < n):\n        p[i] = 1")
    check("LoopPartition", PARAMS, NEST.format(13, 100) + '\n    S.barrier(dtype="void")')

"""LowerThreadBinding: which TEC or thread runs what, and where all of them wait."""

from __future__ import annotations

import pytest
from loops_text import after, loops

from compassc import pass_manager
from compassc.te import LowerError
from compassc.te.machine import Grid, Machine

NAME = "LowerThreadBinding"
FILL = "for i in T.threadIdx_x(0, {}, 1, nonneg=True):\n    p[i] = 1"
READ = "q[0] = p[3]"


@pytest.mark.parametrize("made_of", ["stages", True])
def test_tecs_share_a_loop_out_and_one_of_them_does_the_rest(made_of):
    text = after(NAME, f"{FILL.format(4)}\n{READ}", made_of)
    assert "for i in T.tec(0, 4, 1" in text and text.count("S.barrier") == 1
    assert text.index("S.barrier") < text.index('if (S.get_local_id(dtype="int32") == 0)') < text.index("q[0]")


def test_more_turns_than_tecs_are_rounds():
    assert "T.serial(S.get_local_id(" in after(NAME, FILL.format(9))
    assert "T.serial(S.get_local_id(" in after(NAME, FILL.format("n"))


def test_one_turn_is_what_one_tec_does():
    nest = "for u in T.serial(2, 3, 1):\n    for i in T.threadIdx_x(0, 1, 1):\n        for j in T.parallel(0, 1, 1):\n            p[(u + i) + j] = 1"
    assert after(NAME, nest, True) == 'if (S.get_local_id(dtype="int32") == 0):\n    p[((2 + 0) + 0)] = 1'
    assert after(NAME, READ.join(["for u in T.serial(0, 1, 1):\n    ", "\n    break"]), False).startswith("for u")


def test_turns_of_a_loop_around_wait_where_they_may_read_each_other():
    nest = "for t in T.serial(0, 3, 1, nonneg=True):\n    " + FILL.format(4).replace("\n", "\n    ")
    assert "S.barrier" not in after(NAME, nest), "stages never read what another turn of theirs computes"
    assert after(NAME, nest, False).count("S.barrier") == 1
    assert after(NAME, nest + f"\n    {READ}").count("S.barrier") == 2


def test_blocks_that_the_user_wrote_run_on_all_tecs():
    assert "get_local_id" not in after(NAME, READ, False) and "get_local_id" in after(NAME, READ, "stages")


def test_loops_inside_of_each_other_are_computed_together_by_stages_alone():
    inner = "for j in T.threadIdx_x(0, 4, 1, nonneg=True):\n        p[j] = 1"
    nest = f"for i in T.threadIdx_x(0, 3, 1, nonneg=True):\n    {inner}"
    text = after(NAME, f"{nest}\n    q[i] = 1")
    assert 'i: T.size("int32") = S.get_local_id' in text and "if (i < 3)" in text and text.count("S.barrier") == 1
    with pytest.raises(LowerError, match="another loop is bound to it"):
        after(NAME, nest, True)


def test_grids_keep_their_threads_and_hosts_have_none():
    grid = after(NAME, f"{FILL.format(4)}\n{READ}", True, Grid("cuda"))
    assert "T.threadIdx_x(0, 4" in grid and "S.wait_events(0" in grid and "get_local_id" not in grid
    host = after(NAME, f"{FILL.format(4)}\n{READ}", True, Machine("host"))
    assert "T.serial(0, 4" in host and "S." not in host


def test_there_is_one_dimension_of_tecs():
    with pytest.raises(LowerError, match="there is no threadIdx.y"):
        after(NAME, FILL.format(4).replace("_x", "_y"))


def test_other_functions_stay():
    module = loops("p[0] = 1", True)
    other = module.map_functions(lambda f: f.without_attr("expressions"))
    assert pass_manager.run_pipeline((NAME,), other) is other

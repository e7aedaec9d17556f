"""ThreadSync: threads wait between a store and a load of what they share, where it may be another thread's."""

from __future__ import annotations

import pytest
from loops_text import after

from compassc.te import LowerError
from compassc.te.machine import Grid

NAME = "ThreadSync"
NEST = """a = T.alloc((8,), "int32", "shared")
for i in T.threadIdx_x(0, 8, 1, nonneg=True):
    a[i] = 1
for j in T.threadIdx_x(0, 8, 1, nonneg=True):
    p[j] = a[{}]"""


def test_threads_wait_where_they_read_what_others_wrote():
    text = after(NAME, NEST.format("(7 - j)"), machine=Grid("cuda"))
    assert text.index("a[i] = 1") < text.index("S.barrier") < text.index("for j") and text.count("S.barrier") == 1


def test_threads_that_read_their_own_elements_do_not_wait():
    assert after(NAME, NEST.format("j"), machine=Grid("cuda")) == NEST.format("j")


def test_a_barrier_that_some_threads_do_not_reach_is_refused():
    body = NEST.format("(7 - j)").splitlines()
    inside = [body[0], "for t in T.threadIdx_x(0, 4, 1, nonneg=True):", *("    " + s for s in body[1:])]
    with pytest.raises(LowerError, match="all that threadIdx.x has"):
        after(NAME, "\n".join(inside), machine=Grid("cuda"))

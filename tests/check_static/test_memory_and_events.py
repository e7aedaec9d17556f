"""Capacity of the memories, life of events, barriers between TECs."""

import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S

SHARED = 't = S.alloc(64, "i32", "shared")\nid = S.get_local_id()\n'
RACES = {
    "neighbour": SHARED + "t[id] = n\na[id] = t[(id + 1) % 4]",
    "vectors": SHARED + "S.vstore(S.vload(a), t + id * 8)\na[0:8] = S.vload(t + 8)",
    "one writes": SHARED + "if id == 0:\n    t[0] = n\na[id] = t[0]",
    "one copies": SHARED + "if id == 0:\n    S.dma_copy(t, a, 64)\na[id] = t[id]",
    "loops": SHARED + "for i in range(id, 64, 4):\n    t[i] = n\nfor i in range(8):\n    a[i] = t[i]",
    "after a barrier": SHARED + "t[id] = n\nS.barrier()\na[id] = t[0]\nt[id] = 1\na[id] = t[3 - id]",
}
SAFE = {
    "barrier": SHARED + "t[id] = n\nS.barrier()\na[id] = t[(id + 1) % 4]",
    "own element": SHARED + "t[id] = n\na[id] = t[id]",
    "everybody writes": SHARED + "t[0] = n\na[id] = t[0]",
    "one works": SHARED + "if id == 0:\n    t[0] = n\n    a[0] = t[0]",
    "unknown index": SHARED + "t[id] = n\na[id] = t[a[0]]",
    "unknown write": SHARED + "t[a[id]] = n\nt[id] = n\na[id] = t[3 - id]",
    "condition on data": SHARED + "if a[0] > n:\n    t[id] = n\na[id] = t[0]",
    "own share": SHARED + "for i in range(id, 64, 4):\n    t[i] = n\nfor i in range(id, 64, 4):\n    a[i] = t[i]",
    "private to each TEC": 't = S.alloc(8, "i32", "lsram")\nid = S.get_local_id()\nt[id] = n\na[id] = t[3 - id]',
    "flag": SHARED + "while t[0] == 0:\n    a[0] = n\nt[id] = 1",
}


@pytest.mark.parametrize("name", RACES)
def test_missing_barrier(found, name):
    errors = [e for e in found(RACES[name]) if e.code == "missing-barrier"]
    assert len(errors) == 1 and "'t'" in errors[0].message and errors[0].notes[0].span is not None


@pytest.mark.parametrize("name", SAFE)
def test_nothing_is_said_where_a_race_is_not_certain(found, name):
    assert [e.message for e in found(SAFE[name]) if e.code == "missing-barrier"] == []


def test_barrier_in_a_sub_function_counts(found):
    before = '@S.prim_func\ndef sync(p: S.ptr("i32", "global")):\n    S.barrier()\n    p[0] = 1\n'
    assert found(SHARED + "t[id] = n\nsync(a)\na[id] = t[3 - id]", before) == []


def test_lsram_that_overflows(found):
    (error,) = found('t = S.alloc(8193, "i32", "lsram")\na[0] = t[n]')
    assert error.code == "over-allocation" and "32772 bytes" in error.message and "32768" in error.message
    assert found('t = S.alloc(8192, "i32", "lsram")\na[0] = t[n]') == []


def test_shared_memory_depends_on_the_target(found):
    body = 't = S.alloc(40000, "i32", "shared")\na[0] = t[n]'
    assert found(body, target="X2_1204") == []
    (error,) = found(body, target="X3P_1304")
    assert error.code == "over-allocation" and "X3P_1304" in error.message


def test_arrays_that_share_storage_count_once(found):
    use = 'for {0}i in range(5000):\n    {0} = S.alloc(5000, "i32", "lsram")\n    {0}[{0}i] = n\n    a[0] = {0}[n]\n'
    assert found(use.format("t") + use.format("s")) == []  # the one is done before the other begins
    together = (
        't = S.alloc(5000, "i32", "lsram")\ns = S.alloc(5000, "i32", "lsram")\ns[n] = t[n]\nt[n] = s[0]\na[0] = t[0]'
    )
    (error,) = found(together)
    assert error.code == "over-allocation" and "40000 bytes" in error.message


def test_loops_over_tecs_are_checked(found):
    (error,) = found("for i in S.tec_range(n):\n    if a[i] == 0:\n        break\n    a[i] = 1")
    assert error.code == "tec-range"


def test_lsram_of_called_functions_adds_up(found):
    before = """
    @S.prim_func
    def g(n: S.i32) -> S.i32:
        t = S.alloc(5000, "i32", "lsram")
        t[n] = n
        return t[0]
    """
    (error,) = found('t = S.alloc(5000, "i32", "lsram")\nt[n] = g(n)\na[0] = t[0]', before)
    assert error.code == "over-allocation" and "2 arrays" in error.message


EVENT = 't = S.alloc(8, "i32", "lsram")\ne = S.alloc_events(1)\n'
COPY = "S.async_dma_copy(t, a, 8, event=e)\n"


def test_event_that_is_not_freed(found):
    (finding,) = found(EVENT + COPY + "S.wait_events(e)\na[0] = t[0]")
    assert finding.code == "event-not-freed" and finding.severity == "warning"
    assert found(EVENT + COPY + "S.wait_events(e)\na[0] = t[0]\nS.free_events(e)") == []


PAIR = "e, e2 = S.alloc_events(2)\n"
TOO_MANY = {
    "at once": "e, e2, g, h, i = S.alloc_events(5)\nS.free_events(e, e2, g, h, i)",
    "in a branch": PAIR
    + "if n > 0:\n    g, h, i = S.alloc_events(3)\n    S.free_events(g, h, i)\nS.free_events(e, e2)",
    "in a loop": "for i in range(5):\n    e = S.alloc_events(1)\n    S.wait_events(e)",
    "in nested loops": "for i in range(2):\n    for j in range(3):\n        e = S.alloc_events(1)\n        S.wait_events(e)",
    "one of two freed": "for i in range(9):\n    e, e2 = S.alloc_events(2)\n    S.free_events(e2)",
    "one freed before": PAIR + "S.free_events(e)\ng, h, i, j = S.alloc_events(4)\nS.free_events(e2, g, h, i, j)",
}
ENOUGH = {
    "all four": "e, e2, g, h = S.alloc_events(4)\nS.free_events(e, e2, g, h)",
    "one after another": PAIR + "S.free_events(e, e2)\ng, h, i, j = S.alloc_events(4)\nS.free_events(g, h, i, j)",
    "freed in the loop": "for i in range(9):\n    e, e2 = S.alloc_events(2)\n    S.free_events(e, e2)",
    "under another name": PAIR + "g = e\nS.free_events(g)\nh, i, j = S.alloc_events(3)\nS.free_events(e2, h, i, j)",
    "freed or not": PAIR
    + "if n > 0:\n    S.free_events(e, e2)\n    g, h, i = S.alloc_events(3)\n    S.free_events(g, h, i)",
    "unknown times": "for i in range(n):\n    e = S.alloc_events(1)\n    S.wait_events(e)",
    "left early": "for i in range(9):\n    e = S.alloc_events(1)\n    S.wait_events(e)\n    if a[i] > 0:\n        break",
    "by a function": PAIR + "free(e)\nfree(e2)\ng, h, i, j = S.alloc_events(4)\nS.free_events(g, h, i, j)",
}
FREES = "    @S.prim_func\n    def free(e: S.i32):\n        S.free_events(e)\n"


@pytest.mark.parametrize("name", TOO_MANY)
def test_more_events_than_there_are(found, name):
    errors = [e for e in found(TOO_MANY[name]) if e.severity == "error"]
    assert [e.code for e in errors] == ["event-limit"] and "a TEC has 4" in errors[0].message


@pytest.mark.parametrize("name", ENOUGH)
def test_as_many_events_as_there_are(found, name):
    assert [e for e in found(ENOUGH[name], FREES if name == "by a function" else "") if e.severity == "error"] == []


def test_a_build_refuses_more_events_than_there_are():
    with pytest.raises(CompassError, match="no event is free for 'i'") as caught:
        BuildManager().build(too_many_events)
    assert caught.value.code == "event-limit"
    assert caught.value.span.line == too_many_events.py_func.__code__.co_firstlineno + 3


@S.prim_func
def too_many_events(a: S.ptr("i32", "global")):
    e, f = S.alloc_events(2)
    g, h, i = S.alloc_events(3)
    S.free_events(e, f, g, h, i)
    a[0] = 1


def test_event_used_after_it_was_freed(found):
    (error,) = found(EVENT + COPY + "S.free_events(e)\n" + COPY + "a[0] = t[0]")
    assert error.code == "event-freed" and error.severity == "error"
    maybe = EVENT + COPY + "if n > 0:\n    S.free_events(e)\nS.wait_events(e)\na[0] = t[0]"
    assert [e.code for e in found(maybe)] == []

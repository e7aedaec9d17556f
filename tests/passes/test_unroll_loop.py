import pytest

from compass_core.errors import CompassError

P = 'p: T.ptr("int32", "global"), n: T.int32'


def test_each_copy_has_its_own_variables(check):
    check(
        "UnrollLoop",
        P,
        "for i in T.unrolled(1, 6, 2):\n    a: T.int32 = (n + i)\n    p[i] = a",
        """
        a: T.int32 = (n + 1)
        p[1] = a
        a_1: T.int32 = (n + 3)
        p[3] = a_1
        a_2: T.int32 = (n + 5)
        p[5] = a_2
        """,
    )


def test_a_loop_left_by_break_is_serial(check):
    body = "for i in T.{}(0, 4, 1):\n    if (p[i] < n):\n        break"
    check("UnrollLoop", P, body.format("unrolled"), body.format("serial"))


def test_serial_loops_stay(check):
    check("UnrollLoop", P, "for i in T.serial(0, 4, 1):\n    p[i] = n")


def test_run_time_bound_is_an_error(transform):
    with pytest.raises(CompassError, match="constant bounds, got n"):
        transform("UnrollLoop", "for i in T.unrolled(0, n, 1):\n    p[i] = n", P)

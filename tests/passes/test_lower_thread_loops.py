import pytest

from compass_core.errors import CompassError

P = 'p: T.ptr("int32", "global"), n: T.int32'
TID = 'tid: T.size("int32") = S.get_local_id(dtype="int32")\n'


def test_all_tecs_need_no_guard(check):
    check("LowerThreadLoops", P, "for t in T.tec(0, 4, 1):\n    p[t] = t", TID + "p[tid] = tid")


@pytest.mark.parametrize(
    ("bounds", "guard"),
    [("0, n", "(tid < n)"), ("0, 3", "(tid < 3)"), ("1, 4", "(1 <= tid)"), ("1, n", "((1 <= tid) and (tid < n))")],
)
def test_others_are_guarded(check, bounds, guard):
    check(
        "LowerThreadLoops",
        P,
        f"for t in T.tec({bounds}, 1):\n    p[t] = t",
        TID + f"if {guard}:\n    p[tid] = tid",
    )


def test_nested_loops_share_bounds_and_variable(check, transform):
    nest = "for t in T.tec(0, n, 1):\n    for u in T.tec(0, {}, 1):\n        p[t] = u"
    check("LowerThreadLoops", P, nest.format("n"), TID + "if (tid < n):\n    p[tid] = tid")
    with pytest.raises(CompassError, match="equal bounds"):
        transform("LowerThreadLoops", nest.format("4"), P)


def test_break_is_an_error(transform):
    with pytest.raises(CompassError, match="break"):
        transform("LowerThreadLoops", "for t in T.tec(0, 4, 1):\n    break", P)


def test_functions_without_tec_loops_stay(check):
    check("LowerThreadLoops", P, "for t in T.serial(0, 4, 1):\n    p[t] = t")

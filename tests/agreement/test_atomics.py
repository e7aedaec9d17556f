"""Atomic operations: the same sums however TECs meet, and what checks say of them."""

from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.check import Subject, findings
from compassc.dsl import BuildManager, parse
from compassc.dsl import script as S
from compassc.pysim.checks import checking

TARGETS = ("X2_1204", "X3P_1304")


@S.prim_func
def meet(x: S.ptr("i32", "global"), u: S.ptr("u32", "global"), out: S.ptr("i32", "global"), n: S.i32):
    sh = S.alloc((4,), "i32", "shared")
    t = S.get_local_id()
    if t == 0:
        sh[0] = 0
        sh[1] = 1 << 20
        sh[2] = -(1 << 20)
        sh[3] = 0
    S.barrier()
    for i in range(n):
        S.atomic_add(sh, x[t * n + i])
        S.atomic_min(sh + 1, x[t * n + i])
        S.atomic_max(sh + 2, x[t * n + i])
        S.atomic_max(u, S.u32(x[t * n + i]))
    while S.atomic_compare_exchange(sh + 3, 0, 1) != 0:
        pass
    S.atomic_add(u + 1, 10)
    S.atomic_exchange(sh + 3, 0)
    S.barrier()
    if t == 0:
        for i in range(3):
            out[i] = sh[i]


def arguments() -> list[Any]:
    x = np.random.default_rng(1).integers(-999, 999, 64).astype("int32")
    return [x, np.zeros(2, "uint32"), np.zeros(3, "int32"), 16]


@pytest.mark.parametrize("target", TARGETS)
def test_every_tec_counts_once(target: str) -> None:
    executor = BuildManager(target).build(meet)
    for run in (executor, meet):
        given = arguments()
        run(*given)
        x = given[0]
        assert given[2].tolist() == [x.sum(), x.min(), x.max()]
        assert given[1].tolist() == [x.astype("uint32").max(), 40]


def test_no_order_of_tecs_changes_what_they_leave() -> None:
    BuildManager(TARGETS[0]).build(meet).schedule(*arguments(), explore=5)


def test_profiles_count_them() -> None:
    executor = BuildManager(TARGETS[0]).build(meet)
    executor.profile(*arguments())
    total = executor.latest_profile.total
    assert total.classes["atomic"].count >= 4 * (16 * 4 + 3)


@S.prim_func
def alone(out: S.ptr("i32", "global")):
    sh = S.alloc((2,), "i32", "shared")
    if S.get_local_id() == 0:
        sh[0] = 0
    S.barrier()
    S.atomic_add(sh, 1)
    S.barrier()
    out[S.get_local_id()] = sh[0]


@S.prim_func
def reads_beside(out: S.ptr("i32", "global")):
    sh = S.alloc((2,), "i32", "shared")
    if S.get_local_id() == 0:
        sh[0] = 0
    S.barrier()
    S.atomic_add(sh, 1)
    out[S.get_local_id()] = sh[0]


@S.prim_func
def writes_beside(out: S.ptr("i32", "global")):
    sh = S.alloc((2,), "i32", "shared")
    if S.get_local_id() == 0:
        sh[0] = 7
    S.atomic_add(sh, 1)
    S.barrier()
    out[S.get_local_id()] = sh[0]


@S.prim_func
def writes_after(out: S.ptr("i32", "global")):
    S.atomic_add(out, 1)
    if S.get_local_id() == 3:
        out[0] = 5


def races(kernel: Any) -> tuple[set[str], str, set[str]]:
    """The codes of the checked run, of PySim and of the static check."""

    def codes(run: Any) -> set[str]:
        try:
            run()
        except CompassError as error:
            return {e.code for e in flat(error)}
        return set()

    executor = BuildManager(TARGETS[0]).build(kernel)

    def simulated() -> None:
        with checking("race"):
            kernel(np.zeros(4, "int32"))

    found = {e.code for e in findings(Subject(parse(kernel, TARGETS[0])))}
    return codes(lambda: executor.check(np.zeros(4, "int32"), modes="race")), codes(simulated), found


def test_atomic_operations_do_not_race_with_each_other() -> None:
    assert races(alone) == (set(), set(), set())


@pytest.mark.parametrize("kernel", [reads_beside, writes_beside, writes_after], ids=lambda k: k.__name__)
def test_plain_accesses_beside_them_race(kernel: Any) -> None:
    """The static check looks at shared memory alone."""
    static = set() if kernel is writes_after else {"missing-barrier"}
    assert races(kernel) == ({"check-race"}, {"race"}, static)

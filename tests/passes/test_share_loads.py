"""ShareLoads: what is loaded to be converted to a wider type is a variable."""

from __future__ import annotations

PARAMS = 'p: T.ptr("int8", "global"), q: T.ptr("int32", "global")'
WIDE = 'S.cast({}, dtype="int32x32", part="all", saturate=None)'


def test_a_load_of_which_several_registers_are_made_is_a_variable(check):
    before = f"q[T.ramp(0, 1, 32)] = {WIDE.format('p[T.ramp(0, 1, 32)]')}"
    after = f"part: T.int8x32 = p[T.ramp(0, 1, 32)]\nq[T.ramp(0, 1, 32)] = {WIDE.format('part')}"
    check("ShareLoads", PARAMS, before, after)


def test_other_loads_stay_and_share_vectors_leaves_this_one(check):
    check("ShareLoads", PARAMS, "p[T.ramp(0, 1, 32)] = p[T.ramp(32, 1, 32)]")
    check("ShareVectors", PARAMS, f"q[T.ramp(0, 1, 32)] = {WIDE.format('p[T.ramp(0, 1, 32)]')}")

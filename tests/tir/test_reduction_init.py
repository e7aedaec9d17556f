"""Sums that begin by a condition inside of their loops: in their first turn, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te
from compassc.ir import parse_module
from tests.tir.random_kernels import lowered

BRANCHES = """# compassc IR 1
@I.module(target="", entry="main")
class Module:
    @T.func
    def main(a: T.ptr("int32", "global"), p: T.ptr("int32", "global"), c: T.ptr("int32", "global")) -> T.void:
        a_1 = T.match_buffer(a, (4, 16), "int32")
        p_1 = T.match_buffer(p, (4,), "int32")
        c_1 = T.match_buffer(c, (4, 16), "int32")
        for i in T.serial(0, 4, 1):
            for k in T.serial(0, 16, 1):
                if {condition}:
                    {first}
                else:
                    {second}
"""
SUM = """with T.block("p"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.reduce(16, k)
                        T.reads(a_1[vi, vk])
                        T.writes(p_1[vi])
                        with T.init():
                            p_1[vi] = 0
                        p_1[vi] = (p_1[vi] + a_1[vi, vk])"""
MAP = """with T.block("c"):
                        vi = T.axis.spatial(4, i)
                        vk = T.axis.spatial(16, k)
                        T.reads(a_1[vi, vk])
                        T.writes(c_1[vi, vk])
                        c_1[vi, vk] = (a_1[vi, vk] + 1)"""


@pytest.mark.parametrize(
    ("condition", "first", "second", "of"),
    [
        ("(k < 5)", SUM, MAP, slice(0, 5)),
        ("(k >= 5)", MAP, SUM, slice(0, 5)),
        ("(k < 5)", MAP, SUM, None),
        ("(k >= 5)", SUM, MAP, None),
    ],
)
def test_sums_in_either_branch_begin_in_a_turn_of_theirs(condition, first, second, of):
    module = parse_module(BRANCHES.format(condition=condition, first=first, second=second))
    if of is None:
        with pytest.raises(te.LowerError, match="'p' begins its sums where its reduced axes do"):
            lowered(module)
        return
    a, p, c = np.arange(64, dtype="int32").reshape(4, 16), np.full(4, 1000, "int32"), np.zeros((4, 16), "int32")
    lowered(module)(a, p, c)
    np.testing.assert_array_equal(p, a[:, of].sum(1))

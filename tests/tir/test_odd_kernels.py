"""Each step on each of the odd kernels: it is refused, or they compute what they did.

python -m tests.tir.test_odd_kernels --depth 1      # every call of every step
python -m tests.tir.test_odd_kernels --depth 3 --count 100
"""

from __future__ import annotations

import argparse
import copy
import random
from collections import defaultdict
from functools import cache

import numpy as np
import pytest

from compassc import tir
from compassc.analysis.arith import Arith
from compassc.analysis.simplify import Simplifier
from compassc.dsl import schedule
from compassc.dsl.decorators import PyPrimFunc
from compassc.ir import stmts as S
from compassc.ir.exprs import Var
from compassc.ir.operators import binary
from compassc.ir.visit import substitute, substitute_body
from compassc.tir.blocks import number
from tests.tir import odd_kernels, odd_kernels_of_loops, odd_kernels_of_open_extents
from tests.tir.random_kernels import lowered

MODULES = (odd_kernels, odd_kernels_of_open_extents, odd_kernels_of_loops)
KERNELS = {name: k for m in MODULES for name, k in vars(m).items() if isinstance(k, PyPrimFunc)}
TWO_SHAPES = "two_views"


def _begun(body):
    made = []
    for s in body:
        if isinstance(s, S.Block) and s.name_hint.endswith("_R"):
            s = s.replace(init=s.body[:1], body=s.body[1:])
        made.append(s.map(lambda e: e, _begun))
    return tuple(made)


def scheduled(name: str) -> tir.Schedule:
    """The schedule of a kernel."""
    mod = schedule.Schedule(KERNELS[name]).mod
    return tir.Schedule(mod.map_functions(lambda f: f.replace(body=_begun(f.body))), debug_mask="all")


def arguments(s: tir.Schedule, size: int = 6) -> list[np.ndarray | int]:
    """Arrays of small numbers; parameters that are numbers are `size`."""
    f = s.mod.entry_func
    shapes = {x.buffer.data: x.buffer.shape for x in f.body if isinstance(x, S.DeclBuffer)}
    sizes = {p: number(size) for p in f.params if p not in shapes}
    simplify = Simplifier(Arith()).expr
    rng = np.random.default_rng(3)
    made: list[np.ndarray | int] = []
    for p in f.params:
        shape = [simplify(substitute(e, sizes)).value for e in shapes.get(p, ())]
        made.append(size if p in sizes else rng.integers(-9, 9, shape).astype("int32"))
    return made


def calls(s: tir.Schedule) -> list[str]:
    """Calls of the steps that there are for the blocks and loops of a schedule."""
    tree = s.tree(s.mod.entry)
    blocks, loops = tree.blocks, {name: len(s.get_loops(name)) for name in tree.blocks}
    made = []
    for name, block in blocks.items():
        others = [x for x in blocks if x != name]
        made += _on_blocks(s, name, block, others)
        for i in range(loops[name]):
            made += _on_loops(name, block, {x: loops[x] for x in others}, i, range(i + 1, loops[name]))
        if loops[name] > 1:
            made.append(f"s.fuse(*s.get_loops({name!r}))")
    return made


def _on_blocks(s: tir.Schedule, name: str, block: S.Block, others: list[str]) -> list[str]:
    rank = len(block.vars)
    layout = {1: "lambda x: (x // 4, x % 4)", 2: "lambda x, y: (y, x)"}.get(rank)
    made = [f"s.{step}({name!r})" for step in ("compute_inline", "reverse_compute_inline", "blockize")]
    made += [f"s.cache_index({name!r}, 'lsram', {n})" for n in (0, 1)] + [f"s.pad_einsum({name!r}, {[3] * rank})"]
    made += [f"s.reorder_block_iter_var({name!r}, [1, 0])"] if rank == 2 else []
    for side, regions in (("read", block.reads), ("write", block.writes)):
        for i, r in enumerate(regions):
            made += [f"s.cache_{side}({name!r}, {i}, 'lsram')", f"s.reindex({name!r}, ({side!r}, {i}))"]
            made += [f"s.cache_{side}({name!r}, {i}, 'lsram', [{x!r}])" for x in others]
            made += [f"s.reindex_cache_{side}({name!r}, {i}, 'lsram', {layout})"] if layout else []
            if side == "read":
                made.append(f"s.cache_inplace({name!r}, {i}, 'lsram')")
                continue
            made += [f"s.rolling_buffer({name!r}, {i})", f"s.set_scope({name!r}, {i}, 'lsram')"]
            made.append(f"s.storage_align({name!r}, {i}, 0, 32, 5)")
            turned = {1: "lambda x: (x // 5, x % 5), 3", 2: "lambda x, y: (y, x)"}[len(r.starts)]
            if r.buffer.data not in s.parameters(s.mod.entry):  # those the caller would have to lay out
                made.append(f"s.transform_layout({name!r}, ('write', {i}), {turned})")
    if layout:
        made.append(f"s.transform_block_layout({name!r}, {layout})")
    return made


def _on_loops(name: str, block: S.Block, others: dict[str, int], place: int, inner: range) -> list[str]:
    """`others`: the blocks, and how many loops they have; `inner`: the places of the loops in this one."""
    loop = f"s.get_loops({name!r})[{place}]"
    made = [f"s.{step}({loop})" for step in ("parallel", "vectorize", "unroll", "blockize", "add_unit_loop")]
    made += [f"s.bind({loop}, 'threadIdx.x')", f"s.split({loop}, [None, 3])", f"s.split({loop}, [2, None])"]
    made += [f"s.loop_partition({loop}, [1, 2])", f"s.rfactor({loop}, 0)"]
    made += [f"s.{step}({name!r}, {loop})" for step in ("decompose_reduction", "decompose_padding")]
    made += [f"s.read_at({loop}, {name!r}, {i}, 'lsram')" for i in range(len(block.reads))]
    made += [f"s.write_at({loop}, {name!r}, {i}, 'lsram')" for i in range(len(block.writes))]
    for x, many in others.items():
        made += [f"s.compute_at({x!r}, {loop})", f"s.reverse_compute_at({x!r}, {loop})"]
        made += [f"s.merge({loop}, s.get_loops({x!r})[{i}])" for i in range(many)]
    return made + [f"s.reorder(s.get_loops({name!r})[{i}], {loop})" for i in inner]


class Case:
    """A kernel, and what it computes."""

    def __init__(self, name: str) -> None:
        self.name, self.s = name, scheduled(name)
        self.given = arguments(self.s)
        self.plain = copy.deepcopy(self.given)
        lowered(self.s.mod)(*self.plain)

    def check(self, s: tir.Schedule, taken: list[str]) -> str:
        try:
            kernel = lowered(s.mod)
        except tir.LowerError as error:
            return error.message
        found = copy.deepcopy(self.given)
        kernel(*found)
        for a, b in zip(self.plain, found, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=f"{self.name}: {'; '.join(taken)}")
        return "right"

    def each(self) -> list[str]:
        """Every call by itself."""
        return [self.try_(call) for call in calls(self.s)]

    def try_(self, call: str) -> str:
        s = self.s.copy()
        try:
            _take(s, call)
        except tir.ScheduleError as error:
            return error.message
        return self.check(s, [call])

    def backwards(self, loop: Var) -> str:
        """The turns of a loop in the other order, if they may run at the same time."""
        s = self.s.copy()
        try:
            s.parallel(s.new_loop(s.mod.entry, loop))
        except tir.ScheduleError as error:
            return error.message
        s.mod = s.mod.map_functions(lambda f: f.replace(body=_backwards(f.body)))
        return self.check(s, [f"'{loop.name}' backwards"])

    def several(self, draw: random.Random, depth: int) -> str:
        """Random calls on top of each other; each step as often as the others, however many calls of it there are."""
        s, taken = self.s.copy(), []
        for _ in range(3 * depth):
            by_step = defaultdict(list)
            for call in calls(s):
                by_step[call.split("(")[0]].append(call)
            call = draw.choice(by_step[draw.choice(sorted(by_step))])
            try:
                _take(s, call)
            except tir.ScheduleError:
                continue
            taken.append(call)
            if len(taken) == depth:
                break
        return self.check(s, taken)


def _take(s: tir.Schedule, call: str) -> None:
    eval(call, {"s": s})


@cache
def case_of(name: str) -> Case:
    """What tests do to a kernel they do to copies of its schedule."""
    return Case(name)


@pytest.mark.parametrize("name", [k for k in KERNELS if k != TWO_SHAPES])
def test_steps_on_odd_kernels_are_right_or_refused(name):
    case, draw = case_of(name), random.Random(name)
    found = [case.try_(call) for call in draw.sample(calls(case.s), 6)]
    found += [case.several(draw, 3) for _ in range(2)]
    assert found


def _backwards(body):
    made = []
    for s in body:
        s = s.map(lambda e: e, _backwards)
        if isinstance(s, S.For) and s.kind == "parallel":
            last = binary("sub", binary("add", s.min, s.stop), number(1, s.loop_var))
            s = s.replace(kind="serial", body=substitute_body(s.body, {s.loop_var: binary("sub", last, s.loop_var)}))
        made.append(s)
    return tuple(made)


@pytest.mark.parametrize("name", [k for k in KERNELS if k != TWO_SHAPES])
def test_turns_that_may_run_at_the_same_time_may_run_backwards(name):
    case = case_of(name)
    assert [case.backwards(loop) for loop in case.s.tree(case.s.mod.entry).loops]


WRITTEN_IN_PART = (
    "cache_write('P', 0, 'lsram')",
    "cache_write('P', 0, 'lsram', ['C'])",
    "reindex('P', ('write', 0))",
    "reindex_cache_write('P', 0, 'lsram', lambda x: (x // 4, x % 4))",
    "write_at(s.get_loops('P')[0], 'P', 0, 'lsram')",
)
REFUSED = [
    *((name, call, "write") for name in ("guarded", "guarded_by_an_axis", "zero_trip") for call in WRITTEN_IN_PART),
    ("guarded", "pad_einsum('P', [3])", "does not write 'p2' at each of its points"),
    ("doubling", "pad_einsum('P_R', [3, 3])", "no sum of products"),
    ("reduced_backwards", "blockize('P_R')", "begins its sums where its reduced axes do, which is not the first turn"),
    ("reduced_backwards", "fuse(*s.get_loops('P_R'))", "begins its sums where its reduced axes do"),
    ("whole_nests", "reindex('P', ('read', 0))", "which is no axis of the block"),
    ("triangle", "cache_write('P', 0, 'lsram')", "does not surely write all of it"),
    ("rows_under_a_condition", "reindex('P', ('write', 0))", "it stands in a condition"),
    ("rows_under_a_condition", "transform_block_layout('P', lambda x, y: (y, x))", "not bound to the loops around"),
    ("rows_under_a_condition", "blockize(s.get_loops('P')[0])", "more than the block in it"),
    ("rows_under_a_condition", "reverse_compute_at('C', s.get_loops('P')[1])", "the loop stands in a condition"),
    ("rows_under_a_condition", "merge(s.get_loops('P')[1], s.get_loops('C')[1])", "not all that is in"),
    ("joined_elsewhere", "cache_write('P_R', 0, 'lsram')", "goes on with what is in 'p2'"),
    ("joined_elsewhere", "vectorize(s.get_loops('P_R')[0])", "reads other elements of what it writes"),
    ("joined_twice", "rfactor(s.get_loops('P_R')[1], 0)", "no matching reducer"),
    ("value_of_a_row", "bind(s.get_loops('P')[1], 'threadIdx.x')", "uses 'x', which is neither an axis of it nor"),
    ("number_of_a_row", "parallel(s.get_loops('P')[0])", "uses 'x', which is neither an axis of it nor"),
    ("loops_as_numbers", "cache_read('P', 0, 'lsram')", "uses 'i', which is neither an axis of it nor"),
    ("one_after_the_other", "bind(s.get_loops('P')[0], 'threadIdx.x')", "it reads what it writes"),
    ("from_the_turn_before", "vectorize(s.get_loops('P')[0])", "not all that a turn reads of it"),
    ("from_the_turn_before", "reorder(*s.get_loops('P')[::-1])", "not all that a turn reads of it"),
    ("in_the_same_turn", "merge(s.get_loops('P')[1], s.get_loops('C')[1])", "not all that a turn reads of it"),
    ("the_last_one", "reorder(*s.get_loops('P')[::-1])", "turns of the loop 'i' may write the same element"),
    ("half_a_row", "bind(s.get_loops('P')[0], 'threadIdx.x')", "turns of the loop 'i' may write the same element"),
    ("joined_by_loops", "parallel(s.get_loops('P')[0])", "turns of the loop 'i' may write the same element"),
    ("reduced_outside", "bind(s.get_loops('P_R')[0], 'threadIdx.x')", "uses 'k', which is no axis of it"),
    ("begun_where_it_goes_on", "bind(s.get_loops('P')[0], 'threadIdx.x')", "not all that a turn reads of it"),
    ("moved_by_a_value", "bind(s.get_loops('P')[0], 'threadIdx.x')", "axis 'vi' may write the same element"),
    ("five_columns", "reverse_compute_at('C', s.get_loops('P')[0])", "do not surely give all of its points"),
    ("all_but_the_last", "cache_write('P', 0, 'lsram')", "does not surely write all of it"),
    ("open_triangle", "cache_write('P', 0, 'lsram')", "does not surely write all of it"),
    *(
        ("left_by_a_turn", f"{step}(s.get_loops('P')[0])", "not all that a turn reads")
        for step in ("parallel", "vectorize")
    ),
    ("left_by_a_turn", "bind(s.get_loops('P')[0], 'threadIdx.x')", "not all that a turn reads of it is surely written"),
    ("from_three_on_of_all", "reverse_compute_at('C', s.get_loops('P')[0])", "do not surely give all"),
]


def test_a_block_of_some_points_is_not_folded_into_one_of_all():
    s = scheduled("squares")
    s.cache_read("P", 0, "lsram")
    with pytest.raises(tir.ScheduleError, match="not surely computed at all points of its axes"):
        s.reverse_compute_inline("P")


@pytest.mark.parametrize("name,call,reason", REFUSED)
def test_what_would_be_wrong_is_refused(name, call, reason):
    assert reason in case_of(name).try_(f"s.{call}")


@pytest.mark.parametrize(
    "name,block", [("without_axes", "P"), ("around_blocks", "O"), ("in_the_same_turn", "P"), ("loops_as_numbers", "P")]
)
def test_blocks_that_use_loops_go_with_their_steps(name, block):
    case, loops = case_of(name), f"s.get_loops({block!r})"
    taken = [f"s.{step}({loops}[{i}])" for step in ("parallel", "vectorize", "unroll") for i in (0, 1)]
    taken += [f"s.bind({loops}[{i}], 'threadIdx.x')" for i in (0, 1)]
    taken += [f"s.reorder(*s.split({loops}[1], [None, 3])[::-1])"]
    taken += [] if name == "in_the_same_turn" else [f"s.reorder(*{loops}[::-1])", f"s.vectorize(s.fuse(*{loops}))"]
    assert {case.try_(call) for call in taken} == {"right"}


def test_what_a_turn_leaves_for_the_next_one_stays_in_place():
    """Two halves of a buffer would be filled in turn."""
    case = case_of("left_by_a_turn")
    s = case.s.copy()
    s.set_scope("P", 0, "lsram")
    s.annotate("P", "double_buffer_scope", 0)
    assert case.check(s, ["double_buffer_scope"]) == "right"


def test_blocks_know_a_buffer_by_one_shape():
    with pytest.raises(tir.ScheduleError, match="'p3' of 'two_views' is declared with two shapes"):
        scheduled(TWO_SHAPES)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tir.test_odd_kernels")
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw, right, cases = random.Random(given.seed), 0, 0
    for name in (k for k in KERNELS if k != TWO_SHAPES):
        case = case_of(name)
        found = case.each() if given.depth == 1 else [case.several(draw, given.depth) for _ in range(given.count)]
        right, cases = right + found.count("right"), cases + len(found)
    print(f"{right} of {cases} right, the others refused")


if __name__ == "__main__":
    main()

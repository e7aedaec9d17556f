"""Random tensor expressions as blocks and random steps on them: whatever is legal must give what plain loops give.

python -m tests.tir.random_blocks --seed 0 --count 10000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable

import numpy as np

from compassc import targets, te, tir
from compassc.analysis.interpret import Interpreter
from compassc.analysis.structure import Interner, variables
from compassc.ir import parse_module, structural_equal
from compassc.ir import stmts as S
from compassc.ir.verify import verify
from compassc.tir.canonical import canonical
from tests.te.random_cases import Case, case
from tests.te.random_schedules import TRIES, depth
from tests.tir import random_combinations as combined
from tests.tir.random_choices import (
    block_of,
    chooses,
    follows,
    loop_of,
    maps_only,
    own,
    read_later,
    reads_blocks,
    reduced_loop,
    reduces,
    unscheduled,
)
from tests.tir.random_intrinsics_of_blocks import tensorize

TARGET = "X2_1204"


def function(made: Case):
    """The expressions of a case as a function of blocks."""
    return te.create_prim_func(made.args)


def _split(draw, s):
    factors = draw.choice(([None, draw.randint(1, 5)], [draw.randint(1, 5), None], [draw.randint(1, 3), None, 2]))
    s.split(loop_of(draw, s), factors, preserve_unit_iters=draw.random() < 0.8)


def _fuse(draw, s):
    loops = s.get_loops(block_of(draw, s))
    if len(loops) < 2:
        raise tir.ScheduleError("one loop")
    first = draw.randrange(len(loops) - 1)
    s.fuse(*loops[first : first + draw.randint(2, 3)], preserve_unit_iters=draw.random() < 0.8)


def _reorder(draw, s):
    loops = s.get_loops(block_of(draw, s))
    s.reorder(*draw.sample(loops, draw.randint(0, len(loops))))


def _on_loop(name):
    return lambda draw, s: getattr(s, name)(loop_of(draw, s))


def _two(name):
    def step(draw, s):
        block = block_of(draw, s, read_later if name == "compute_at" else reads_blocks)
        others = s.get_consumers(block) if name == "compute_at" else s.get_producers(block)
        loops = s.get_loops(draw.choice(others)) if others and draw.random() < 0.8 else [loop_of(draw, s)]
        if loops:
            getattr(s, name)(block, draw.choice(loops), draw.random() < 0.2, draw.choice((-1, -1, -2, 1)))

    return step


def _scope(draw):
    return draw.choice(("global", "lsram", "shared", "local"))


def _cache(name, side):
    def step(draw, s):
        block = block_of(draw, s)
        regions = getattr(s.get(block), side)
        others = s.get_consumers(block) if side == "writes" else [block]
        chosen = [x for x in others if draw.random() < 0.5] if draw.random() < 0.3 else []
        getattr(s, name)(block, draw.randrange(max(len(regions), 1)), _scope(draw), chosen or None)

    return step


def _at(name, side):
    def step(draw, s):
        block = block_of(draw, s)
        loops = s.get_loops(block)
        if not loops:
            raise tir.ScheduleError("no loops")
        regions = getattr(s.get(block), side)
        getattr(s, name)(draw.choice(loops), block, draw.randrange(max(len(regions), 1)), _scope(draw))

    return step


def _decompose(draw, s):
    block = block_of(draw, s, reduces)
    loops = s.get_loops(block)
    s.decompose_reduction(block, draw.choice((loops[: draw.randint(1, len(loops))] if loops else loops) or [None]))


def _tile(draw, s):
    loop = loop_of(draw, s)
    s.split(loop, s.sample_perfect_tile(loop, draw.randint(1, 3), draw.choice((4, 16))))


def _location(draw, s):
    block = block_of(draw, s, read_later)
    s.compute_at(block, s.sample_compute_location(block))


def _maps(n: int):
    """Maps of `n` indices."""
    if not n:
        raise tir.ScheduleError("no indices")
    yield lambda *i: i[::-1]
    yield lambda *i: (*i[:-1], i[-1] // 2, i[-1] % 2)
    yield lambda *i: (i[0] // 3, *i[1:], i[0] % 3)
    if n > 1:
        yield lambda *i: (*i[1:], i[0])


def _layout(draw, s):
    block = block_of(draw, s, own)
    side = draw.choice(("reads", "writes"))
    regions = getattr(s.get(block), side)
    data = [r.buffer.data for r in regions]
    places = [i for i, d in enumerate(data) if d not in s.parameters("main")]
    if not places:
        raise tir.ScheduleError("parameters only")
    place = draw.choice(places)
    n = len(s.buffers("main")[data[place]].shape)
    s.transform_layout(block, (side[:-1], place), draw.choice(list(_maps(n))), draw.choice((None, 0, 3)))


def _points(draw, s):
    block = block_of(draw, s)
    n = len(s.get(block).vars)
    s.transform_block_layout(block, draw.choice(list(_maps(n))))


def _pads(draw, s):
    block = block_of(draw, s, unscheduled)
    s.pad_einsum(block, [draw.randint(1, 4) for _ in s.get(block).vars])


def _unpad(draw, s):
    block = block_of(draw, s, chooses)
    s.decompose_padding(block, draw.choice(s.get_loops(block) or [None]))


def _inplace(draw, s):
    names = [n for n, b in s.tree("main").blocks.items() if _both(b)]
    if names:
        block = s.get_block(draw.choice(names))
        s.cache_inplace(block, draw.choice(_both(s.get(block))), _scope(draw))
        return
    name, scope = s.get(block_of(draw, s, reduces)).name_hint, _scope(draw)
    for on in (s.copy(), s):  # what is refused changes nothing
        block = on.get_block(name)
        on.decompose_reduction(block, (on.get_loops(block) or [None])[0])
        on.cache_inplace(block, 0, scope)


def _both(block) -> list[int]:
    """The reads of what a block writes, too."""
    written = {r.buffer.data for r in block.writes}
    return [i for i, r in enumerate(block.reads) if r.buffer.data in written]


def _merge(draw, s):
    loops = [x for name in s.tree("main").blocks for x in s.get_loops(s.get_block(name))]
    first = draw.choice(loops or [loop_of(draw, s)])
    depth = len(s.tree("main").loops_around(s.get(first)))
    same = Interner().same
    alike = [
        x
        for x in loops
        if s.get(x) is not s.get(first)
        and (len(s.tree("main").loops_around(s.get(x))) == depth and same(s.get(x).stop, s.get(first).stop))
        or draw.random() < 0.05
    ]
    if not alike:
        raise tir.ScheduleError("no other loop")
    s.merge(first, draw.choice(alike))


def _tensorize(draw, s):
    tensorize(draw, s, f"fuzz.tile{len(s.trace)}", loop_of(draw, s))


def _annotate(draw, s):
    target = block_of(draw, s) if draw.random() < 0.6 else loop_of(draw, s)
    s.annotate(target, draw.choice(("a", "b")), draw.choice((1, "word", 0.5, [1, 2], {"x": 1})))


def _unannotate(draw, s):
    for name in s.tree("main").blocks:
        for rv in (s.get_block(name), *s.get_loops(s.get_block(name))):
            if dict(s.get(rv).annotations).keys() & {"a", "b"}:
                return s.unannotate(rv, min(dict(s.get(rv).annotations).keys() & {"a", "b"}))
    raise tir.ScheduleError("no annotations")


def _order(draw, s):
    block = block_of(draw, s)
    n = len(s.get(block).vars)
    s.reorder_block_iter_var(block, draw.sample(range(n), n))


def _wider(draw, s):
    """A type that holds all values of the old one."""
    block = block_of(draw, s, own)
    region = s.get(block).writes[0]
    wider = {"int8": ("int16", "int32"), "uint8": ("int16", "int32", "uint16"), "int16": ("int32",)}
    s.unsafe_set_dtype(block, 0, draw.choice(wider.get(str(region.buffer.dtype), (str(region.buffer.dtype),))))


def _regions(draw, s):
    block = block_of(draw, s)
    reads = s.get(block).reads
    if not reads:
        raise tir.ScheduleError("reads nothing")
    place = draw.randrange(len(reads))
    shape = s.buffers("main")[reads[place].buffer.data].shape
    s.annotate_buffer_access(block, place, "read", lambda *_: [(0, e.value) for e in shape])


def _candidates(draw, s):
    loop = loop_of(draw, s)
    s.split(loop, [None, s.sample_categorical([1, 2, 4], [0.2, 0.3, 0.5])])


def _partitioned(draw, s):
    loop = loop_of(draw, s)
    s.split(loop, s.sample_partitioned_tile(loop, 3, draw.randint(0, 2), draw.choice((1, 2))))


def _partition(draw, s):
    loop = loop_of(draw, s)
    extent = s.get(loop).stop.value - s.get(loop).min.value
    s.loop_partition(loop, draw.choice(([draw.randint(1, max(extent - 1, 1))], [1, None], [None, 1], [1, 1])))


def _rolling(draw, s):
    """Mostly of a block that is computed where a window of it is read."""
    names = [n for n, b in s.tree("main").blocks.items() if not b.init and s.get_consumers(n)]
    places = [(n, i) for n in names for i in range(len(s.get_loops(s.get_consumers(n)[0])))]
    draw.shuffle(places)
    for name, place in places[:4]:
        trial = s.copy()
        try:
            _rolled(trial, name, place)
        except tir.ScheduleError:
            continue
        return _rolled(s, name, place)
    s.rolling_buffer(block_of(draw, s, read_later), 0)


def _rolled(s, name, place):
    block = s.get_block(name)
    s.compute_at(block, s.get_loops(s.get_consumers(block)[0])[place])
    s.rolling_buffer(block, 0)


def _reindexing(side):
    def step(draw, s):
        block = block_of(draw, s)
        found = s.get(block)
        regions = getattr(found, side + "s")
        if not regions:
            raise tir.ScheduleError("no regions")
        place = draw.randrange(len(regions))
        names = {v.name for e in regions[place].starts for v in variables(e)}
        kept = [i for i, v in enumerate(found.vars) if v.name in names]
        draw.shuffle(kept)

        def layout(*i):
            chosen = [i[k] for k in kept]
            split = [chosen[0] // 3, *chosen[1:], chosen[0] % 3] if chosen and draw_split else chosen
            return split or [0]

        draw_split = draw.random() < 0.3
        getattr(s, f"reindex_cache_{side}")(block, place, _scope(draw), layout)

    return step


def _joined(draw, s):
    tree = s.tree("main")
    bodies = [x.body for x in (*tree.loops.values(), *tree.blocks.values())] + [s.mod["main"].body]
    rows = [row for row in ([b.name_hint for b in body if isinstance(b, S.Block)] for body in bodies) if len(row) > 1]
    if not rows:
        nests = [x for x in s.mod["main"].body if isinstance(x, S.For) and len(tree.inside(x)) == 1]
        if len(nests) < 2:
            raise tir.ScheduleError("no neighbours")
        first = draw.randrange(len(nests) - 1)
        names = [tree.inside(x)[0].name_hint for x in nests[first : first + 2]]
        for on in (s.copy(), s):  # what is refused changes nothing
            on.blockize([on.blockize(on.get_loops(n)[0]) for n in names])
        return
    row = draw.choice(rows)
    first = draw.randrange(len(row) - 1)
    s.blockize([s.get_block(n) for n in row[first : first + draw.randint(2, 3)]])


def _separators(draw, s):
    block = block_of(draw, s)
    rank = len(s.buffers("main")[s.get(block).writes[0].buffer.data].shape)
    s.set_axis_separator(block, ("write", 0), sorted(draw.sample(range(1, rank + 1), draw.randint(0, rank))))


def _double(draw, s):
    """Mostly a copy that a loop has."""
    block = block_of(draw, s)
    loops = s.get_loops(block)
    if loops and draw.random() < 0.8:
        block = s.read_at(draw.choice(loops), block, 0, "lsram")
    s.annotate(block, "double_buffer_scope", 0)


STEPS: dict[str, Callable[[random.Random, tir.Schedule], None]] = {
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "parallel": _on_loop("parallel"),
    "vectorize": _on_loop("vectorize"),
    "unroll": _on_loop("unroll"),
    "add_unit_loop": _on_loop("add_unit_loop"),
    "compute_at": _two("compute_at"),
    "reverse_compute_at": _two("reverse_compute_at"),
    "compute_inline": lambda draw, s: s.compute_inline(block_of(draw, s, maps_only)),
    "reverse_compute_inline": lambda draw, s: s.reverse_compute_inline(block_of(draw, s, follows)),
    "cache_read": _cache("cache_read", "reads"),
    "cache_write": _cache("cache_write", "writes"),
    "read_at": _at("read_at", "reads"),
    "write_at": _at("write_at", "writes"),
    "reindex": lambda draw, s: s.reindex(block_of(draw, s), draw.choice((("read", 0), ("read", 1), ("write", 0)))),
    "decompose_reduction": _decompose,
    "rfactor": lambda draw, s: s.rfactor(reduced_loop(draw, s), draw.choice((0, 0, 1, -1))),
    "set_scope": lambda draw, s: s.set_scope(block_of(draw, s, own), 0, _scope(draw)),
    "storage_align": lambda draw, s: s.storage_align(
        block_of(draw, s, own), 0, 0, draw.choice((4, 8)), draw.choice((0, 1))
    ),
    "transform_layout": _layout,
    "transform_block_layout": _points,
    "pad_einsum": _pads,
    "decompose_padding": _unpad,
    "blockize": lambda draw, s: s.blockize(loop_of(draw, s)),
    "sample_perfect_tile": _tile,
    "sample_compute_location": _location,
    "cache_inplace": _inplace,
    "merge": _merge,
    "tensorize": _tensorize,
    "annotate": _annotate,
    "unannotate": _unannotate,
    "reorder_block_iter_var": _order,
    "unsafe_set_dtype": _wider,
    "annotate_buffer_access": _regions,
    "sample_categorical": _candidates,
    "sample_partitioned_tile": _partitioned,
    "enter_postproc": lambda draw, s: s.enter_postproc(),
    "loop_partition": _partition,
    "rolling_buffer": _rolling,
    "reindex_cache_read": _reindexing("read"),
    "reindex_cache_write": _reindexing("write"),
    "cache_index": lambda draw, s: s.cache_index(block_of(draw, s), _scope(draw), draw.choice((0, 0, 1, 2))),
    "blocks in one": _joined,
    "set_axis_separator": _separators,
    "double buffer": _double,
    "tiles": combined.tiles,
    "lanes": combined.lanes,
    "parts of fused loops": combined.fused_parts,
    "sums with readers": combined.sums_with_readers,
    "padded rows": combined.padded,
    "bind a reduction": lambda draw, s: s.bind(reduced_loop(draw, s), "threadIdx.x"),
    "bind": lambda draw, s: s.bind(
        loop_of(draw, s), draw.choice(("threadIdx.x", "threadIdx.x", "blockIdx.x", "vthread"))
    ),
}


SELDOM = ("rolling_buffer", "decompose_padding", "pad_einsum", "rfactor", "reverse_compute_inline", "unannotate")
"""Steps for which few programs are made, so that they are drawn more often."""


def steps(draw: random.Random, s: tir.Schedule, count: int) -> Counter[str]:
    """Takes random steps; counts those that were taken and those that were refused."""
    taken: Counter[str] = Counter()
    for _ in range(count):
        name = draw.choice([*STEPS, *SELDOM, *SELDOM])
        for _ in range(TRIES):
            before = s.mod
            try:
                STEPS[name](draw, s)
            except (tir.ScheduleError, te.ExpressionTypeError):
                assert s.mod is before, f"{name} was refused and has changed something"
                taken["refused"] += 1
                continue
            taken[name] += 1
            verify(s.mod)
            break
    return taken


def check_texts(s: tir.Schedule, plain) -> None:
    """The module and the trace, as JSON and as Python, read back as the same. The module has the form in which schedules
    keep it, although each step looks at what it changed only."""
    module, trace = s.mod.script(), str(s.trace)
    assert structural_equal(s.mod.map_functions(canonical), s.mod), "the module has another form"
    assert structural_equal(parse_module(module), s.mod), "the text of the module reads as another one"
    text = json.dumps(s.trace.as_json())
    assert json.dumps(tir.Trace.from_json(text).as_json()) == text, "the trace reads as another one"
    again = tir.Schedule(plain)
    again.trace.apply_json_to_schedule(text, again)
    assert again.mod.script() == module, "the trace makes another module"
    assert str(again.trace) == trace
    named: dict[str, Callable[[tir.Schedule], None]] = {}
    exec(trace, {"tir": tir}, named)  # noqa: S102 - our own text
    other = tir.Schedule(plain)
    named["apply_trace"](other)
    assert other.mod.script() == module, "the trace as Python makes another module"
    other = tir.Schedule(plain)
    s.trace.simplified().apply_to_schedule(other)
    assert other.mod.script() == module, "the simplified trace makes another module"


def run(seed: int, target: str = "") -> tuple[str, Counter[str]]:
    """One case: "right", or why the schedule has no program. AssertionError when results differ. `target`: what is
    called is the module that is built for it."""
    draw = random.Random(seed)
    made = case(draw, statements=False)
    arrays = made.arrays(draw)
    plain = [a.copy() for a in arrays]
    Interpreter(
        te.lower(te.create_schedule(made.outputs), made.args, "plain", target=TARGET, simple_mode=True).entry_func
    )(*plain)
    f = function(made)
    s = tir.Schedule(f, seed=seed + 1)
    module = None
    try:
        taken = steps(draw, s, depth(draw))
        check_texts(s, f)
        try:
            module = tir.lower(s.mod, target or TARGET)
        except tir.LowerError as error:
            return error.message, taken
        verify(module)
        results = [a.copy() for a in arrays]
        early = draw.random() < 0.5
        call = targets.build(module, target=target) if target else Interpreter(module.entry_func, early=early)
        call(*results)
        for t, a, b in zip(made.args, plain, results, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=t.name)
    except Exception as error:
        text = "" if module is None else module.script()
        raise AssertionError(f"seed {seed}:\n{s.trace}\n{f}\n{s.mod.script()}\n{text}\n{error!r}") from error
    return "right", taken


def main(prog: str, count: int, one: Callable[[int, str], tuple[str, Counter[str]]]) -> int:
    """Runs cases as the command line says: 1 where one was wrong."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--target", default="", help="build for it and call what is built")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.target:
            os.environ["COMPASS_CACHE_DIR"] = folder  # thousands of libraries that nobody needs again
        return counted(given.seed, given.count, lambda seed: one(seed, given.target))


def counted(first: int, count: int, one: Callable[[int], tuple[str, Counter[str]]]) -> int:
    """Runs cases and prints what is wrong, at the end how many ended how."""
    ends: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    wrong = 0
    for seed in range(first, first + count):
        try:
            end, steps_taken = one(seed)
        except Exception as error:  # noqa: BLE001 - every fault is counted and shown
            wrong += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
            continue
        ends[re.sub(r"'[^']*'|\d[\d,]*|:\n.*", "_", end, flags=re.DOTALL)] += 1
        taken += steps_taken
        if (done := seed + 1 - first) % 500 == 0:
            print(f"{done} done, {wrong} wrong", file=sys.stderr, flush=True)
    print(f"{count} cases from seed {first}, {wrong} wrong: {dict(ends)}; steps {dict(taken)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main("python -m tests.tir.random_blocks", 10_000, run))

"""Random tensor expressions and random steps on them: whatever is legal must give what the plain schedule gives.

python -m tests.te.random_schedules --seed 0 --count 10000 --target llvm

Without a target the loops are those of an NPU, run by an interpreter that checks every access.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
from collections import Counter

import numpy as np

from compassc import targets, te
from compassc.analysis.interpret import Interpreter
from compassc.ir.tensor_exprs import reads
from compassc.te.lowering import normalised
from compassc.te.rolling_buffers import circular_of
from compassc.te.tensor import tensor_of
from tests.te.random_cases import Case, case
from tests.te.random_intrinsics import tensorize

TRIES = 3
"""How often a step is tried before another one is."""


def steps(draw: random.Random, schedule: te.Schedule, count: int) -> Counter[str]:
    """Takes random steps; counts those that were taken and those that were refused."""
    taken: Counter[str] = Counter()
    for _ in range(count):
        name = draw.choice([*_STEPS, "rolling_buffer", "rolling_buffer"])  # for which few programs are made
        for _ in range(TRIES):
            try:
                _STEPS[name](draw, schedule)
            except te.ScheduleError:
                taken["refused"] += 1
                continue
            taken[name] += 1
            break
    return taken


def depth(draw: random.Random) -> int:
    """How many steps are taken: some, and sometimes many on top of each other."""
    return draw.randint(0, 10) if draw.random() < 0.6 else draw.randint(8, 24)


def _stage(draw: random.Random, schedule: te.Schedule) -> te.Stage:
    return draw.choice([s for s in schedule.stages if not isinstance(s.op, te.PlaceholderOp)])


def _leaf(draw: random.Random, stage: te.Stage) -> te.IterVar:
    if not stage.leaf_iter_vars:
        raise te.ScheduleError("no loops")
    return draw.choice(stage.leaf_iter_vars)


def _split(draw, schedule):
    stage = _stage(draw, schedule)
    options = draw.choice(({"factor": draw.choice((1, 2, 3, 4, 5, 8, 16))}, {"nparts": draw.randint(1, 5)}))
    stage.split(_leaf(draw, stage), **options)


def _fuse(draw, schedule):
    stage = _stage(draw, schedule)
    if len(stage.leaf_iter_vars) < 2:
        raise te.ScheduleError("one loop")
    at = draw.randrange(len(stage.leaf_iter_vars) - 1)
    stage.fuse(*stage.leaf_iter_vars[at : at + 2])


def _reorder(draw, schedule):
    stage = _stage(draw, schedule)
    leaves = list(stage.leaf_iter_vars)
    stage.reorder(*draw.sample(leaves, draw.randint(0, len(leaves))))


def _note(name):
    def step(draw, schedule):
        stage = _stage(draw, schedule)
        getattr(stage, name)(_leaf(draw, stage))

    return step


def _bind(draw, schedule):
    stage = _stage(draw, schedule)
    stage.bind(
        _leaf(draw, stage), te.thread_axis(draw.choice(("threadIdx.x", "threadIdx.x", "blockIdx.x", "vthread.x")))
    )


def _at(draw, schedule):
    stage, parent = _stage(draw, schedule), _stage(draw, schedule)
    readers = schedule.readers(stage)
    if readers and draw.random() < 0.8:
        parent = draw.choice(readers)
    stage.compute_at(parent, _leaf(draw, parent))


def _read(draw, schedule):
    stage = draw.choice(schedule.stages)
    readers = schedule.readers(stage)
    if not readers:
        raise te.ScheduleError("not read")
    schedule.cache_read(stage.op.output(0), draw.choice(("lsram", "shared", "local")), [draw.choice(readers).op])


def _write(draw, schedule):
    schedule.cache_write(_stage(draw, schedule).op.output(0), draw.choice(("lsram", "shared", "local")))


def _factor(draw, schedule):
    stage = _stage(draw, schedule)
    schedule.rfactor(stage.op.output(0), _leaf(draw, stage), draw.choice((0, 0, -1)))


def _align(draw, schedule):
    stage = _stage(draw, schedule)
    factor = draw.randint(1, 8)
    if len(stage.axis) < 2:
        raise te.ScheduleError("one dimension")
    stage.storage_align(draw.choice(stage.axis), factor, draw.randrange(factor))


def _prefetch(draw, schedule):
    stage = _stage(draw, schedule)
    tensors = stage.op.input_tensors
    if not tensors:
        raise te.ScheduleError("reads nothing")
    stage.prefetch(draw.choice(tensors), _leaf(draw, stage))


def _group(draw, schedule):
    end, begin = _stage(draw, schedule), draw.choice(schedule.stages)
    group = schedule.create_group(end.op.output(0), begin.op.output(0), draw.random() < 0.5)
    readers = schedule.readers(end)
    if readers:
        parent = draw.choice(readers)
        group.compute_at(parent, _leaf(draw, parent))


def _threads(draw, schedule):
    _stage(draw, schedule).env_threads([te.thread_axis("threadIdx.x")])


def _tiles(draw, schedule):
    """What a schedule for the NPU looks like: tiles in LSRAM, transfers beside the work, vectors; some together."""
    stage = _stage(draw, schedule)
    if not isinstance(stage.op, te.ComputeOp) or not stage.axis:
        raise te.ScheduleError("no tiles")
    local = schedule[schedule.cache_write(stage.op.outputs, "lsram")[0]]
    outer, _ = stage.split(draw.choice(stage.leaf_iter_vars), factor=draw.choice((2, 3, 4, 8)))
    if draw.random() < 0.5:
        stage.reorder(outer, *(a for a in stage.leaf_iter_vars if a is not outer))
    if draw.random() < 0.7:
        stage.bind(outer, te.thread_axis("threadIdx.x"))
    local.compute_at(stage, outer)
    for tensor in {tensor_of(r): None for e in local.body for r in reads_of(e)}:
        scope = draw.choice(("lsram", "lsram", "shared"))
        copy = schedule[schedule.cache_read(tensor, scope, [local.op])]
        copy.compute_at(stage, outer)
        if scope == "shared" and copy.leaf_iter_vars:
            copy.bind(copy.split(copy.leaf_iter_vars[0], nparts=draw.randint(2, 4))[0], te.thread_axis("threadIdx.x"))
        elif draw.random() < 0.5:
            copy.double_buffer()
    axis = draw.choice((local.leaf_iter_vars[-1], draw.choice(local.leaf_iter_vars)))
    _, lanes = local.split(axis, factor=draw.choice((4, 8, 16, 32)))
    local.vectorize(lanes)
    if draw.random() < 0.5:
        local.double_buffer()


def reads_of(e):
    """The elements that an expression or the sources of a reduction read."""
    return [x for source in getattr(e, "source", (e,)) for x in reads(source)]


def _double(draw, schedule):
    """Mostly a copy into LSRAM or out of it that a loop has."""
    _stage(draw, schedule).double_buffer()


def _rolling(draw, schedule):
    """Mostly of a stage that is computed where its reader takes the next window of it."""
    known = [s for s in schedule.stages if isinstance(s.op, te.ComputeOp) and not s.is_output and schedule.readers(s)]
    stage = draw.choice(known) if known and draw.random() < 0.9 else _stage(draw, schedule)
    readers = [r for r in schedule.readers(stage) if isinstance(r.op, te.ComputeOp) and r.leaf_iter_vars]
    place = draw.randrange(len(readers[0].leaf_iter_vars)) if len(readers) == 1 and draw.random() < 0.9 else None
    for on in (schedule.replayed(schedule.trace), schedule):  # most loops have no windows that overlap
        mine = on.stage(stage.label)
        if place is not None:
            reader = on.stage(readers[0].label)
            mine.compute_at(reader, reader.leaf_iter_vars[place])
        mine.rolling_buffer()
        if on is not schedule:
            plain = normalised(on)
            try:
                circular_of(plain.stage(stage.label), te.infer_bounds(plain))
            except te.LowerError as error:
                raise te.ScheduleError("no window") from error


def _tensorize(draw, schedule):
    tensorize(draw, _stage(draw, schedule))


def _tile(draw, schedule):
    stage = _stage(draw, schedule)
    x, y = _leaf(draw, stage), _leaf(draw, stage)
    if x is y:
        raise te.ScheduleError("one loop")
    stage.tile(x, y, draw.randint(1, 4), draw.randint(1, 4))


def _pragma(draw, schedule):
    stage = _stage(draw, schedule)
    kinds = ("unroll", "vectorize", "auto_unroll_max_step", "loop_partition_hint", "compass_dma_copy")
    stage.pragma(_leaf(draw, stage), draw.choice(kinds), draw.choice((2, 8, 40)))


def _scope(draw, schedule):
    _stage(draw, schedule).set_scope(draw.choice(("global", "shared", "lsram", "local")))


def _predicate(draw: random.Random, made: Case) -> dict[te.Tensor, tuple[int, int]]:
    """Sometimes conditions of stores: every so many-th element of the last axis of an output that nobody reads is not
    stored."""
    read = {t.op for c in made.tensors for t in c.op.input_tensors}
    found = [t for t in made.outputs if isinstance(t.op, te.ComputeOp) and t.op not in read and t.value_index == 0]
    return {t: (draw.randint(2, 4), draw.randint(0, 1)) for t in found if draw.random() < 0.15}


def set_predicates(schedule: te.Schedule, chosen: dict[te.Tensor, tuple[int, int]]) -> None:
    """Takes the steps that say so."""
    for t, (every, rest) in chosen.items():
        axis = t.op.axis[-1]
        schedule[t].set_store_predicate((axis + 0) % every != rest)


_STEPS = {
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "unroll": _note("unroll"),
    "vectorize": _note("vectorize"),
    "parallel": _note("parallel"),
    "bind": _bind,
    "compute_at": _at,
    "compute_inline": lambda draw, schedule: _stage(draw, schedule).compute_inline(),
    "cache_read": _read,
    "cache_write": _write,
    "rfactor": _factor,
    "double_buffer": _double,
    "tiles": _tiles,
    "storage_align": _align,
    "prefetch": _prefetch,
    "create_group": _group,
    "env_threads": _threads,
    "tensorize": _tensorize,
    "rolling_buffer": _rolling,
    "tile": _tile,
    "pragma": _pragma,
    "set_scope": _scope,
    "compute_root": lambda draw, schedule: _stage(draw, schedule).compute_root(),
}


def replays(schedule: te.Schedule) -> list[te.Schedule]:
    """The schedules that its trace gives, as JSON and as Python. AssertionError where these leave another trace."""
    fresh = te.create_schedule(list(schedule.outputs))
    fresh.intrinsics, fresh.variables = dict(schedule.intrinsics), dict(schedule.variables)
    names: dict = {}
    exec(schedule.trace.as_python(), names)  # noqa: S102 - what is to be shown is that it runs
    names["apply_trace"](fresh)
    made = [schedule.replayed(te.Trace.from_json(schedule.trace.to_json())), fresh]
    for again in made:
        assert again.trace.to_json() == schedule.trace.to_json(), "the trace of a replay differs"
    return made


def run(seed: int, target: str = "") -> tuple[str, Counter[str]]:
    """One case: "right", or why the schedule has no program. AssertionError when results differ. `target`: what is
    called is the module that is built for it."""
    draw = random.Random(seed)
    made = case(draw)
    arrays = made.arrays(draw)
    plain = [a.copy() for a in arrays]
    plain_schedule = te.create_schedule(made.outputs)
    conditions = _predicate(draw, made)
    set_predicates(plain_schedule, conditions)
    Interpreter(te.lower(plain_schedule, made.args, "plain", target="X2_1204", simple_mode=True).entry_func)(*plain)
    schedule = te.create_schedule(made.outputs)
    before = draw.random() < 0.5
    if before:
        set_predicates(schedule, conditions)
    taken = steps(draw, schedule, depth(draw))
    if not before:
        set_predicates(schedule, conditions)
    taken["set_store_predicate"] += len(conditions)
    try:
        module = te.lower(schedule, made.args, "scheduled", target=target or "X2_1204")
        call = (
            targets.build(module, target=target)
            if target
            else Interpreter(module.entry_func, early=draw.random() < 0.5)
        )
    except te.LowerError as error:
        return error.message, taken
    loops = [
        te.lower(each, made.args, "scheduled", target=target or "X2_1204", simple_mode=True).script()
        for each in (schedule, *replays(schedule))
    ]  # all that the kernel is made of, as text: passes need not run three times
    assert loops[1:] == loops[:1] * 2, "replay differs"
    results = [a.copy() for a in arrays]
    try:
        call(*results)
        for t, a, b in zip(made.args, plain, results, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=t.name)
    except Exception as error:
        raise AssertionError(f"seed {seed}:\n{schedule.trace}\n{module.script()}\n{error}") from error
    return "right", taken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.te.random_schedules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--target", default="", help="build for it and call what is built")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.target:
            os.environ["COMPASS_CACHE_DIR"] = folder  # thousands of libraries that nobody needs again
        return _many(given)


def _many(given: argparse.Namespace) -> int:
    ends: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    wrong = 0
    for seed in range(given.seed, given.seed + given.count):
        try:
            end, steps_taken = run(seed, given.target)
        except Exception as error:  # noqa: BLE001 - every fault is counted and shown
            wrong += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
            continue
        ends[re.sub(r"'[^']*'|\d[\d,]*|:\n.*", "_", end, flags=re.DOTALL)] += 1
        taken += steps_taken
        if (done := seed + 1 - given.seed) % 500 == 0:
            print(f"{done} done, {wrong} wrong", file=sys.stderr, flush=True)
    print(f"{given.count} cases from seed {given.seed}, {wrong} wrong: {dict(ends)}; steps {dict(taken)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

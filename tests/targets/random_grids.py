"""Random blocks scheduled as for CUDA devices (tiles in shared memory that threads fill together, accumulators of a thread,
reductions over threads), run by an emulated device in several orders of threads, against plain loops.

python -m tests.targets.random_grids --seed 0 --count 1000
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from compassc import targets, te, tir
from compassc.analysis.interpret import Interpreter
from compassc.targets.ctext import NoForm
from tests.targets.emulated_cuda import emulated
from tests.te.random_schedules import case
from tests.tir import random_blocks as blocks

REFUSED = (tir.ScheduleError, te.ExpressionTypeError)
ORDERS = 3
TAGS = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


def _bound(draw: random.Random, s: tir.Schedule, name: str) -> tuple[list[int], list[tir.LoopRV]]:
    """Some spatial loops of a block, split and bound: how many threads each has, and the loops over them."""
    block = s.get_block(name)
    loops = s.get_loops(block)
    kinds = dict(zip(s.get(block).vars, s.get(block).kinds))
    plain = [v for v, k in zip(loops, kinds.values()) if k == "spatial"] if len(kinds) == len(loops) else loops
    if len(plain) > 1 and draw.random() < 0.3:
        first = draw.randrange(len(plain) - 1)
        plain[first : first + 2] = [s.fuse(*plain[first : first + 2])]
    chosen = draw.sample(plain, min(len(plain), draw.randint(1, 2)))
    halves = []
    sizes = [draw.choice((2, 3, 4, 8)) for _ in chosen]
    for x, size in zip(chosen, sizes):
        halves.append(s.split(x, [None, size] if draw.random() < 0.7 else [size, None]))
    outer, inner = [h[0] for h in halves], [h[1] for h in halves]
    rest = [x for x in s.get_loops(block) if s.get(x) not in [s.get(y) for y in (*outer, *inner)]]
    s.reorder(*outer, *inner, *rest)
    for x, dim in zip(outer, "xy"):
        if draw.random() < 0.8:
            s.bind(x, f"blockIdx.{dim}")
    for x, tag in zip(inner, TAGS):
        s.bind(x, tag if draw.random() < 0.9 else "vthread")
    return [s.get(x).stop.value for x in inner], inner


def _together(draw: random.Random, s: tir.Schedule, block: tir.BlockRV, keep: int, sizes: list[int]) -> None:
    """The loops of a copy below the outermost `keep`, shared out over the threads of a block."""
    own = s.get_loops(block)[keep:]
    if not own:
        return
    fused = s.fuse(*own) if len(own) > 1 else own[0]
    parts = s.split(fused, [None, *sizes])
    if draw.random() < 0.2:
        s.vectorize(s.split(parts[0], [None, 2])[1])
    for x, tag in zip(parts[1:], TAGS):
        s.bind(x, tag)


def _tried(draw: random.Random, s: tir.Schedule, step: Callable[[random.Random, tir.Schedule], None]) -> tir.Schedule:
    """The schedule with a step, or without it where it is refused."""
    made = s.copy()
    try:
        step(draw, made)
    except REFUSED:
        return s
    return made


def grid(draw: random.Random, s: tir.Schedule) -> tir.Schedule:
    """One block as a kernel."""
    name = draw.choice(list(s.tree("main").blocks))
    block = s.get(s.get_block(name))
    found: list[tuple[list[int], tir.LoopRV, list[tir.LoopRV]]] = []

    def tiles(draw: random.Random, s: tir.Schedule) -> None:
        written = (
            s.cache_write(s.get_block(name), 0, draw.choice(("local", "local", "shared")))
            if draw.random() < 0.5
            else None
        )
        sizes, threads = _bound(draw, s, name)
        inner = s.get_loops(s.get_block(name))
        inner = inner[[s.get(x) for x in inner].index(s.get(threads[-1])) + 1 :]
        if inner and draw.random() < 0.6:
            inner = [*s.split(inner[0], [None, draw.choice((2, 4))]), *inner[1:]]
        if written is not None:
            s.reverse_compute_at(written, draw.choice(threads))
        found.append((sizes, draw.choice([*threads, *inner[:1]]), inner))

    made = _tried(draw, s, tiles)
    if made is s:
        return s
    sizes, place, inner = found[0]

    def copied(draw: random.Random, s: tir.Schedule) -> None:
        copy = s.cache_read(s.get_block(name), i, draw.choice(("shared", "shared", "shared", "local", "global")))
        s.compute_at(copy, place)
        if draw.random() < 0.8:
            around = [s.get(x) for x in s.get_loops(copy)]
            _together(draw, s, copy, around.index(s.get(place)) + 1, sizes)

    def moved(draw: random.Random, s: tir.Schedule) -> None:
        other = draw.choice(s.get_producers(s.get_block(name)))
        s.compute_at(other, place)
        s.set_scope(other, 0, draw.choice(("shared", "local", "global")))

    for i in range(len(block.reads)):
        if draw.random() < 0.6:
            made = _tried(draw, made, copied)
    if made.get_producers(name) and draw.random() < 0.5:
        made = _tried(draw, made, moved)
    if block.init and inner and draw.random() < 0.2:
        made = _tried(draw, made, lambda draw, s: s.bind(inner[-1], draw.choice(TAGS)))
    return made


def run(seed: int) -> tuple[str, bool]:
    """One case: "right" or why it has no program, and whether threads meet. AssertionError when results differ."""
    draw = random.Random(seed)
    made = case(draw, statements=False)
    arrays = made.arrays(draw)
    plain = [a.copy() for a in arrays]
    reference = te.lower(te.create_schedule(made.outputs), made.args, "plain", target="X2_1204", simple_mode=True)
    Interpreter(reference.entry_func)(*plain)
    s = tir.Schedule(blocks.function(made), seed=seed + 1)
    for _ in range(draw.randint(1, 3)):
        s = grid(draw, s)
    if draw.random() < 0.3:
        blocks.steps(draw, s, draw.randint(1, 4))
    text = ""
    try:
        module = targets.build(s.mod, target="cuda")
        text = module.get_source().rpartition("rsqrt_float64(x)")[2]
        for _ in range(ORDERS):
            results = [a.copy() for a in arrays]
            module(*results)
            for t, a, b in zip(made.args, plain, results, strict=True):
                np.testing.assert_array_equal(b, a, err_msg=t.name)
    except te.LowerError as error:
        return error.message, False
    except NoForm as error:
        return error.message, False
    except Exception as error:
        raise AssertionError(f"seed {seed}:\n{s.mod.script()}\n{text}\n{error!r}") from error
    return "right", "__syncthreads" in text


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.targets.random_grids")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, emulated(Path(folder)):
        met: Counter[bool] = Counter()

        def one(seed: int) -> tuple[str, Counter[str]]:
            end, meets = run(seed)
            met[meets] += 1
            return end, Counter()

        status = blocks.counted(given.seed, given.count, one)
        print(f"{met[True]} with barriers")
        return status


if __name__ == "__main__":
    sys.exit(main())

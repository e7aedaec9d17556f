"""Ranges of seeds: which programs fail, and one failing program made small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from .generate import generate
from .minimise import minimise
from .report import kernel_file
from .run import Device, Outcome, run_batch
from .tree import Program

BATCH = 50


def failures(seed: int, count: int, progress: Callable[[int], None] | None = None) -> Iterator[tuple[int, Outcome]]:
    """The programs of a range that fail, with how. `progress` is told how many are done."""
    device = Device()
    try:
        for first in range(seed, seed + count, BATCH):
            if progress is not None:
                progress(first - seed)
            seeds = range(first, min(first + BATCH, seed + count))
            for own, outcome in zip(seeds, run_batch([generate(s) for s in seeds], device)):
                if outcome.kind:
                    yield own, outcome
    finally:
        device.close()


def check(seed: int, seconds: float = 60.0) -> str:
    """The report of a failing program: how it fails and its text made small; empty when it does not fail."""
    device = Device()
    try:
        program = generate(seed)
        kind = run_batch([program], device)[0].kind
        if not kind:
            return ""

        def still_fails(candidate: Program) -> bool:
            return run_batch([candidate], device)[0].kind == kind

        minimise(program, still_fails, seconds)
        outcome = run_batch([program], device)[0]
        return f"# seed {seed}: {kind}\n" + _commented(outcome.detail) + kernel_file(program)
    finally:
        device.close()


def part(shared: tuple[int, float], seeds: tuple[int, int]) -> tuple[list[str], Counter[str]]:
    """A part of a campaign, for a worker: what is to be printed of the `(first, count)` seeds, and the kinds of failures.
    `shared`: how many failing programs to make small, and the seconds for each."""
    keep, seconds = shared
    texts: list[str] = []
    kinds = Counter[str]()
    for seed, outcome in failures(*seeds):
        kinds[outcome.kind] += 1
        texts.append(check(seed, seconds) if kinds.total() <= keep else f"# seed {seed}: {outcome.kind}")
    return texts, kinds


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())

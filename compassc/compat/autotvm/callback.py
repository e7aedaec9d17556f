"""What tuners call after each batch: `f(tuner, inputs, results)`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

import numpy as np

from compass_core.arrays import Array

from . import record
from .measure import MeasureInput, MeasureResult

if TYPE_CHECKING:
    from .tuner import Tuner

Callback = Callable[["Tuner", Sequence[MeasureInput], Sequence[MeasureResult]], None]
SI = {"P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "K": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def si_scale(prefix: str) -> float:
    """The number that a prefix of units stands for. ValueError where it is none."""
    if prefix not in SI:
        raise ValueError(f"Invalid SI prefix: {prefix}")
    return SI[prefix]


def log_to_file(file_out: str | PathLike[str] | TextIO, protocol: str = "json") -> Callback:
    """Appends records to a file, or writes them to an open one."""

    def called(tuner: Tuner, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        lines = "".join(record.encode(i, r, protocol) + "\n" for i, r in zip(inputs, results))
        if not isinstance(file_out, (str, PathLike)):
            file_out.write(lines)
            return
        Path(file_out).parent.mkdir(parents=True, exist_ok=True)
        with Path(file_out).open("a", encoding="utf-8") as stream:
            stream.write(lines)

    return called


class Database(Protocol):
    """What keeps measurements."""

    def save(self, inp: MeasureInput, result: MeasureResult) -> object:
        """Keep one."""


def log_to_database(db: Database) -> Callback:
    """Saves records in a database, by `db.save(input, result)`."""

    def called(tuner: Tuner, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            db.save(inp, result)

    return called


class Monitor:
    """Keeps the score of each trial, in operations a second, and when it was."""

    def __init__(self) -> None:
        self.scores: list[float] = []
        self.timestamps: list[float] = []

    def __call__(self, tuner: Tuner, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, result in zip(inputs, results):
            good = result.error_no == 0
            self.scores.append((inp.task.flop or 0.0) / float(np.mean(result.costs)) if good else 0.0)
            self.timestamps.append(result.timestamp)

    def reset(self) -> None:
        """Forgets all."""
        self.__init__()  # type: ignore[misc]

    def trial_scores(self) -> Array:
        """The scores in order."""
        return np.array(self.scores)

    def trial_timestamps(self) -> Array:
        """When each was measured."""
        return np.array(self.timestamps)


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """Shows on the error output how far a search is."""
    scale, start, state = si_scale(si_prefix), time.time(), {"best": 0.0, "count": 0}

    def called(tuner: Tuner, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        current = 0.0
        for inp, result in zip(inputs, results):
            state["count"] += 1
            if result.error_no == 0:
                current = (inp.task.flop or 0.0) / float(np.mean(result.costs))
                state["best"] = max(state["best"], current)
        done = state["count"] >= total
        sys.stdout.write(
            f"\r{prefix} Current/Best: {current / scale:7.2f}/{state['best'] / scale:7.2f} {si_prefix}FLOPS"
            f" | Progress: ({state['count']}/{total}) | {time.time() - start:.2f} s{' Done.' + chr(10) if done else ''}"
        )
        sys.stdout.flush()

    return called

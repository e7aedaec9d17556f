"""Measuring modules by the clock: each is built into a file here, and run from it in a process that can be ended."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime import device, get_global_func, load_module
from compass_runtime.ndarray import array, empty
from compassc.cluster import Lost
from compassc.cluster.timed import TimedProcess

Argument = Array | tuple[Sequence[int], str]
"""An array that is given, or `(shape, dtype)` of one that is filled at random."""


@dataclass(frozen=True)
class Plan:
    """How a module is timed: `repeat` groups of `number` calls, `number` growing until a group takes `min_repeat_ms`; after
    `timeout` seconds it is given up; then a rest of `cooldown` seconds."""

    number: int = 4
    repeat: int = 3
    min_repeat_ms: float = 0
    timeout: float = 10
    cooldown: float = 0.0


@dataclass(frozen=True)
class Timed:
    """The seconds of a call in each group, or what was the matter: `timeout`, `crash` (the process has ended) or `run`, with
    words."""

    seconds: tuple[float, ...] = ()
    error: str = ""
    message: str = ""


@dataclass(frozen=True)
class Built:
    """A module in a file, or what was the matter: `instantiate`, `build` or `timeout`, with words; and what it took."""

    path: str = ""
    error: str = ""
    message: str = ""
    seconds: float = 0.0
    exception: Exception | None = None


class Bench:
    """A folder of built modules, and the process that runs them."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="compassc-")
        self._process = TimedProcess()
        self._count = 0

    def build(self, made: Callable[[], Any], timeout: float) -> Built:
        """The file of the module that `made` gives."""
        start = time.perf_counter()
        try:
            module = made()
            self._count += 1
            path = str(Path(self._folder.name, f"candidate{self._count}.so"))
            module.export_library(path)
        except Exception as error:  # noqa: BLE001 - a template is somebody's Python: what it raises is about this candidate
            kind = "build" if isinstance(error, CompassError) else "instantiate"
            words = error.message if isinstance(error, CompassError) else f"{type(error).__name__}: {error}"
            return Built("", kind, words, time.perf_counter() - start, error)
        took = time.perf_counter() - start
        if took > timeout:
            return Built("", "timeout", f"the build takes more than {timeout:g} seconds", took)
        return Built(path, seconds=took)

    def run(self, path: str, device: str, arguments: Sequence[Argument], plan: Plan) -> Timed:
        """What a built module takes on a device."""
        part = path, device, list(arguments), (plan.number, plan.repeat, plan.min_repeat_ms)
        try:
            found = self._process.call(timed_calls, None, part, plan.timeout)
        except TimeoutError as error:
            return Timed((), "timeout", str(error))
        except Exception as error:  # noqa: BLE001 - what a candidate raises is about this candidate
            return Timed((), "run", str(error))
        finally:
            time.sleep(plan.cooldown)
        return Timed((), "crash", found.message) if isinstance(found, Lost) else Timed(tuple(found))

    def close(self) -> None:
        """Ends the process and removes the files."""
        self._process.close()
        self._folder.cleanup()

    def __del__(self) -> None:
        self.close()


def timed_calls(shared: None, part: tuple[str, str, list[Argument], tuple[int, int, float]]) -> list[float]:
    """What calls of the module in a file take, in seconds, with arguments that are filled at random."""
    import numpy as np

    path, kind, described, (number, repeat, least) = part
    dev, module = device(kind, 0), load_module(path)
    fill = get_global_func("tvm.contrib.random.random_fill")
    given = []
    for one in described:
        if isinstance(one, np.ndarray):
            given.append(array(one, dev))
            continue
        shape, dtype = one
        made = empty(shape, dtype, dev)
        fill(made)
        given.append(made)
    timer = module.time_evaluator(module.entry_name, dev, number=number, repeat=repeat, min_repeat_ms=least)
    return list(timer(*given).results)

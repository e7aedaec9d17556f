"""Processes of this machine, without Dask."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

from compassc.cluster import ATTEMPTS, Cluster, Function, Lost, call, identity, outcome


def _deaf() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def processes(jobs: int) -> Iterator[Cluster]:
    """`jobs` processes that end with the block."""
    made = _Processes(jobs)
    try:
        yield made
    finally:
        made.close()


class _Processes:
    """A pool that is made anew when one of its processes ends. Nobody knows then whose part ended it: the parts that were
    under way are done again one at a time."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.jobs, multiprocessing.get_context("spawn"), _deaf)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, function: Function, shared: Any, parts: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        given: dict[int, Any] = {}
        waiting: dict[Future[tuple[str, Any]], int] = {}
        suspects: list[int] = []
        for number, part in enumerate(parts):
            given[number] = part
            try:
                waiting[self._submit(function, shared, part)] = number
            except BrokenProcessPool:
                suspects.append(number)
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                number = waiting.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    suspects.append(number)
                else:
                    yield number, outcome(future.result(), "process")
        for number in sorted(suspects):
            yield number, self._alone(function, shared, given[number])

    def _submit(self, function: Function, shared: Any, part: Any) -> Future[tuple[str, Any]]:
        return self._pool.submit(call, identity(), function, shared, part)

    def _alone(self, function: Function, shared: Any, part: Any) -> Any:
        for _ in range(ATTEMPTS):
            self.close()
            self._pool = self._new_pool()
            try:
                return outcome(self._submit(function, shared, part).result(), "process")
            except BrokenProcessPool as error:
                last = str(error)
        return Lost(last)

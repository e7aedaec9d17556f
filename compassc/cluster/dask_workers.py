"""The workers of a Dask scheduler that somebody started, on this machine or on others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from compass_core.errors import CompassError
from compassc.cluster import ATTEMPTS, Cluster, Lost, Q, R, S, call, identity, outcome

WAIT_SECONDS = 30


@contextmanager
def dask_workers(scheduler: str) -> Iterator[Cluster]:
    """The workers of the scheduler at an address."""
    try:
        from distributed import Client
    except ImportError:
        raise CompassError(
            "work on other machines needs the package distributed",
            code="missing-package",
            help='pip install "compassc[distributed]"',
        ) from None
    with ExitStack() as stack:
        try:
            client = stack.enter_context(Client(scheduler, timeout=WAIT_SECONDS))
            client.wait_for_workers(1, timeout=WAIT_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            raise CompassError(
                f"no Dask scheduler with workers answers at {scheduler}: {error}",
                code="no-scheduler",
                help="dask scheduler; dask worker tcp://HOST:8786",
            ) from None
        yield _Workers(client, len(client.scheduler_info()["workers"]))


class _Workers:
    """The scheduler gives the parts of a lost worker to others by itself; what it cannot do again is submitted anew."""

    def __init__(self, client: Any, jobs: int) -> None:
        self._client, self.jobs = client, jobs
        self._sent: tuple[object, Any] | None = None
        """What was shared last, and where the workers have it."""

    def run(self, function: Callable[[S, Q], R], shared: S, parts: Iterable[Q]) -> Iterator[tuple[int, R | Lost]]:
        from distributed import as_completed

        if self._sent is None or self._sent[0] is not shared:
            self._sent = shared, self._send(shared)
        sent = self._sent[1]
        given: dict[int, Q] = {}
        numbers: dict[str, int] = {}
        futures = as_completed()

        def submit(number: int) -> None:
            future = self._client.submit(call, identity(), function, sent, given[number], pure=False)
            numbers[future.key] = number
            futures.add(future)

        tried: dict[int, int] = {}
        try:
            for number, part in enumerate(parts):
                given[number] = part
                submit(number)
            for future in futures:
                number = numbers.pop(future.key)
                error = self._lost(future)
                if error is None:
                    yield number, outcome(self._result(future), "of the scheduler")
                    continue
                tried[number] = tried.get(number, 0) + 1
                if tried[number] >= ATTEMPTS or error.startswith("KilledWorker"):
                    yield number, Lost(error)
                    continue
                sent = self._send(shared)
                self._sent = shared, sent
                submit(number)
        finally:
            self._client.cancel([f for f in list(futures.futures)], force=True)

    def _send(self, shared: object) -> Any:
        return self._client.scatter(shared, broadcast=True, hash=False)

    @staticmethod
    def _lost(future: Any) -> str | None:
        """Why a part has no outcome, where it is its worker's end or that of what it shares."""
        from distributed import KilledWorker

        if future.status == "cancelled" or future.status == "lost":
            status: str = future.status
            return status
        error = future.exception() if future.status == "error" else None
        return f"KilledWorker: {error}" if isinstance(error, KilledWorker) else None

    @staticmethod
    def _result(future: Any) -> Any:
        try:
            return future.result()
        except ModuleNotFoundError as error:
            raise CompassError(
                f"a worker of the scheduler does not have what it needs: {error}",
                code="other-version",
                help="install the same version of compassc on all machines",
            ) from None

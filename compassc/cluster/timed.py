"""One process for work that may take too long, or end it."""

from __future__ import annotations

from collections.abc import Callable

from compassc.cluster import Lost, Q, R, S, identity
from compassc.cluster.processes import Worker, outcome_of, packed


class TimedProcess:
    """A process that does one part after another; it is started when it is first needed, and anew after one that took too
    long or ended it."""

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def call(self, function: Callable[[S, Q], R], shared: S, part: Q, seconds: float) -> R | Lost:
        """The outcome of a part; TimeoutError after so many seconds, `Lost` where the process has ended. What the function
        raises is raised here."""
        started = self._worker is not None
        worker = self._worker = self._worker or Worker()
        if not started:  # its imports are no part of the time
            worker.send(packed(None), packed((identity(), _nothing, None)))
            worker.answer()
        worker.send(packed(shared), packed((identity(), function, part)))
        if not worker.link.poll(seconds):
            self.close()
            raise TimeoutError(f"it takes more than {seconds:g} seconds")
        answer = worker.answer()
        if answer is None:
            self._worker = None
            return Lost(worker.close())
        found: R = outcome_of(answer)
        return found

    def close(self) -> None:
        """Ends the process."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()


def _nothing(shared: object, part: object) -> None:
    """A part that takes no time."""

"""What is known: the records that builds take programs from.

They come from files named by `apply_history_best` (also `--tuned FILE`), from the folder COMPASS_TUNING, and from the
package. Of a workload the record of least cost counts, wherever it is; records of another version of the toolchain are
not applied, for their costs are of other code.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

from compass_core import switches
from compass_core.errors import CompassError, render
from compassc.settings.choices import took
from compassc.tuning import records
from compassc.tuning.records import Record
from compassc.tuning.space import Candidate, Space, key_of
from compassc.tuning.task import Workload, toolchain_version

_files: ContextVar[tuple[Path, ...]] = ContextVar("files", default=())
T = TypeVar("T")


class History:
    """Records to look up. Those of another version are left out, and counted."""

    def __init__(self, found: Iterable[Record]) -> None:
        self._ranked: dict[tuple[str, str], list[Record]] = {}
        self._families: dict[str, list[Record]] = {}
        self._names: set[str] = set()
        self._told: set[tuple[str, ...]] = set()
        self.others = 0
        """Records of other versions."""
        for record in found:
            if record.workload.version != toolchain_version():
                self.others += 1
            elif record.cost is not None:
                self._ranked.setdefault((record.workload.key, record.metric), []).append(record)
        for ranked in self._ranked.values():
            ranked.sort(key=lambda r: r.cost or 0.0)
            self._families.setdefault(ranked[0].workload.family, []).append(ranked[0])
            self._names.add(ranked[0].workload.name)

    def __bool__(self) -> bool:
        return bool(self._ranked)

    def has_any_of(self, name: str) -> bool:
        """Whether there is a record of a workload of that name, whatever its sizes."""
        return name in self._names

    def ranked(self, workload: Workload, metric: str = "cycles") -> Sequence[Record]:
        """The records of a workload that have a cost, the least first."""
        return self._ranked.get((workload.key, metric), ())

    def taken(self, workload: Workload, made: Callable[[Record], T | None]) -> T | None:
        """What `made` gives for the best record of a workload for which it gives something; None where there is none.
        Records of cycles count, without such those of seconds. That one is taken is noted for the build; that a better one
        cannot be used is logged, once."""
        for record in self.ranked(workload) or self.ranked(workload, "seconds"):
            try:
                found, why = made(record), "its space has no such candidate any more"
            except CompassError as error:  # of another version of the space
                found, why = None, error.message
            if found is not None:
                took(
                    records.workload_text(record), f"{records.candidate_text(record)} ({record.cost:g} {record.metric})"
                )
                return found
            if record.identity not in self._told:
                self._told.add(record.identity)
                about = f"{records.workload_text(record)} ({records.candidate_text(record)}, {record.cost:g} {record.metric})"
                logging.getLogger("Compass").warning("the best record of %s is not used: %s", about, why)
        return None

    def best(self, workload: Workload, space: Space | None = None) -> Record | None:
        """The best record of a workload whose candidate is one of the space's; None where there is none. See `taken`."""
        return self.taken(workload, lambda r: r if space is None or r.candidate in space else None)

    def family(self, workload: Workload, metric: str = "cycles") -> list[Record]:
        """The best records of workloads that differ in sizes alone."""
        return [r for r in self._families.get(workload.family, ()) if r.metric == metric]

    def usual(self, workload: Workload, space: Space | None = None) -> Candidate | None:
        """For sizes that are not known: the candidate that is best for most of the sizes on record, of several the one of
        the largest size; None without records."""
        family = self.family(workload) or self.family(workload, "seconds")
        known = [r for r in family if space is None or r.candidate in space]
        votes = Counter(key_of(r.candidate) for r in known)
        ranked = sorted(known, key=lambda r: (votes[key_of(r.candidate)], r.cost or 0))
        if not ranked:
            return None

        took(
            f"{workload.name} of other sizes",
            f"{records.candidate_text(ranked[-1])} (best for {votes.most_common(1)[0][1]} of {len(known)})",
        )
        return ranked[-1].candidate


@contextmanager
def apply_history_best(*paths: str | Path) -> Iterator[None]:
    """Within it, builds and calls of kernels take the best programs of these record files, too. CompassError when one
    cannot be read; its lines that are no records are logged and left out."""
    for path in paths:
        _loaded(_state(Path(path)))
    token = _files.set((*_files.get(), *map(Path, paths)))
    try:
        yield
    finally:
        _files.reset(token)


def history() -> History:
    """All that is known here and now."""
    return _history(tuple(map(_state, sources())))


def known_records(besides: Path | None = None) -> list[Record]:
    """Every record that builds take, but those of one file."""
    own = None if besides is None else besides.resolve()
    return [record for path in sources() if path.resolve() != own for record in _loaded(_state(path))]


def sources() -> list[Path]:
    """The files that records are taken from."""
    folder = switches.TUNING.get()
    own = sorted(Path(folder).glob("*" + records.SUFFIX)) if folder else []
    return [*_files.get(), *own, *_shipped()]


def has_others() -> bool:
    """Whether records are taken from other places than the package, too."""
    return bool(_files.get() or switches.TUNING.get())


@cache
def _shipped() -> Sequence[Path]:
    """The package's own files."""
    return sorted((Path(__file__).parent / "shipped").glob("*" + records.SUFFIX))


def database_file() -> Path | None:
    """Where results go when nothing else is said: into the folder COMPASS_TUNING; None without one."""
    folder = switches.TUNING.get()
    return Path(folder) / ("records" + records.SUFFIX) if folder else None


State = tuple[Path, int, int]
"""A file as it is now: when it was written, and its size."""


def _state(path: Path) -> State:
    try:
        status = path.stat()
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror}", code="open-file-fail") from None
    return path, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=64)
def _loaded(state: State) -> Sequence[Record]:
    loaded = records.read(state[0])
    for problem in loaded.problems:
        logging.getLogger("Compass").warning("%s", render(problem))
    return loaded.records


@lru_cache(maxsize=8)
def _history(states: tuple[State, ...]) -> History:
    return History(record for state in states for record in _loaded(state))

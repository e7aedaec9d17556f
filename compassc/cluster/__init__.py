"""Long jobs on several processes, or on the workers of a Dask scheduler (the package `distributed`): one door for all of them.

A job is a function of a module, something that all its parts share, and the parts. What goes to workers are pickled data and the
name of the function, never code: a worker has the same packages, of the same version, or its work is refused. Parts whose
worker is lost are done again by others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Protocol, TypeVar

from compass_core import VERSION
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

S = TypeVar("S")
"""What all parts share."""
Q = TypeVar("Q")
"""A part."""
R = TypeVar("R")
"""The outcome of a function of a module, called with what all parts share and a part."""
ATTEMPTS = 3
"""So many workers may be lost with a part before the part counts as what ends them."""


@dataclass(frozen=True)
class Lost:
    """The outcome of a part with which every worker was lost."""

    message: str


class Cluster(Protocol):
    """Workers. `jobs`: how many there are, as far as is known."""

    jobs: int

    def run(self, function: Callable[[S, Q], R], shared: S, parts: Iterable[Q]) -> Iterator[tuple[int, R | Lost]]:
        """The outcomes with the numbers of their parts, as they come. What the function raises is raised here."""


class Here:
    """This process."""

    jobs = 1

    def run(self, function: Callable[[S, Q], R], shared: S, parts: Iterable[Q]) -> Iterator[tuple[int, R | Lost]]:
        for number, part in enumerate(parts):
            yield number, function(shared, part)


@contextmanager
def open_cluster(jobs: int = 1, scheduler: str | None = None) -> Iterator[Cluster]:
    """Workers until the end of the block: of a Dask scheduler at an address such as `tcp://host:8786`; else `jobs` processes of
    this machine; else this process.

    CompassError when there is no such scheduler, it has no workers, or the package for it is missing.
    """
    with _opened(jobs, scheduler) as cluster:
        yield cluster


def _opened(jobs: int, scheduler: str | None) -> AbstractContextManager[Cluster]:
    if jobs <= 1 and scheduler is None:
        return _here()
    if scheduler is not None:
        from compassc.cluster.dask_workers import dask_workers

        return dask_workers(scheduler)
    from compassc.cluster.processes import processes

    return processes(jobs)


@contextmanager
def _here() -> Iterator[Cluster]:
    yield Here()


@lru_cache(maxsize=1)
def identity() -> str:
    """What toolchains are told apart by: the version, and a hash of all their sources."""
    from importlib.util import find_spec
    from pathlib import Path

    digest = hashlib.sha256()
    for package in ("compass_core", "compass_runtime", "compass_sim", "compassc"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            root = Path(folder)
            for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".yaml", ".c", ".h")):
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{VERSION}+{digest.hexdigest()[:16]}"


def call(wanted: str, function: Callable[[S, Q], R], shared: S, part: Q) -> tuple[str, R | str]:
    """A part, done by a worker: `("done", outcome)`, or `("other", identity)` where the worker has another toolchain."""
    mine = identity()
    return ("done", function(shared, part)) if mine == wanted else ("other", mine)


def outcome(answer: tuple[str, R], where: str) -> R:
    """The outcome in the answer of a worker. CompassError when it has another toolchain."""
    kind, content = answer
    if kind == "other":
        raise CompassError(
            f"the worker {where} has another toolchain: {content}, here it is {identity()}",
            code="other-version",
            help="install the same version of compassc on all machines",
        )
    return content


def need(parts: Sequence[tuple[int, R | Lost]]) -> list[R]:
    """The outcomes of all parts in order. CompassError when one was lost."""
    found: list[tuple[int, R]] = []
    for number, one in parts:
        if isinstance(one, Lost):
            raise CompassError(f"part {number + 1} ends every worker: {one.message}", code="worker-lost")
        found.append((number, one))
    return [one for _, one in sorted(found, key=lambda part: part[0])]

"""The examinations of `compassc doctor`."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

from compass_core import confine
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.files.cache import Cache
from compass_core.hostcc import clang as clang_finder
from compass_core.hostcc import host
from compass_core.hostcc.command import include_folder
from compass_sim.build import engine_path

PACKAGES = ("click", "numpy", "PyYAML", "rich", "ml_dtypes", "pyelftools")


@dataclass(frozen=True)
class Finding:
    """One thing looked at: whether it is there, whether it is needed, and what to do when it is not."""

    what: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = True


def examine(clang: str | None) -> list[Finding]:
    """All findings, in the order a build needs things. `clang` is what `--clang` gave."""
    return [
        Finding("python", True, platform.python_version()),
        *map(_package, PACKAGES),
        *_clangs(clang),
        _headers(),
        _engine(),
        _confinement(),
        _cache(),
        Finding("host", True, f"{host.triple()}, {host.current().features or 'no feature list'}"),
    ]


def _package(name: str) -> Finding:
    try:
        return Finding(f"package {name}", True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(f"package {name}", False, "not installed", f"pip install {name}")


def _clangs(option: str | None) -> Iterator[Finding]:
    """The clang that is used, then the others there are."""
    used = None
    others = []
    for candidate in clang_finder.candidates(option):
        if used is None and not candidate.problem:
            used = candidate
        else:
            others.append(candidate)
    if used is None:
        yield Finding("clang", False, "none that works", clang_finder.HOW_TO_GET)
    else:
        yield Finding("clang", True, f"{used.path} {'.'.join(map(str, used.version))} ({used.origin})")
    for other in others:
        detail = f"{other.path} ({other.origin}): {other.problem or 'not used'}"
        yield Finding("another clang", not other.problem, detail, needed=False)


def _headers() -> Finding:
    try:
        return Finding("C headers", True, str(include_folder()))
    except CompassError as error:
        return Finding("C headers", False, error.message, error.help)


def _engine() -> Finding:
    """The simulator engine: a library that `python -m compass_sim.build` makes."""
    path = engine_path()
    if path.is_file():
        return Finding("simulator engine", True, str(path))
    return Finding("simulator engine", False, f"{path} is not built", "python -m compass_sim.build")


def _confinement() -> Finding:
    """By what the compiler is kept from files when it reads a text from an aipu.bin."""
    means = confine.available()
    return Finding(
        "confined compiler",
        bool(means),
        means or "this host has neither Landlock nor user namespaces",
        "foreign files need `compass-run --trust` to be checked or profiled",
        needed=False,
    )


def _cache() -> Finding:
    cache = Cache()
    try:
        cache.put("doctor", "0" * 64, b"")
    except CompassError as error:
        return Finding("cache folder", False, error.message, error.help)
    return Finding("cache folder", True, str(cache.root))

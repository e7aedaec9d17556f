"""C text to a shared library of this machine, kept in the compile cache."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.errors import CompassError, Note, ToolchainError
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import host
from compass_core.hostcc.clang import find_clang
from compass_runtime.host_module import num_threads
from compass_sim.engine import compile_and_link, compile_object, source_folder
from compassc.targets.ctext import NoForm
from compassc.targets.kind import TargetError

if TYPE_CHECKING:
    from compassc.targets.target import Target

_FLAGS = (
    "-std=gnu11",
    "-fPIC",
    "-fvisibility=hidden",
    "-fwrapv",
    "-fno-strict-float-cast-overflow",
    "-ffp-contract=fast",  # a product and a sum are one instruction where the processor has it
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-stack-protector",
    "-Wno-everything",
)
_CALLS = ("-fhosted", *(f"-Werror={kind}" for kind in ("incompatible-library-redeclaration",
          "incompatible-pointer-types", "int-conversion", "implicit-function-declaration")))  # fmt: skip
"""Flags where functions of C are called: those of the C library that clang knows have their own types."""
_X86_ONLY = ("-mno-gfni",)  # clang 23 shifts bytes of a selected constant wrongly with it
_SMALL_FLOATS = re.compile(r"\bb?float16\b(?!;)|\bhalf\b|\bbfloat\b")
_LINK = ("-shared", "-z", "now", "-z", "relro", "-z", "noexecstack", "-s")


@dataclass(frozen=True)
class _Jobs:
    """Libraries that are being compiled, and the threads that wait for clang."""

    pool: ThreadPoolExecutor
    begun: list[Future[bytes]] = field(default_factory=list)


_jobs: ContextVar[_Jobs | None] = ContextVar("jobs", default=None)


@contextmanager
def side_by_side() -> Iterator[None]:
    """Within, libraries are compiled while further ones are made, as many at a time as there are processors. At the end all are
    there, or the error of the first that has one is raised."""
    with ThreadPoolExecutor(num_threads(), thread_name_prefix="compassc-clang") as pool:
        jobs = _Jobs(pool)
        token = _jobs.set(jobs)
        try:
            yield
            for job in jobs.begun:
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            _jobs.reset(token)


def begun(compile_it: Callable[[], bytes]) -> Callable[[], bytes]:
    """What gives the content of a library that is compiled now, or within `side_by_side` beside others."""
    jobs = _jobs.get()
    if jobs is None:
        content = compile_it()
        return lambda: content
    jobs.begun.append(jobs.pool.submit(copy_context().run, compile_it))
    return jobs.begun[-1].result


def compiled(sources: dict[str, str], parallel: bool, target: Target, calls: Sequence[str] = ()) -> bytes:
    """The library of texts of C (`.c`) and LLVM (`.ll`) by file name; with threads where it has parallel loops. `calls`:
    the functions of C that they call. NoForm where these, or what was brought in with pragmas, are not as they are called."""
    shared = [Path(__file__).with_name("pool.c")] if parallel else []
    if any(map(_SMALL_FLOATS.search, sources.values())):  # which not every processor has conversions for
        shared.append(source_folder() / "float16.c")
    flags = [*flags_of(target), *(_CALLS if calls else ())]
    cache = Cache()
    link = (*_LINK, "-z", "defs") if calls else _LINK
    machine_code = (*flags, find_clang().identity, host.current().features)
    try:
        objects = {path.with_suffix(".o").name: _object(cache, path, flags, machine_code) for path in shared}
        key = key_of("host-library", *sources, *sources.values(), *objects.values(), *link, *machine_code)
        given = {**{name: text.encode() for name, text in sources.items()}, **objects}
        found = cache.get("host", key) or cache.put("host", key, lambda output: _compile(given, flags, link, output))
    except ToolchainError as error:
        raise _refused(error, calls) or _of_processor(error, target) from error
    return found.read_bytes()


def flags_of(target: Target) -> list[str]:
    """The options of clang for a target."""
    from platform import machine

    cpu = host.march() if target.attrs["mcpu"] == "native" else target.attrs["mcpu"]
    only = _X86_ONLY if machine() in ("x86_64", "AMD64") else ()
    return [*_FLAGS, f"-O{target.attrs['opt-level']}", f"-march={cpu}", *only]


def _refused(error: ToolchainError, calls: Sequence[str]) -> CompassError | None:
    """The error of a build, told as one of the functions that are called, where it is about these."""
    said = [line for line in map(str, error.notes) if "error:" in line]
    if not calls or not said or any("target CPU" in line for line in said):
        return None
    found = NoForm(
        f"the functions of C that are called ({', '.join(calls)}) or the texts that pragmas bring do not go with the kernel",
        "each has to exist, in the C library or a pragma, and to take what it is given",
    )
    found.notes = tuple(map(Note, said))
    return found


def _of_processor(error: ToolchainError, target: Target) -> CompassError:
    """The error of a build, told as one of the option `mcpu` where clang does not know that processor."""
    said = [line for line in map(str, error.notes) if "unknown target CPU" in line or "valid target CPU" in line]
    if not said:
        return error
    return TargetError(
        f"clang knows no processor '{target.mcpu}' for option 'mcpu' of '{target.kind.name}'",
        code="target-option",
        notes=tuple(said),
        help="native is this machine",
    )


def _object(cache: Cache, source: Path, flags: list[str], machine_code: Sequence[str]) -> bytes:
    """The object of a source that libraries share, with its header."""
    texts = [p.read_bytes() for p in (source, source.with_suffix(".h")) if p.exists()]
    key = key_of("host-object", *texts, *machine_code)
    found = cache.get("host", key) or cache.put("host", key, lambda output: compile_object(source, output, flags))
    return found.read_bytes()


def _compile(given: dict[str, bytes], flags: list[str], link: Sequence[str], output: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="compassc-host-") as folder:
        paths = [Path(folder, name) for name in given]
        for path in paths:
            path.write_bytes(given[path.name])
        compile_and_link(paths, output, flags, link)

"""C text to a shared library of this machine, kept in the compile cache."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import field
from functools import cached_property, partial
from pathlib import Path
from platform import machine
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, ToolchainError
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import host
from compass_core.hostcc.clang import find_clang
from compass_sim.engine import compile_and_link, compile_object, compile_objects, source_folder
from compassc.targets.ctext import NoForm
from compassc.targets.kind import TargetError

if TYPE_CHECKING:
    from compassc.targets.target import Target

_FLAGS = (
    "-std=gnu11",
    "-fPIC",
    "-g0",
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
LINK = ("-shared", "-z", "now", "-z", "relro", "-z", "noexecstack", "-s")
_KERNEL = "kernel.c"
TOGETHER = 4
"""Kernels for one process of clang: starting it costs more than compiling a small one, yet all processors are to be busy."""


@dataclass(frozen=True)
class Library:
    """What a library is made of: texts of C (`.c`) and LLVM (`.ll`) by file name, threads where it has parallel loops, and
    `calls`, the functions of C that the texts call."""

    sources: dict[str, str]
    parallel: bool
    target: Target
    calls: Sequence[str] = ()

    @cached_property
    def flags(self) -> tuple[str, ...]:
        return (*flags_of(self.target), *(_CALLS if self.calls else ()))

    @cached_property
    def link(self) -> tuple[str, ...]:
        return (*LINK, "-z", "defs") if self.calls else LINK

    @cached_property
    def shared(self) -> dict[str, bytes]:
        """The objects that it shares with others."""
        paths = [Path(__file__).with_name("pool.c")] if self.parallel else []
        if any(map(_SMALL_FLOATS.search, self.sources.values())):  # which not every processor has conversions for
            paths.append(source_folder() / "float16.c")
        return {path.with_suffix(".o").name: _object(path, self.flags) for path in paths}

    @cached_property
    def key(self) -> str:
        texts = (*self.sources, *self.sources.values())
        return key_of("host-library", *texts, *self.shared.values(), *self.link, *_machine_code(self.flags))

    def compiled(self, kernel: bytes | None = None) -> bytes:
        """The library. `kernel`: the object of its only text, where there is one already. NoForm where the functions that it
        calls, or what was brought in with pragmas, are not as they are called."""
        texts = {name: text.encode() for name, text in self.sources.items()} if kernel is None else {"kernel.o": kernel}
        cache = Cache()
        try:
            made = partial(compile_texts, {**texts, **self.shared}, self.flags, self.link)
            found = cache.get("host", self.key) or cache.put("host", self.key, made)
        except ToolchainError as error:
            raise _refused(error, self.calls) or _of_processor(error, self.target) from error
        return found.read_bytes()


@dataclass
class _Jobs:
    """Libraries that are being compiled, those that wait for others to be compiled with, and the threads that wait for clang."""

    pool: ThreadPoolExecutor
    begun: list[Future[bytes]] = field(default_factory=list)
    waiting: list[tuple[Library, Future[bytes]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, library: Library) -> Callable[[], bytes]:
        job: Future[bytes] = Future()
        self.begun.append(job)
        with self.lock:
            self.waiting.append((library, job))
        if len(self.waiting) >= TOGETHER:
            self.start(1)

        def content() -> bytes:
            self.start(1)
            return job.result()

        return content

    def start(self, parts: int) -> None:
        """Compile what waits, in at most so many parts."""
        with self.lock:
            jobs, self.waiting = self.waiting, []
        for part in filter(None, (jobs[i::parts] for i in range(parts))):
            self.pool.submit(copy_context().run, _finish, part)

    def give_up(self) -> None:
        self.waiting = []
        for job in self.begun:
            job.cancel()


_jobs: ContextVar[_Jobs | None] = ContextVar("jobs", default=None)


@contextmanager
def side_by_side() -> Iterator[None]:
    """Within, libraries are compiled while further ones are made: `TOGETHER` by one process of clang, as many of these at a time
    as there are processors. At the end all are there, or the error of the first that has one is raised."""
    with ThreadPoolExecutor(host.num_threads(), thread_name_prefix="compassc-clang") as pool:
        jobs = _Jobs(pool)
        token = _jobs.set(jobs)
        try:
            yield
            jobs.start(host.num_threads())
            for job in jobs.begun:
                job.result()
        except BaseException:
            jobs.give_up()
            raise
        finally:
            _jobs.reset(token)


def begun(library: Library) -> Callable[[], bytes]:
    """What gives the content of a library that is compiled now, or within `side_by_side` with and beside others."""
    jobs = _jobs.get()
    if jobs is None:
        content = library.compiled()
        return lambda: content
    return jobs.add(library)


def _finish(jobs: Sequence[tuple[Library, Future[bytes]]]) -> None:
    """Compile libraries, the texts of those that are not known together."""
    left = [(library, job) for library, job in jobs if job.set_running_or_notify_cancel()]
    try:
        made = _kernels([library for library, _ in left])
    except Exception:  # noqa: BLE001 - each is compiled alone then, so that a mistake is that of its kernel
        made = {}
    for library, job in left:
        try:
            job.set_result(library.compiled(made.get(id(library))))
        except Exception as error:  # noqa: BLE001 - raised where the library is asked for
            job.set_exception(error)


def _kernels(libraries: Sequence[Library]) -> dict[int, bytes]:
    """The objects of libraries that are not in the cache, of one text and the flags of the first of them, by identity.
    ToolchainError where one of the texts cannot be compiled."""
    cache = Cache()
    new = [x for x in libraries if list(x.sources) == [_KERNEL] and not cache.get("host", x.key)]
    new = [x for x in new if x.flags == new[0].flags]
    if len(new) < 2:
        return {}
    with tempfile.TemporaryDirectory(prefix="compassc-host-") as folder:
        paths = [Path(folder, str(i), _KERNEL) for i in range(len(new))]
        for path, library in zip(paths, new, strict=True):
            path.parent.mkdir()
            path.write_bytes(library.sources[_KERNEL].encode())
        objects = compile_objects(paths, new[0].flags)
        return {id(library): made.read_bytes() for library, made in zip(new, objects, strict=True)}


def _machine_code(flags: Sequence[str]) -> tuple[str, ...]:
    """What the instructions of a text depend on."""
    return (*flags, find_clang().identity, host.current().features)


def flags_of(target: Target) -> list[str]:
    """The options of clang for a target."""
    native = target.attrs["mcpu"] == "native"
    return optimised(target.attrs["opt-level"], host.march() if native else target.attrs["mcpu"])


def optimised(level: object, cpu: str) -> list[str]:
    """The options of clang for a processor."""
    only = _X86_ONLY if machine() in ("x86_64", "AMD64") else ()
    return [*_FLAGS, f"-O{level}", f"-march={cpu}", *only]


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


def _object(source: Path, flags: Sequence[str]) -> bytes:
    """The object of a source that libraries share, with its header."""
    texts = [p.read_bytes() for p in (source, source.with_suffix(".h")) if p.exists()]
    cache, key = Cache(), key_of("host-object", *texts, *_machine_code(flags))
    found = cache.get("host", key) or cache.put("host", key, lambda output: compile_object(source, output, flags))
    return found.read_bytes()


def compile_texts(given: dict[str, bytes], flags: Sequence[str], link: Sequence[str], output: Path) -> None:
    """Texts, and objects, by their file names to a library. ToolchainError with clang's words where that fails."""
    with tempfile.TemporaryDirectory(prefix="compassc-host-") as folder:
        paths = [Path(folder, name) for name in given]
        for path in paths:
            path.write_bytes(given[path.name])
        compile_and_link(paths, output, flags, link)

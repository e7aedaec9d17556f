"""The engine executable: finds the one that set-up built, or builds it into the cache folder.

It is C, compiled by the clang that compiles kernels and linked against the C library that runs this Python. Neither
headers nor start-up files of the C library are needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from compass_core import files
from compass_core.errors import ToolchainError
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import command

PREBUILT = Path(__file__).parent / "_bin" / "compass-worker"
STAMP = PREBUILT.with_suffix(".stamp")
_COMPILE = (
    "-std=c11",
    "-O2",
    "-g1",
    "-ffreestanding",
    "-nostdlibinc",
    "-fPIE",
    "-fno-stack-protector",
    "-Wall",
    "-Wextra",
)
_LINK = ("-pie", "-z", "now", "-z", "relro", "-z", "noexecstack")
_TIMEOUT = 120


@lru_cache(maxsize=1)
def engine_path() -> Path:
    """The engine executable for the present sources. ToolchainError when there is none and it cannot be built."""
    if _is_prebuilt():
        return PREBUILT
    return Cache().made("engine", source_key(), build)


def _is_prebuilt() -> bool:
    """Whether the package's executable is that of the present sources.

    The stamp has two lines, the sources' hash and their sizes and times: where the second agrees, nothing is hashed.
    """
    if not PREBUILT.is_file() or not STAMP.is_file():
        return False
    key, _, state = STAMP.read_text(encoding="utf-8").rstrip("\n").partition("\n")
    return state == _source_state() or key == source_key()


def _source_state() -> str:
    """Name, size and time of every source file."""
    with os.scandir(source_folder()) as files:
        states = [(f.name, f.stat()) for f in files if f.name.endswith((".c", ".h"))]
    return " ".join(f"{name}:{at.st_size}:{at.st_mtime_ns}" for name, at in sorted(states))


@lru_cache(maxsize=1)
def source_folder() -> Path:
    """The folder of the engine's C files: `engine` in the installed package, beside it in a checkout."""
    package = Path(__file__).parent
    for folder in (package / "engine", package.parent / "engine"):
        if (folder / "main.c").is_file():
            return folder
    raise ToolchainError(
        "the sources of the simulator engine are not installed", help="reinstall the package `compassc`"
    )


def source_key() -> str:
    """A hash of everything the executable depends on but the compiler: an engine need not be rebuilt for a new one."""
    files = sorted(source_folder().glob("*.[ch]"))
    libc, libm, interpreter = host_libraries()
    return key_of(
        *(part for f in files for part in (f.name, f.read_bytes())),
        str(libc),
        str(libm),
        interpreter,
        *_COMPILE,
        *_LINK,
    )


@lru_cache(maxsize=1)
def host_libraries() -> tuple[Path, Path, str]:
    """(libc, libm, dynamic linker) of the running Python. ToolchainError where Python is not a glibc program."""
    loaded = []
    if sys.platform == "linux":
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        loaded = [Path(line.split(maxsplit=5)[5]) for line in lines if "/libc" in line or "/ld-" in line]
    libc = next((p for p in loaded if p.name == "libc.so.6" or p.name.startswith("libc-2.")), None)
    linker = next((p for p in loaded if p.name.startswith(("ld-linux-x86-64.so", "ld-2."))), None)
    if libc is None or linker is None:
        raise ToolchainError(
            "the simulator runs on x86-64 Linux with the GNU C library only",
            code="no-engine",
            notes=(f"this Python runs on {sys.platform} without it",),
        )
    libm = next(p for name in ("libm.so.6", libc.name.replace("libc", "libm")) if (p := libc.with_name(name)).exists())
    return libc, libm, str(linker)


def build(output: Path) -> None:
    """Compile and link the engine to `output`. ToolchainError with the compiler's words when that fails."""
    sources = sorted(source_folder().glob("*.c"))
    compile_and_link(sources, output, (), (*_LINK, "--dynamic-linker", host_libraries()[2]))


def compile_object(source: Path, output: Path, flags: Sequence[str]) -> None:
    """A C file to an object."""
    from compass_core.hostcc.clang import find_clang

    where = f"-ffile-prefix-map={source.parent}={source.parent.name}"
    _run([str(find_clang().path), *_COMPILE, *flags, where, "-c", str(source), "-o", str(output)])


def compile_objects(sources: Sequence[Path], flags: Sequence[str]) -> list[Path]:
    """C files to objects beside them, by one process of clang: starting it costs more than compiling a small file. The objects
    are those that `compile_object` makes. ToolchainError where one of the files cannot be compiled."""
    from compass_core.hostcc.clang import find_clang

    _run([*_frontend(str(find_clang().path), tuple(flags)), *map(str, sources)])
    return [source.with_suffix(".o") for source in sources]


@lru_cache(maxsize=8)
def _frontend(clang: str, flags: tuple[str, ...]) -> tuple[str, ...]:
    """The command that clang's driver runs for a C file, without the names of files: the driver itself starts a process for
    each of several files. ToolchainError where it runs none."""
    import shlex

    said = _run([clang, *_COMPILE, *flags, "-###", "-x", "c", "-c", "-", "-o", "kernel.o"])
    commands = [shlex.split(line) for line in said.splitlines() if '"-cc1"' in line]
    if len(commands) != 1 or commands[0][-1:] != ["-"] or "-o" not in commands[0]:
        raise ToolchainError(
            "clang does not say how it compiles", code="no-engine", notes=tuple(said.splitlines()[:20])
        )
    words = commands[0][:-1]
    at = words.index("-o")
    return (*words[:at], *words[at + 2 :])


def compile_and_link(sources: Sequence[Path], output: Path, flags: Sequence[str], link: Sequence[str]) -> None:
    """C files, and objects, to a program or a library, against the C library of this Python; nothing but clang and lld is
    needed."""
    import tempfile

    from compass_core.hostcc.clang import find_clang

    linker = _linker(find_clang().path)
    libc, libm, _ = host_libraries()
    parts = [p for p in map(libc.with_name, ("libpthread.so.0", "libdl.so.2")) if p.exists()]  # before glibc 2.34
    with tempfile.TemporaryDirectory(prefix="compass-engine-") as folder:
        objects = [p if p.suffix == ".o" else Path(folder, p.stem + ".o") for p in sources]
        for source, made in zip(sources, objects, strict=True):
            if made is not source:
                compile_object(source, made, flags)
        libraries = [str(p) for p in (libc, libm, *parts)]
        linked = Path(folder, output.name)
        _run([linker, *link, "-o", str(linked), *map(str, objects), *libraries])
        output.write_bytes(linked.read_bytes())
    output.chmod(0o755)


def _linker(clang: Path) -> str:
    """The linker beside clang, of the Python environment, or on PATH."""
    from shutil import which

    from compass_core.hostcc.clang import HOW_TO_GET

    beside = [clang.with_name("ld.lld"), clang.resolve().with_name("ld.lld"), Path(sys.prefix, "bin", "ld.lld")]
    linker = next((str(p) for p in beside if p.exists()), None) or which("ld.lld") or which("ld")
    if linker is None:
        raise ToolchainError("no linker was found to build the simulator engine", code="no-linker", help=HOW_TO_GET)
    return linker


def _run(line: list[str]) -> str:
    """What a program writes. ToolchainError where it fails."""
    import shlex

    try:
        done = command.run(line, Path.cwd(), seconds=_TIMEOUT)
    except ToolchainError as error:
        raise ToolchainError(error.message, code="no-engine") from error
    if done.status != 0:
        raise ToolchainError(
            "C code of the simulator or the runtime cannot be built",
            code="no-engine",
            notes=(shlex.join(line), *done.output.strip().splitlines()[:20]),
            help="set COMPASS_CLANG to another clang, or run `compassc doctor`",
        )
    return done.output


def install() -> Path:
    """Build the engine into the package, for set-up; nothing happens when it is there already."""
    if not _is_prebuilt():
        files.write(PREBUILT, build, 0o777)
    files.write(STAMP, f"{source_key()}\n{_source_state()}\n")
    return PREBUILT

"""compass-rpcd: the server of remote sessions in C, for machines without Python; its sources are in `runtime/daemon`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from compass_core import VERSION, files
from compass_core.dataclass import dataclass
from compass_core.errors import ToolchainError
from compass_core.files.cache import Cache, key_of
from compass_runtime import clibrary
from compass_runtime.clibrary import include_folder, source_folder
from compass_sim import engine

NAME = "compass-rpcd"
_COMPILE = ("-fPIE", f'-DCOMPASS_VERSION="{VERSION}"')
_GCC = ("--rtlib=libgcc", "--unwindlib=libgcc")
"""What stands below the C library: that which comes with it in a distribution."""
_LINK = ("-fuse-ld=lld", "-Wl,-z,now,-z,relro,-z,noexecstack", *_GCC)


def _sources() -> list[Path]:
    return sorted(source_folder("daemon").glob("*.c"))


def _includes() -> list[str]:
    return [f"-I{folder}" for folder in (source_folder("daemon"), source_folder("native"), include_folder())]


def program() -> Path:
    """The program for this machine, taken from the cache or built into it."""
    folders = (source_folder("daemon"), source_folder("native"), include_folder())
    read = [f for folder in folders for f in sorted(folder.glob("*.[ch]"))]
    link = ("-pie", "--dynamic-linker", engine.host_libraries()[2], "-z", "now", "-z", "relro", "-z", "noexecstack")
    key = key_of(*(part for f in read for part in (f.name, f.read_bytes())), engine.source_key(), *_COMPILE, *link)

    def build(output: Path) -> None:
        sources = [*_sources(), engine.source_folder() / "start.c"]
        flags = (*_COMPILE, *_includes(), f"-I{engine.source_folder()}")
        engine.compile_and_link(sources, output, flags, link)

    return Cache().made("rpcd", key, build)


def compile_words(triple: str) -> list[str]:
    """What clang is to compile for another machine, and how."""
    return [f"--target={triple}", "-std=c11", "-O2", "-Wall", *_COMPILE, *_includes(), *map(str, _sources())]


@dataclass(frozen=True)
class Machine:
    """What the program is linked for: a machine as clang calls it, the folder that has its C library (None: this machine's own), and
    further words for clang. `driver`: the static library of a driver that becomes part of the program; `static`: so does the C
    library, and, where no driver is named, libcompass_runtime."""

    triple: str
    sysroot: Path | None = None
    static: bool = False
    driver: Path | None = None
    words: tuple[str, ...] = ()

    def link_words(self) -> list[str]:
        """All that clang is told."""
        words = compile_words(self.triple)
        if self.sysroot is not None:
            words.append(f"--sysroot={self.sysroot}")
        if self.static or self.driver is not None:
            words.append("-DCOMPASS_STATIC_DRIVER")
            words += [str(self.driver)] if self.driver is not None else self._simulated()
        words += ["-static-pie"] if self.static else ["-pie", "-ldl", "-lpthread"]
        return [*words, *_LINK, *self.words]

    def _simulated(self) -> list[str]:
        sources = sorted(source_folder("native").glob("*.c"))
        defines = ('-DCOMPASS_ENGINE="compass-worker"', f"-I{engine.source_folder()}", *clibrary.shared_memory())
        return [*defines, *map(str, sources)]


def link(machine: Machine, output: Path) -> None:
    """Builds the program by clang's own way to link, for another machine or statically. ToolchainError where clang has no such
    target, and with its words when that fails."""
    from compass_core.hostcc.clang import find_clang

    clang = str(find_clang().path)
    arch = machine.triple.partition("-")[0].replace("_", "-")
    targets = [line.split()[0] for line in _output([clang, "--print-targets"]).splitlines() if " - " in line]
    if arch not in targets:
        raise ToolchainError(
            f"'{clang}' makes no code for {machine.triple}",
            code="no-engine",
            notes=(f"it makes code for {', '.join(targets)}",),
            help="COMPASS_CLANG names a clang that does: those of distributions have all targets (apt install clang lld)",
        )
    done = subprocess.run(
        [clang, *machine.link_words(), "-o", str(output)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        where = machine.sysroot or "this machine"
        raise ToolchainError(
            f"{NAME} cannot be built for {machine.triple}",
            code="no-engine",
            notes=tuple(done.stderr.strip().splitlines()[:20]),
            help=f"are the files for linking with a C library{', static ones,' if machine.static else ''} in '{where}' "
            "(libc6-dev and libgcc of its distribution)?",
        )


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _copy_of(source: Callable[[], Path]) -> Callable[[Path], object]:
    return lambda output: files.write(output, source().read_bytes())


def write(folder: Path, machine: Machine | None = None) -> list[Path]:
    """Puts the program into a folder; for this machine's simulator also what it starts from there: libcompass_runtime, unless it is
    part of the program, and the engine. Existing files are replaced, not overwritten in place."""
    target = folder / NAME
    if machine is None:  # nothing is built for a folder that takes no files
        parts: dict[str, Callable[[], Path]] = {NAME: program, clibrary.NAME: clibrary.library_path}
        parts["compass-worker"] = engine.engine_path
        files.write_all({folder / name: _copy_of(part) for name, part in parts.items()}, 0o777)
        return [folder / name for name in parts]
    files.write(target, lambda output: link(machine, output), 0o777)
    if machine.sysroot is not None or machine.driver is not None:
        return [target]
    worker = folder / "compass-worker"
    files.write(worker, engine.engine_path().read_bytes(), 0o777)
    return [target, worker]

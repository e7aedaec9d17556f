"""compass-rpcd: the server of remote sessions in C, for machines without Python; its sources are in `runtime/daemon`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from compass_core import VERSION, files
from compass_core.errors import ToolchainError
from compass_runtime import clibrary
from compass_runtime.clibrary import include_folder, source_folder
from compass_sim import engine

NAME = "compass-rpcd"
_COMPILE = ("-fPIE", f'-DCOMPASS_VERSION="{VERSION}"')
_CROSS = ("-pie", "-fuse-ld=lld", "-Wl,-z,now,-z,relro,-z,noexecstack", "-ldl", "-lpthread")


def _sources() -> list[Path]:
    return sorted(source_folder("daemon").glob("*.c"))


def _includes() -> list[str]:
    return [f"-I{folder}" for folder in (source_folder("daemon"), source_folder("native"), include_folder())]


def program() -> Path:
    """The program for this machine, taken from the cache or built into it."""
    from compass_core.files.cache import Cache, key_of

    folders = (source_folder("daemon"), source_folder("native"), include_folder())
    read = [f for folder in folders for f in sorted(folder.glob("*.[ch]"))]
    link = ("-pie", "--dynamic-linker", engine.host_libraries()[2], "-z", "now", "-z", "relro", "-z", "noexecstack")
    key = key_of(*(part for f in read for part in (f.name, f.read_bytes())), engine.source_key(), *_COMPILE, *link)

    def build(output: Path) -> None:
        sources = [*_sources(), engine.source_folder() / "start.c"]
        flags = (*_COMPILE, *_includes(), f"-I{engine.source_folder()}")
        engine.compile_and_link(sources, output, flags, link)

    cache = Cache()
    return cache.get("rpcd", key) or cache.put("rpcd", key, build)


def compile_words(triple: str) -> list[str]:
    """What clang is to compile for another machine, and how."""
    return [f"--target={triple}", "-std=c11", "-O2", "-Wall", *_COMPILE, *_includes(), *map(str, _sources())]


def cross_program(triple: str, sysroot: Path, output: Path) -> None:
    """Builds the program for another machine, whose C library and start-up files are in `sysroot`. ToolchainError with clang's
    words when that fails."""
    from compass_core.hostcc.clang import find_clang

    words = [*compile_words(triple), f"--sysroot={sysroot}", *_CROSS, "-o", str(output)]
    done = subprocess.run([str(find_clang().path), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolchainError(
            f"{NAME} cannot be built for {triple}",
            code="no-engine",
            notes=tuple(done.stderr.strip().splitlines()[:20]),
            help=f"COMPASS_CLANG names a clang that makes code for {triple}; is there a C library for it in '{sysroot}'?",
        )


def write(folder: Path, triple: str = "", sysroot: Path | None = None) -> list[Path]:
    """Puts the program into a folder; for this machine also libcompass_runtime and the simulator, which it starts from there.
    Existing files are replaced, not overwritten in place."""
    if sysroot is not None:
        target = folder / NAME
        files.write(target, lambda output: cross_program(triple, sysroot, output), 0o777)
        return [target]
    parts = {NAME: program(), clibrary.NAME: clibrary.library_path(), "compass-worker": engine.engine_path()}
    files.write_all({folder / name: source.read_bytes() for name, source in parts.items()}, 0o777)
    return [folder / name for name in parts]

"""libcompass_runtime: the driver's API in C. Set-up builds it as it builds the engine: with clang and its linker alone.

python -m compass_runtime.clibrary            # build it into the package, print its path
cc program.c -I$(python -m compass_runtime.clibrary --include) -L... -lcompass_runtime
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from compass_core import files, targets
from compass_core.errors import CompassError, ToolchainError, render
from compass_core.files.cache import Cache, key_of
from compass_sim import engine

NAME = "libcompass_runtime.so"
PREBUILT = Path(__file__).parent / "_lib" / NAME
_COMPILE = ("-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec")


def source_folder(name: str) -> Path:
    """`native`, `plugin` or `include`: in the installed package, beside it in a checkout."""
    package = Path(__file__).parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise ToolchainError("the sources of the C library are not installed", help="reinstall the package `compassc`")


def include_folder() -> Path:
    """The folder of compass_runtime.h."""
    return source_folder("include")


def shared_memory() -> tuple[str, str]:
    """Compiler flags that say how much shared memory a core of each family has; all targets of a family agree."""
    sizes = {t.isa: t.gsram_bytes for t in map(targets.load, targets.names())}
    return f"-DCOMPASS_X2_SHARED_BYTES={sizes[5]}", f"-DCOMPASS_X3_SHARED_BYTES={sizes[6]}"


def _key() -> str:
    sources = [*sorted(source_folder("native").glob("*.[ch]")), include_folder() / "compass_runtime.h"]
    return key_of(
        *(part for f in sources for part in (f.name, f.read_bytes())),
        engine.source_key(),
        str(engine.engine_path()),
        *_COMPILE,
        *shared_memory(),
    )


def library_path() -> Path:
    """The library for the present sources and engine; built into the cache where set-up has not built it."""
    key, stamp = _key(), PREBUILT.with_suffix(".stamp")
    if PREBUILT.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == key:
        return PREBUILT
    return Cache().made("clibrary", key, build)


def build(output: Path) -> None:
    """Compiles and links the library. ToolchainError with the compiler's words when that fails."""
    defines = (
        f'-DCOMPASS_ENGINE="{engine.engine_path()}"',
        f"-I{include_folder()}",
        f"-I{engine.source_folder()}",
        *shared_memory(),
    )
    engine.compile_and_link(
        sorted(source_folder("native").glob("*.c")),
        output,
        (*_COMPILE, *defines),
        ("-shared", "-soname", NAME, "-z", "now", "-z", "relro", "-z", "noexecstack"),
    )


def link_program(sources: list[Path], output: Path) -> None:
    """Builds a C program against the library where there are no start-up files of a C library: its own are used."""
    library = library_path()
    if library.name != NAME:  # in the cache it is named after its content; a program looks for it by its own name
        library = Path(shutil.copy(library, output.parent / NAME))
    flags = (f"-I{include_folder()}", f"-I{engine.source_folder()}", "-fPIE")
    interpreter = engine.host_libraries()[2]
    engine.compile_and_link(
        [*sources, engine.source_folder() / "start.c"],
        output,
        flags,
        ("-pie", "--dynamic-linker", interpreter, "-rpath", str(library.parent), str(library)),
    )


def install() -> Path:
    """Builds the library into the package, for set-up; nothing happens when it is there already."""
    if library_path() != PREBUILT:
        files.write(PREBUILT, build, 0o777)
        files.write(PREBUILT.with_suffix(".stamp"), _key())
    return PREBUILT


def main() -> int:
    """Prints the path of the library, built if need be, or with `--include` that of the header."""
    try:
        print(include_folder() if "--include" in sys.argv[1:] else install())
    except CompassError as error:
        print(render(error), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

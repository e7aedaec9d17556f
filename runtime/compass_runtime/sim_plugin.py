"""The simulators that the vendor's software loads: libraries for its user mode driver, programs for its front end.

Each is self-contained but for the engine's executable, which it starts from its own folder.
"""

from __future__ import annotations

from pathlib import Path

from compass_core import VERSION, files
from compass_core.files.cache import Cache, key_of
from compass_core.switches import TIMEOUT
from compass_runtime.clibrary import include_folder, shared_memory, source_folder
from compass_sim import engine

FAMILIES = ("X2", "X3P", "X3S")
_ENGINE = "compass-worker"
_COMPILE = ("-ftls-model=initial-exec", f'-DCOMPASS_VERSION="{VERSION}"', f'-DCOMPASS_ENGINE="{_ENGINE}"')
_SHARED_SOURCES = ("device.c", "fail.c", "lines.c", "worker.c")
"""The sources that the libraries share with libcompass_runtime."""


def library_name(family: str) -> str:
    """The name by which the driver looks for the simulator of a family of targets."""
    return f"libaipu_simulator_{family.lower()}.so"


def program_name(family: str) -> str:
    """The name by which the front end looks for the stand-alone simulator of a family."""
    return f"aipu_simulator_{family.lower()}"


def _made(name: str, sources: list[Path], flags: tuple[str, ...], link: tuple[str, ...]) -> Path:
    """The file built of C sources, taken from the cache or built into it."""
    folders = (include_folder(), engine.source_folder(), source_folder("native"), source_folder("plugin"))
    files = [*sources, *(f for folder in folders for f in sorted(folder.glob("*.h")))]
    flags = (*_COMPILE, *shared_memory(), f"-DCOMPASS_DEFAULT_TIMEOUT={TIMEOUT.default}", *flags)
    key = key_of(name, *(part for f in files for part in (f.name, f.read_bytes())), engine.source_key(), *flags, *link)

    def build(output: Path) -> None:
        engine.compile_and_link(
            sources,
            output,
            (*flags, *(f"-I{folder}" for folder in folders)),
            (*link, "-z", "now", "-z", "relro", "-z", "noexecstack"),
        )

    cache = Cache()
    return cache.get("simplugin", key) or cache.put("simplugin", key, build)


def library(family: str) -> Path:
    """The library of a family of targets."""
    name, shared = library_name(family), (source_folder("native") / source for source in _SHARED_SOURCES)
    flags = ("-fPIC", "-fvisibility=hidden", f'-DSIM_FAMILY="{family}"')
    return _made(name, [*shared, *sorted(source_folder("plugin").glob("*.c"))], flags, ("-shared", "-soname", name))


def program() -> Path:
    """The stand-alone simulator, which takes its family from the name it is started by."""
    sources = [
        *sorted(source_folder("native").glob("*.c")),
        source_folder("plugin") / "limit.c",
        source_folder("program") / "main.c",
        engine.source_folder() / "start.c",
    ]
    return _made("program", sources, ("-fPIE",), ("-pie", "--dynamic-linker", engine.host_libraries()[2]))


def write(folder: Path, families: tuple[str, ...] = FAMILIES) -> list[Path]:
    """Puts libraries, programs and the engine into a folder; existing files are replaced, not overwritten in place."""
    parts = {library_name(family): library(family) for family in families}
    parts |= {program_name(family): program() for family in families} | {_ENGINE: engine.engine_path()}
    files.write_all({folder / name: source.read_bytes() for name, source in parts.items()}, 0o777)
    return [folder / name for name in parts]

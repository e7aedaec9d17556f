"""The simulators that the vendor's software loads: libraries for its user mode driver, programs for its front end.

Each is self-contained but for the engine's executable, which it starts from its own folder.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
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


def _folders() -> tuple[Path, ...]:
    return include_folder(), engine.source_folder(), source_folder("native"), source_folder("plugin")


def _options(*flags: str) -> tuple[str, ...]:
    """What a source is compiled with."""
    known = (*_COMPILE, *shared_memory(), f"-DCOMPASS_DEFAULT_TIMEOUT={TIMEOUT.default}", *flags)
    return (*known, *(f"-I{folder}" for folder in _folders()))


def _made(
    name: str,
    sources: list[Path],
    flags: tuple[str, ...],
    link: tuple[str, ...],
    compiled: Callable[[], Mapping[Path, Path]] = dict,
) -> Path:
    """The file built of C sources, taken from the cache or built into it; of some sources there may be objects, which are
    `compiled` when they are needed."""
    files = [*sources, *(f for folder in _folders() for f in sorted(folder.glob("*.h")))]
    options = _options(*flags)
    key = key_of(
        name, *(part for f in files for part in (f.name, f.read_bytes())), engine.source_key(), *options, *link
    )

    def build(output: Path) -> None:
        objects = compiled()
        parts = [objects.get(source, source) for source in sources]
        engine.compile_and_link(parts, output, options, (*link, "-z", "now", "-z", "relro", "-z", "noexecstack"))

    return Cache().made("simplugin", key, build)


def libraries(families: Sequence[str]) -> dict[str, Path]:
    """The libraries of some families of targets, by the names that the driver looks for. What they share is compiled once."""
    flags, own = ("-fPIC", "-fvisibility=hidden"), source_folder("plugin") / "plugin.c"
    sources = [*(source_folder("native") / s for s in _SHARED_SOURCES), *sorted(source_folder("plugin").glob("*.c"))]
    with tempfile.TemporaryDirectory(prefix="compass-plugin-") as folder:

        @cache
        def compiled() -> dict[Path, Path]:
            objects = {source: Path(folder, f"{source.stem}.o") for source in sources if source != own}
            for source, output in objects.items():
                engine.compile_object(source, output, _options(*flags))
            return objects

        return {
            name: _made(name, sources, (*flags, f'-DSIM_FAMILY="{family}"'), ("-shared", "-soname", name), compiled)
            for family, name in ((family, library_name(family)) for family in families)
        }


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
    parts = libraries(families)
    parts |= {program_name(family): program() for family in families} | {_ENGINE: engine.engine_path()}
    files.write_all({folder / name: source.read_bytes() for name, source in parts.items()}, 0o777)
    return [folder / name for name in parts]

"""The libraries that the vendor's user mode driver loads as its simulator, libaipu_simulator_FAMILY.so.

Each is self-contained but for the engine's executable, which it starts from its own folder.
"""

from __future__ import annotations

import os
from pathlib import Path

from compass_core import VERSION
from compass_core.errors import CompassError
from compass_runtime.clibrary import include_folder, shared_memory, source_folder
from compass_sim import engine

FAMILIES = ("X2", "X3P", "X3S")
_ENGINE = "compass-worker"
_COMPILE = ("-fPIC", "-fvisibility=hidden", "-ftls-model=initial-exec", f'-DCOMPASS_VERSION="{VERSION}"',
            f'-DCOMPASS_ENGINE="{_ENGINE}"')  # fmt: skip
_SHARED_SOURCES = ("device.c", "fail.c", "lines.c", "worker.c")
"""What the libraries have in common with libcompass_runtime."""


def library_name(family: str) -> str:
    """The name by which the driver looks for the simulator of a family of targets."""
    return f"libaipu_simulator_{family.lower()}.so"


def library(family: str) -> Path:
    """The library of a family for the present sources, built into the cache when it is not there."""
    from compass_core.cache import Cache, key_of
    from compass_core.switches import TIMEOUT

    native, plugin = source_folder("native"), source_folder("plugin")
    files = [*sorted(native.glob("*.[ch]")), *sorted(plugin.glob("*.[ch]")), *sorted(include_folder().glob("*.h"))]
    flags = (*_COMPILE, *shared_memory(), f'-DSIM_FAMILY="{family}"', f"-DCOMPASS_DEFAULT_TIMEOUT={TIMEOUT.default}")
    key = key_of(*(part for f in files for part in (f.name, f.read_bytes())), engine.source_key(), *flags)
    sources = [*(native / name for name in _SHARED_SOURCES), *sorted(plugin.glob("*.c"))]
    folders = (f"-I{folder}" for folder in (include_folder(), engine.source_folder(), native))

    def build(output: Path) -> None:
        engine.compile_and_link(
            sources, output, (*flags, *folders),
            ("-shared", "-soname", library_name(family), "-z", "now", "-z", "relro", "-z", "noexecstack"),
        )  # fmt: skip

    cache = Cache()
    return cache.get("simplugin", key) or cache.put("simplugin", key, build)


def write(folder: Path, families: tuple[str, ...] = FAMILIES) -> list[Path]:
    """Puts the libraries and the engine into a folder; files that a running driver uses are replaced, not changed."""
    wanted = {library_name(family): library(family) for family in families} | {_ENGINE: engine.engine_path()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in wanted.items():
            partial = folder / f".{name}.{os.getpid()}"
            partial.write_bytes(source.read_bytes())
            partial.chmod(0o755)
            os.replace(partial, folder / name)
    except OSError as error:
        raise CompassError(f"cannot write to '{folder}': {error.strerror or error}", code="file") from None
    return [folder / name for name in wanted]

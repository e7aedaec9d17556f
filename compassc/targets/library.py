"""C text to a shared library of this machine, kept in the compile cache."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.errors import CompassError, ToolchainError

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
_X86_ONLY = ("-mno-gfni",)  # clang 23 shifts bytes of a selected constant wrongly with it
_LINK = ("-shared", "-z", "now", "-z", "relro", "-z", "noexecstack", "-s")


def compiled(text: str, parallel: bool, target: Target) -> bytes:
    """The library of a C text; with threads where it has parallel loops."""
    from platform import machine

    from compass_core.files.cache import Cache, key_of
    from compass_core.hostcc import host
    from compass_core.hostcc.clang import find_clang

    sources = {"kernel.c": text}
    if parallel:
        sources["pool.c"] = Path(__file__).with_name("pool.c").read_text(encoding="utf-8")
    flags = [*_FLAGS, f"-O{target.attrs['opt-level']}", f"-march={target.attrs['mcpu']}"]
    flags += _X86_ONLY if machine() in ("x86_64", "AMD64") else ()
    cache = Cache()
    depends = (*sources.values(), *flags, *_LINK, find_clang().identity, " ".join(host.cpu_features()))
    key = key_of("host-library", *depends)
    try:
        found = cache.get("host", key) or cache.put("host", key, lambda output: _compile(sources, flags, output))
    except ToolchainError as error:
        raise _of_processor(error, target) from error
    return found.read_bytes()


def _of_processor(error: ToolchainError, target: Target) -> CompassError:
    """The error of a build, told as one of the option `mcpu` where clang does not know that processor."""
    from compassc.targets.kind import TargetError

    said = [line for line in map(str, error.notes) if "unknown target CPU" in line or "valid target CPU" in line]
    if not said:
        return error
    return TargetError(
        f"clang knows no processor '{target.mcpu}' for option 'mcpu' of '{target.kind.name}'",
        code="target-option",
        notes=tuple(said),
        help="native is this machine",
    )


def _compile(sources: dict[str, str], flags: list[str], output: Path) -> None:
    from compass_sim.engine import compile_and_link

    with tempfile.TemporaryDirectory(prefix="compassc-host-") as folder:
        paths = [Path(folder, name) for name in sources]
        for path in paths:
            path.write_text(sources[path.name], encoding="utf-8")
        compile_and_link(paths, output, flags, _LINK)

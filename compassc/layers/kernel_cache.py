"""The compiled kernels of layers. A kernel that was compiled before, by any build, is taken from the cache: known by its
text, the target, and everything that turns a text into an object."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from compass_core import VERSION, files, switches, targets
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import host, pch
from compass_core.hostcc.clang import find_clang
from compass_core.hostcc.command import headers_hash, kernel_flags
from compassc.layers.layer_kernel import Kernel

if TYPE_CHECKING:
    from compassc.ir.stmts import PrimFunc

SHARED = ("vectors", "lane_arithmetic", "remainder")
"""The modules of layers whose functions and macros those of other modules may call."""
_COMPILER = (
    "ir",
    "ops",
    "settings",
    "language",
    "dsl",
    "analysis",
    "passes",
    "codegen",
    "toolchain",
    "driver",
    *(f"layers/{name}.py" for name in SHARED),
)
"""The parts of this package that compile a kernel's text. Those that make kernels as IR are no part of it: what they make
is what their text means."""


class KernelCache:
    """The objects of kernels for a target. What is compiled, is compiled in a folder of its own in `folder`: builds in one
    folder wait for each other, while several threads may ask here."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder = folder.absolute()
        self._target = target
        self._made: dict[str, Path] = {}
        self._cache = Cache() if switches.CACHE.get() else None
        self._compiler = "" if self._cache is None else compiler_identity()

    def prepare(self) -> None:
        """Has the precompiled header made meanwhile, where there is none: it takes clang longer than any kernel."""
        if self._cache is None:  # clang may not be needed, and is not looked for yet
            return
        clang = find_clang()
        pch.begin(clang, kernel_flags(clang, targets.load(self._target).define), Cache())

    def known(self, kernel: Kernel) -> bool:
        """Whether the object is there without a compiler."""
        if kernel.name not in self._made and self._cache is not None:
            kept = self._cache.get("layer", self._key(kernel))
            if kept is not None:
                self._made[kernel.name] = kept
        return kernel.name in self._made

    def object_of(self, kernel: Kernel) -> Path:
        """The object file of a kernel. CompassError when the compiler refuses it."""
        if not self.known(kernel):
            self._made[kernel.name] = self._compiled(kernel)
        return self._made[kernel.name]

    def function_of(self, kernel: Kernel) -> Any:
        """The kernel as a function of the DSL."""
        return function_of(kernel, self._source(kernel))

    def _compiled(self, kernel: Kernel) -> Path:
        from compassc.dsl import BuildManager

        path = self._folder / kernel.name / f"{kernel.name}.o"
        function = program_of(kernel, self._source(kernel))
        BuildManager(self._target).gen_op_lib(function, kernel.name, str(path))
        if self._cache is not None:
            self._cache.put("layer", self._key(kernel), path.read_bytes())
        return path

    def _source(self, kernel: Kernel) -> Path:
        """The file of the text, whose lines errors and profiles show. With a cache it lies there, for all builds that
        share the object."""
        if self._cache is None:
            return files.write(self._folder / f"{kernel.name}.py", kernel.text)
        return self._cache.put("kernel", f"{key_of(kernel.text)}.py", kernel.text.encode())

    def _key(self, kernel: Kernel) -> str:
        return key_of("2", self._target, kernel.text, self._compiler, *map(_state_of, sorted(kernel.modules)))


def compiler_identity() -> str:
    """A key that differs between compilers whose objects may differ: versions, and the state of their files."""
    embeds = str(switches.EMBED_SOURCE.get())
    features = host.current().features
    return key_of(find_clang().identity, headers_hash(), host.triple(), features, embeds, _own_identity())


@cache
def _own_identity() -> str:
    """The part of `compiler_identity` for this package."""
    here = Path(__file__).parents[1]
    return key_of(VERSION, sys.version, *(state for part in _COMPILER for state in _states(str(here / part), part)))


@cache
def _state_of(module: str) -> str:
    """The state of a module's file."""
    name = f"{module.replace('.', '/')}.py"
    return next(_states(str(Path(__file__).parents[2] / name), name))


def _states(place: str, name: str) -> Iterator[str]:
    """The state of a file of Python, or of all in a folder, by name. All builds ask for hundreds of them, which as `Path`s
    take three times as long."""
    if place.endswith(".py"):
        status = os.stat(place)
        yield f"{name} {status.st_size} {status.st_mtime_ns}"
    elif os.path.isdir(place):
        for inner in sorted(os.listdir(place)):
            if inner != "__pycache__":
                yield from _states(f"{place}/{inner}", f"{name}/{inner}")


_modules = threading.Lock()


def program_of(kernel: Kernel, source: Path) -> PrimFunc:
    """What BuildManager compiles: the IR of a kernel that was made as such, else the function of its text."""
    return function_of(kernel, source) if kernel.function is None else kernel.function


def function_of(kernel: Kernel, source: Path) -> Any:
    """The kernel's function: its text, which is the content of `source`, is read like a user's file; the IR of one whose
    text is no program."""
    if not kernel.is_program:
        return kernel.function
    module = ModuleType(kernel.name)
    module.__file__ = str(source)
    with _modules:
        sys.modules[kernel.name] = module
        exec(compile(kernel.text, str(source), "exec", dont_inherit=True), vars(module))  # noqa: S102 (our own text)
    return module.layer

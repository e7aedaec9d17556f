"""The compiled kernels of layers. A kernel that was compiled before, by any build, is taken from the cache: known by its
text, the target, and everything that turns a text into an object."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import compass_core
from compass_core import VERSION, files, switches, targets
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import host, pch
from compass_core.hostcc.clang import find_clang
from compass_core.hostcc.command import headers_hash, kernel_flags
from compassc.layers.kernel import CachedKernel, Kernel

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
NO_MAKERS = ("cli", "compat", "evaluation", "importers", "models", "onnx_backend", "quantizer", "relay")
"""The parts of this package that making a kernel has no use for."""
_BUILT = ("__pycache__", "_lib")
"""Folders of what is built of the files beside them."""


class KernelCache:
    """The objects of kernels for a target. What is compiled, is compiled in a folder of its own in `folder`: builds in one
    folder wait for each other, while several threads may ask here."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder = folder.absolute()
        self._target = target
        self._made: dict[str, Path] = {}
        self._cache = Cache() if switches.CACHE.get() else None
        self._compiler = "" if self._cache is None else compiler_identity()

    @property
    def cache(self) -> Cache | None:
        """Where objects are kept; None where they are not."""
        return self._cache

    def prepare(self) -> None:
        """Has the precompiled header made meanwhile, where there is none: it takes clang longer than any kernel."""
        if self._cache is None:  # clang may not be needed, and is not looked for yet
            return
        clang = find_clang()
        pch.begin(clang, kernel_flags(clang, targets.load(self._target).define), Cache())

    def known(self, kernel: Kernel | CachedKernel) -> bool:
        """Whether the object is there without a compiler."""
        if kernel.name not in self._made and self._cache is not None:
            kept = self._cache.get("layer", self.key_of_object(kernel))
            if kept is not None:
                self._made[kernel.name] = kept
        return kernel.name in self._made

    def object_of(self, kernel: Kernel | CachedKernel) -> Path:
        """The object file of a kernel. CompassError when the compiler refuses it."""
        if not self.known(kernel):
            self._made[kernel.name] = self._compiled(_whole(kernel))
        return self._made[kernel.name]

    def function_of(self, kernel: Kernel | CachedKernel) -> Any:
        """The kernel as a function of the DSL."""
        made = _whole(kernel)
        return function_of(made, self._source(made))

    def key_of_object(self, kernel: Kernel | CachedKernel) -> str:
        """The key of the object of a kernel in the cache."""
        if isinstance(kernel, CachedKernel):
            return kernel.object_key
        return key_of("2", self._target, kernel.text, self._compiler, *map(_state_of, sorted(kernel.modules)))

    def _compiled(self, kernel: Kernel) -> Path:
        from compassc.dsl import BuildManager

        path = self._folder / kernel.name / f"{kernel.name}.o"
        function = program_of(kernel, self._source(kernel))
        BuildManager(self._target).gen_op_lib(function, kernel.name, str(path))
        if self._cache is not None:
            self._cache.put("layer", self.key_of_object(kernel), path.read_bytes())
        return path

    def _source(self, kernel: Kernel) -> Path:
        """The file of the text, whose lines errors and profiles show. With a cache it lies there, for all builds that
        share the object."""
        if self._cache is None:
            return files.write(self._folder / f"{kernel.name}.py", kernel.text)
        return self._cache.put("kernel", f"{key_of(kernel.text)}.py", kernel.text.encode())


def _whole(kernel: Kernel | CachedKernel) -> Kernel:
    return kernel.whole if isinstance(kernel, CachedKernel) else kernel


def compiler_identity() -> str:
    """A key that differs between compilers whose objects may differ: versions, and the state of their files."""
    embeds = str(switches.EMBED_SOURCE.get())
    features = host.current().features
    return key_of(find_clang().identity, headers_hash(), host.triple(), features, embeds, _own_identity())


def maker_identity() -> str:
    """A key that differs between toolchains whose kernels of layers may differ: that of the compiler, and the state of all
    that makes kernels."""
    return key_of(compiler_identity(), _makers())


@cache
def _own_identity() -> str:
    """The part of `compiler_identity` for this package."""
    here = Path(__file__).parents[1]
    return key_of(VERSION, sys.version, *(state for part in _COMPILER for state in _states(str(here / part), part)))


@cache
def _makers() -> str:
    """The part of `maker_identity` for this package and what it stands on."""
    here, core = Path(__file__).parents[1], Path(compass_core.__file__).parent
    return key_of(np.__version__, *_states(str(here), "", (*_BUILT, *NO_MAKERS)), *_states(str(core), "core"))


@cache
def _state_of(module: str) -> str:
    """The state of a module's file."""
    name = f"{module.replace('.', '/')}.py"
    return next(_states(str(Path(__file__).parents[2] / name), name))


def _states(place: str, name: str, without: Sequence[str] = _BUILT) -> Iterator[str]:
    """The state of a file of Python, or of all in a folder, by name. All builds ask for hundreds of them, which as `Path`s
    take three times as long."""
    if place.endswith(".py"):
        yield _state(name, os.stat(place))
        return
    with os.scandir(place) as found:
        entries = sorted([(entry.name, entry) for entry in found])
    for inner, entry in entries:
        if not entry.is_dir():
            yield _state(f"{name}/{inner}", entry.stat())
        elif inner not in without:
            yield from _states(entry.path, f"{name}/{inner}")


def _state(name: str, status: os.stat_result) -> str:
    return f"{name} {status.st_size} {status.st_mtime_ns}"


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

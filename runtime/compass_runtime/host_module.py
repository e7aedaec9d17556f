"""Modules of the host: a shared library with one function, its C text, and what its parameters are.

The library is loaded when the function is first called, and runs in this process. One from a file runs only where it was
built by this user on this machine (`compass_core.hostcc.provenance`), or where `trust` says so.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from compass_core import switches
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.hostcc import host, provenance
from compass_core.hostcc.clang import find_clang
from compass_runtime.arguments import Arguments, parameters_of
from compass_runtime.callbacks import Callbacks
from compass_runtime.errors import RuntimeStateError, RuntimeValueError
from compass_runtime.module import ENTRY, LOADER, RUNNABLE, SERIALIZABLE, Module, sealed, unsealed
from compass_runtime.packed import register_func

ENTRY_SYMBOL = "compass_entry"


_LISTINGS = {"ll": ("-S", "-emit-llvm"), "asm": ("-S",), "s": ("-S",)}
"""Texts that clang makes of C, and how."""


class HostLibrary(Module):
    """One kernel as a shared library of this machine. `content`: its bytes, or what gives them when they are asked for.

    `description`: the kernel's name and parameters, whether it has parallel loops, on how many threads, and the CPU
    features that its code uses.
    """

    type_key = "compass.runtime.HostLibrary"
    flags = SERIALIZABLE | RUNNABLE

    def __init__(self, content: bytes | Callable[[], bytes], source: str, description: dict[str, Any]) -> None:
        super().__init__()
        self._content, self.source = content, source
        self.description = dict(description)
        if self.description.pop("native", False):
            self.description["features"] = host.current().features
        self.trusted = True
        self.name = str(self.description["name"])
        self.arguments = Arguments(self.name, parameters_of(self.description))
        signatures = self.description.get("packed")
        self._callbacks = Callbacks(signatures) if signatures else None

    @property
    def content(self) -> bytes:
        """The library. ToolchainError where it could not be compiled."""
        return self._content() if callable(self._content) else self._content

    @property
    def format(self) -> str:
        return "c"

    def get_source(self, format: str = "") -> str:
        """The C text; as `ll` what clang makes of it, as `asm` or `s` the processor's instructions. RuntimeStateError where
        these are asked for of a file that somebody else made, or that does not say how it was compiled."""
        return self._listing(format) if format in _LISTINGS else self.source if format in ("", self.format) else ""

    def _listing(self, format: str) -> str:
        flags = self.description.get("flags") if self.trusted else None
        if not isinstance(flags, list):
            raise RuntimeStateError(
                f"there is no '{format}' text of '{self.name}': its code comes from a file",
                code="host-library",
                help="build it here",
            )
        call = [str(find_clang().path), *map(str, flags), *_LISTINGS[format], "-w", "-x", "c", "-", "-o", "-"]
        done = subprocess.run(call, input=self.source, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeStateError(f"clang makes no '{format}' text: {done.stderr:.300}", code="host-library")
        return done.stdout

    @property
    def is_dso_exportable(self) -> bool:
        return True

    def find(self, name: str) -> Callable[..., object] | None:
        return self.call if name in (self.name, ENTRY) else None

    def trust(self) -> None:
        """Lets the code of a file that somebody else made run in this process."""
        self.trusted = True

    @cached_property
    def _entry_point(self) -> Callable[..., int]:
        """The function of the loaded library. RuntimeStateError where its code needs a processor that this one is not, or
        comes from somebody else."""
        if not self.trusted and not provenance.is_ours(self._written):
            raise RuntimeStateError(
                f"'{self.name}' is machine code that was not built here: it would run in this process",
                code="host-library",
                help="if you trust whoever made the file: `module.trust()`; else build it here",
            )
        missing = host.missing_features(str(self.description.get("features", "")))
        if missing:
            raise RuntimeStateError(
                f"the code of '{self.name}' is for a processor with {', '.join(missing)}",
                code="host-library",
                help="build it on this machine",
            )
        loaded = _load(self.content)
        entry = getattr(loaded, ENTRY_SYMBOL)
        entry.restype, entry.argtypes = ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p)
        if self.description["parallel"]:
            _Pool.adopt(loaded)
        if self._callbacks is not None:
            self._callbacks.adopt(loaded)
        found: Callable[..., int] = entry
        return found

    def call(self, *args: object) -> None:
        """Runs with one argument for each parameter; outputs are changed in place."""
        self.prepared(*args)()

    def prepared(self, *args: object) -> Callable[[], None]:
        """The call with these arguments, whose memory is looked at now: called, it only runs."""
        arrays, back = self.arguments.laid_out(args)
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        threads = int(self.description["threads"]) if self.description["parallel"] else None
        return partial(self._run, self._entry_point, pointers, threads, back, arrays)

    def _run(
        self,
        entry: Callable[..., int],
        pointers: ctypes.Array[ctypes.c_void_p],
        threads: int | None,
        back: list[tuple[Array, Array]],
        kept: list[Array],
    ) -> None:
        """Enter the library. `threads`: None without parallel loops; `kept`: what the pointers point to."""
        failed = entry(pointers, None if threads is None else _Pool.function(threads))
        if self._callbacks is not None:
            self._callbacks.finish()
        if failed:
            raise RuntimeStateError(f"out of memory in '{self.name}'", code="out-of-memory")
        for given, used in back:
            given[...] = used

    def save_to_bytes(self) -> bytes:
        if self.trusted:
            provenance.remember(self._written)
        return self._written

    @property
    def _written(self) -> bytes:
        return sealed({"description": self.description, "source": self.source}, self.content)


class _Pool:
    """The threads of this process: those of the first library that has any."""

    library: ctypes.CDLL | None = None

    @classmethod
    def adopt(cls, library: ctypes.CDLL) -> None:
        cls.library = cls.library or library

    @classmethod
    def function(cls, threads: int) -> ctypes.c_void_p:
        assert cls.library is not None
        count = threads or switches.THREADS.get() or host.num_threads()
        ctypes.c_int.in_dll(cls.library, "compass_host_threads").value = count
        return ctypes.cast(cls.library.compass_host_parallel, ctypes.c_void_p)


def _load(content: bytes) -> ctypes.CDLL:
    """The library, loaded from a file that is gone afterwards. RuntimeStateError when the system refuses it."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(prefix="compass-host-", suffix=".so") as file:
            file.write(content)
            file.flush()
            return ctypes.CDLL(file.name, mode=os.RTLD_LOCAL | os.RTLD_NOW)
    except OSError as error:
        raise RuntimeStateError(
            f"the library cannot be loaded: {error}",
            code="host-library",
            help="programs must be allowed to run from the folder of temporary files (TMPDIR)",
        ) from None


def load_content(data: bytes) -> HostLibrary:
    """The module that `save_to_bytes` wrote. RuntimeValueError when the bytes are damaged."""
    try:
        fields, content = unsealed(data, HostLibrary.type_key)
        description, source = fields["description"], fields["source"]
        if not isinstance(source, str):
            raise TypeError("a field is of another type")
        if not isinstance(description["parallel"], bool) or not isinstance(description["threads"], int):
            raise TypeError("a field is of another type")
        module = HostLibrary(content, source, {**description, "native": False})
        module.trusted = False
        return module
    except (CompassError, ValueError, KeyError, TypeError, AttributeError):
        raise RuntimeValueError(f"the content of a {HostLibrary.type_key} is damaged", code="module-file") from None


register_func(LOADER + HostLibrary.type_key, load_content)

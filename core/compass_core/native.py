"""Functions in C that a program can do without."""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from compass_core.errors import CompassError, render


class Native:
    """A library of such functions, by calls: loaded by the first one, None where there is none and it cannot be built.

    `path` tells where it lies, `arguments` what its functions take, and `without` what the log says where there is none.
    """

    def __init__(self, path: Callable[[], Path], arguments: Mapping[str, tuple[type, ...]], without: str) -> None:
        self._path, self._arguments, self._without = path, arguments, without
        self._lock = threading.Lock()
        self._found: list[ctypes.CDLL | None] = []

    @property
    def was_looked_for(self) -> bool:
        """Whether asking for it costs nothing now."""
        return bool(self._found)

    def __call__(self) -> ctypes.CDLL | None:
        if not self._found:
            with self._lock:
                if not self._found:
                    self._found.append(self.load())
        return self._found[0]

    def load(self) -> ctypes.CDLL | None:
        """The library, loaded anew."""
        try:
            library = ctypes.CDLL(str(self._path()))
            for name, arguments in self._arguments.items():
                getattr(library, name).argtypes = arguments
        except (CompassError, OSError, AttributeError) as error:  # the last one: it has not all of them
            logging.getLogger("Compass").debug("%s: %s", self._without, error)
            return None
        return library


def install(build: Callable[[], Path]) -> int:
    """Set-up of a library: `build` makes it and tells where. The exit code; an error is shown."""
    try:
        print(build())
    except CompassError as error:
        print(render(error), file=sys.stderr)
        return error.exit_code
    return 0

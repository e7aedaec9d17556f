"""Modules that are text for devices that nothing here drives."""

from __future__ import annotations

from collections.abc import Callable

from compass_runtime.errors import RuntimeStateError
from compass_runtime.module import ENTRY, Module


class SourceModule(Module):
    """The text of the kernels of a function, in a language of devices. A call is a RuntimeStateError: there is no driver."""

    type_key = "compass.runtime.SourceModule"

    def __init__(self, source: str, language: str, name: str) -> None:
        super().__init__()
        self.source, self.language, self.name = source, language, name

    @property
    def format(self) -> str:
        return self.language

    def get_source(self, format: str = "") -> str:
        """The text; empty in other formats."""
        return self.source if format in ("", self.language) else ""

    def find(self, name: str) -> Callable[..., object] | None:
        return self._launch if name in (ENTRY, self.name) else None

    def _launch(self, *args: object) -> None:
        raise RuntimeStateError(
            f"'{self.name}' was built as text for {self.language} devices, and nothing here launches on these",
            code="no-driver",
            help="`get_source()` is the text; build for llvm or an NPU to run it",
        )

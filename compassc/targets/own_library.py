"""C texts of ours as libraries of this machine: built by set-up beside this file, else into the cache when first asked for."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import host
from compassc.targets.library import LINK, compile_texts, optimised

_FOLDER = Path(__file__).parent / "_lib"
_EXACT = ("-ffp-contract=off", "-fstrict-float-cast-overflow")


@dataclass(frozen=True)
class OwnLibrary:
    """A library of one C text, whose operations are rounded one by one. It runs on processors that have what this one has."""

    name: str
    text: str

    @cached_property
    def _flags(self) -> tuple[str, ...]:
        return (*optimised(3, host.march()), *_EXACT)

    @cached_property
    def _key(self) -> str:
        """Of all that it depends on but the compiler: it need not be built again for a new one."""
        return key_of("own-library", self.name, self.text, *self._flags, *host.code_features())

    @property
    def _prebuilt(self) -> Path:
        return _FOLDER / f"{self.name}.so"

    @property
    def _stamp(self) -> Path:
        return self._prebuilt.with_suffix(".stamp")

    @property
    def _is_prebuilt(self) -> bool:
        there = self._prebuilt.is_file() and self._stamp.is_file()
        return there and self._stamp.read_text(encoding="utf-8") == self._key

    def path(self) -> Path:
        """The library. ToolchainError where there is none and it cannot be built."""
        if self._is_prebuilt:
            return self._prebuilt
        cache = Cache()
        return cache.get("host", self._key) or cache.put("host", self._key, self._build)

    def install(self) -> Path:
        """Builds it beside this file, for set-up; nothing happens when it is there already."""
        if not self._is_prebuilt:
            files.write(self._prebuilt, self._build, 0o777)
            files.write(self._stamp, self._key)
        return self._prebuilt

    @property
    def _build(self) -> partial[None]:
        return partial(compile_texts, {f"{self.name}.c": self.text.encode()}, self._flags, LINK)

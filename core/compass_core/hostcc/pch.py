"""The precompiled `compass/dsl.h`: one per compiler, flags and header contents, made on first use."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from compass_core.errors import CompassError, ToolchainError, UsageError
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import command, host
from compass_core.hostcc.clang import Clang
from compass_core.namedtuple import NamedTuple

_UNKNOWN_OPTION = re.compile(r"(?:error: unknown argument:?|: Unknown command line argument) '(?P<option>[^']+)'")


class Form(NamedTuple):
    """A form of the header: the kind of its entries in the cache, the options that make it, and the one that reads it."""

    kind: str
    language: str
    options: tuple[str, ...]
    reading: str


# Without time stamps a header that was only touched or checked out anew stays usable; its content is in the key.
PRECOMPILED = Form("pch", "cl-header", ("-Xclang", "-fno-pch-timestamp"), "-include-pch")
DECLARATIONS = PRECOMPILED._replace(
    kind="pch-declared", options=(*PRECOMPILED.options, "-Xclang", "-skip-function-bodies")
)
"""Without the bodies of functions, all of which clang reads where it walks through a syntax tree to dump some of it."""
MACROS = Form("macros", "cl", ("-E", "-dM"), "-include")
"""All that a preprocessor needs: for one, clang reads the text of the header itself in the place of what is precompiled."""


def pch_command(clang: Clang, flags: list[str], output: Path, form: Form = PRECOMPILED) -> list[str]:
    """The command that precompiles the header into `output`."""
    header = command.include_folder() / "compass" / "dsl.h"
    return [str(clang.path), "-x", form.language, *_flags(flags), *form.options, str(header), "-o", str(output)]


def pch_path(clang: Clang, flags: list[str], cache: Cache) -> Path:
    """The path of the precompiled header for `flags`, whether or not it exists."""
    return cache.path(PRECOMPILED.kind, _key(clang, flags))


def precompiled_header(clang: Clang, flags: list[str], cache: Cache, form: Form = PRECOMPILED) -> Path:
    """The precompiled header for `flags`, made now when the cache has none.

    ToolchainError when the header itself does not compile: the installation is damaged or the compiler unfit; and when the
    headers are no longer those that the key is of.
    UsageError for a flag that clang does not know.
    """

    def make(path: Path) -> None:
        done = command.run(pch_command(clang, flags, path, form), command.include_folder())
        if unknown := _UNKNOWN_OPTION.search(done.output):
            raise UsageError(f"the C compiler has no option '{unknown['option']}'", code="cc-option")
        if done.status != 0:
            raise ToolchainError(
                f"the C headers do not compile with {clang.path}",
                code="bad-headers",
                notes=tuple(done.output.strip().splitlines()[:12]),
                help="check the installation with `compassc doctor`",
            )
        if changed := command.changed_headers():
            raise changed

    return cache.made(form.kind, _key(clang, flags), make)


def begin(clang: Clang, flags: list[str], cache: Cache) -> None:
    """Has a thread make the precompiled header for `flags` where there is none, for whoever asks for it soon."""

    def make() -> None:
        with suppress(CompassError):  # whoever asks for the header is told
            precompiled_header(clang, flags, cache)

    if not pch_path(clang, flags, cache).exists():
        threading.Thread(target=make, name="compass-pch").start()


def _key(clang: Clang, flags: list[str]) -> str:
    return _key_of(clang.identity, command.headers_hash(), host.current().features, tuple(flags))


@lru_cache(maxsize=8)
def _key_of(clang: str, headers: str, features: str, flags: tuple[str, ...]) -> str:
    return key_of("pch-2", clang, headers, features, *_flags(flags))


def _flags(flags: Sequence[str]) -> list[str]:
    """The flags that matter: of folders the header's own only. A precompiled header names its files by it."""
    return [*command.without_includes(flags), "-I", str(command.include_folder())]

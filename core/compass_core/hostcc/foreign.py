"""Compiling C text that came in a file: by a confined compiler, with options that are ours.

clang has the text on stdin and gives what it makes on stdout. It can read the headers of the dialect, precompiled and as
they are, and its own files.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from compass_core import confine
from compass_core.elf.elf64 import with_section
from compass_core.errors import CompassError, ToolchainError
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import command, divisions, host, pch, provenance
from compass_core.hostcc.clang import ALLOCATION, Clang, find_clang
from compass_core.hostcc.objects import FROM_REPRESENTATION, TO_REPRESENTATION
from compass_core.hostcc.sources import SECTION, Source, section_content
from compass_core.namedtuple import NamedTuple
from compass_core.reading.limits import (
    COMPILE_ALL_SECONDS,
    COMPILE_MEMORY,
    COMPILE_MESSAGES,
    COMPILE_OUTPUT,
    COMPILE_SECONDS,
    HELP,
)

LIMITS = confine.Limits(
    seconds=COMPILE_SECONDS.most,
    memory=COMPILE_MEMORY.most,
    output=COMPILE_OUTPUT.most,
    messages=COMPILE_MESSAGES.most,
)
_LIBRARY = re.compile(r"(?:=> |^\s*)(?P<path>/[^\n]+?) \(0x", re.MULTILINE)
_DYNAMIC_LINKER = "ld-linux"
STDIN = "<stdin>"
"""The name by which clang calls the given text."""
_FIXED = (
    *("--no-default-config", "-fno-crash-diagnostics", "-fmacro-backtrace-limit=4", "-fno-color-diagnostics"),
    "-Wno-builtin-macro-redefined",  # questions about files are taken away
)
"""No files of settings or about crashes, short messages."""
_MAIN_FILE = ("-Xclang", "-main-file-name", "-Xclang", "kernel.cl")
_MOST_WORDS = 12
_MOST_CACHED = 16 << 20
"""Bytes of an object that is kept: what comes from others does not fill the cache folder."""


def compile_source(source: Source, flags: Sequence[str], clang: str | None = None, until: float | None = None) -> bytes:
    """The object of a source compiled with `flags` behind those it declares; taken from the compile cache when it is
    there. `until`: the time of `time.monotonic` at which compiling foreign text ends.

    ToolchainError when clang is missing or does not compile what it compiled before, CompassError where the source is
    foreign and the host has no means to confine the compiler.
    """
    compiler, cache = find_clang(clang), Cache()
    options = command.kernel_flags(compiler, source.define, (*source.options, *flags))
    key = key_of("variant-3", compiler.identity, command.headers_hash(), host.current().features, source.unit, *options)
    if (kept := cache.get("obj", key)) is not None:
        return kept.read_bytes()
    made = _object(compiler, source, options, None if is_trusted(source) else until)
    try:
        data = with_section(made, SECTION, section_content(source))
    except ValueError as error:
        raise ToolchainError(f"the kernel's C text does not become an object: {error}", code="no-variant") from None
    if len(data) <= _MOST_CACHED:
        cache.put("obj", key, data)
    return data


def _object(compiler: Clang, source: Source, options: list[str], until: float | None) -> bytes:
    """The object, in one step or, where integer divisions have to be made safe in ways that the text does not show, in two."""
    behind, to_object = _with_header(compiler, options), ("-c", *_MAIN_FILE)
    if not divisions.divides(source.unit):
        return _clang(compiler, source, source.unit, behind, to_object, until)
    if (called := divisions.called(source.unit)) is not None:
        with suppress(ToolchainError):  # where that is not for the calls, compiling the text itself will tell why
            return _clang(compiler, source, called, behind, to_object, until)
    to_representation = (*TO_REPRESENTATION, *_MAIN_FILE)
    representation = _clang(compiler, source, source.unit, behind, to_representation, until)
    try:
        safe = divisions.guarded(representation.decode(errors="surrogateescape"), divisions.checks(options))
    except ValueError as error:
        raise ToolchainError(
            f"the kernel's C text ('{source.name}') divides in a way that cannot be made safe: {error!s:.200}",
            code="no-variant",
        ) from None
    return _clang(compiler, source, safe, _Step(options, FROM_REPRESENTATION), (), until)


def examine(
    source: Source,
    text: str,
    arguments: Sequence[str],
    clang: str | None = None,
    form: pch.Form = pch.PRECOMPILED,
) -> str:
    """The output of clang for `text`, a form of the source's text, with further `arguments`, behind a form of the header."""
    compiler = find_clang(clang)
    options = command.kernel_flags(compiler, source.define, source.options)
    done = _clang(compiler, source, text, _with_header(compiler, options, form), ("-w", *arguments))
    return done.decode(errors="replace")


def is_trusted(source: Source) -> bool:
    """Whether the user says so, or built it here."""
    return source.trusted or provenance.is_ours(source.identity)


class _Step(NamedTuple):
    """The input of clang: the flags, the language of the text on stdin, and another file."""

    flags: list[str]
    kind: tuple[str, ...]
    files: tuple[Path, ...] = ()


def _with_header(compiler: Clang, options: list[str], form: pch.Form = pch.PRECOMPILED) -> _Step:
    """Reading C text behind the precompiled header."""
    header = pch.precompiled_header(compiler, options, Cache(), form)
    return _Step(options, ("-x", "cl", form.reading, str(header)), (header.resolve(),))


def _clang(
    compiler: Clang, source: Source, text: str, step: _Step, arguments: Sequence[str], until: float | None = None
) -> bytes:
    """The output of clang on stdout for `text`, derived from the source. ToolchainError with its message when it fails."""
    limits = _limits_until(source, until)
    program = compiler.path.resolve()
    line = [str(program), *_FIXED, *step.flags, *arguments, *step.kind, "-o", "-", "-"]
    libraries = _libraries(compiler)
    linkers = [path for path in libraries if path.name.startswith(_DYNAMIC_LINKER)]
    own = program.parent.parent / "lib" / "clang"
    permissions = confine.Permissions(
        files=(*step.files, *libraries),
        folders=(command.include_folder(), *((own,) if own.is_dir() else ())),
        programs=(program, *linkers),
    )
    folders = dict.fromkeys(os.path.dirname(os.path.abspath(path)) for path in libraries)
    data = text.encode(errors="surrogateescape")
    environment = ALLOCATION | {"LC_ALL": "C", "LD_LIBRARY_PATH": ":".join(folders)}
    try:
        done = confine.run(line, data, permissions, limits, environment)
    except confine.NotConfined as refused:
        if not is_trusted(source):
            raise _foreign(source, refused) from None
        done = confine.run(line, data, permissions, limits, environment, trusted=True)
    if done.status != 0 or done.excess:
        raise _failed(source, done)
    return done.output


def _limits_until(source: Source, until: float | None) -> confine.Limits:
    """The limits of one step when all steps end at `until`; a ToolchainError when that has passed."""
    left = LIMITS.seconds if until is None else math.ceil(until - time.monotonic())
    if left <= 0:
        raise ToolchainError(
            f"compiling the C text of this file was stopped at '{source.name}': all of it took more than "
            f"{COMPILE_ALL_SECONDS.most} seconds (limit COMPILE_ALL_SECONDS)",
            code="limit-exceeded",
            help="give --trust if you trust whoever made the file; what was compiled is kept for the next time",
        )
    return replace(LIMITS, seconds=min(LIMITS.seconds, left))


def _foreign(source: Source, refused: CompassError) -> CompassError:
    return CompassError(
        f"the C text of '{source.name}' was not built here, and this host cannot confine the compiler that would read it",
        code="untrusted-source",
        notes=refused.notes,
        help="build the kernel here; or, if you trust whoever made the file, use --trust (in Python: trusted=True)",
    )


def _failed(source: Source, done: confine.Finished) -> ToolchainError:
    words = done.messages.replace(STDIN, source.name).strip().splitlines()[:_MOST_WORDS]
    help = "build the kernel again on this machine"
    if done.excess:
        message = f"compiling the kernel's C text ('{source.name}') was stopped: {done.excess}"
        help = f"a shorter text, or one with fewer faults, stays within the limits on it; {HELP}"
    elif done.status < 0 or "fatal error: error in backend" in done.messages:
        message = f"clang broke down on the kernel's C text ('{source.name}'; status {done.status})"
    else:
        message = f"the kernel's C text does not compile here ('{source.name}')"
    return ToolchainError(message, code="no-variant", notes=tuple(words), help=help)


def _libraries(compiler: Clang) -> list[Path]:
    """The shared libraries that the program loads, and the dynamic linker; remembered in the cache folder."""
    import subprocess

    cache, key = Cache(), key_of("clang-libraries-1", compiler.identity)
    if (kept := cache.get("clang", key)) is not None:
        known = [Path(line) for line in kept.read_text(encoding="utf-8").splitlines()]
        if all(path.is_file() for path in known):
            return known
    try:
        shown = subprocess.run(
            [str(compiler.path)],
            env={"LD_TRACE_LOADED_OBJECTS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"'{compiler.path}' does not run: {error}", code="no-clang") from None
    found = [Path(match["path"]) for match in _LIBRARY.finditer(shown.stdout.decode(errors="replace"))]
    libraries = [path for path in found if path.is_file()]
    cache.put("clang", key, "\n".join(map(str, libraries)).encode())
    return libraries

"""Programs compiled for checks.

Accesses are checked in code that is not optimised, so that each one is there and belongs to its line; every load and
store calls the engine, and clang leaves gaps around arrays. Values are followed in optimised code, where lanes are
chosen without branches, which would count as decisions; the address of each array is given away where it is declared,
or else loads of one that nobody fills would be folded away.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace

from compass_core.hostcc.sources import read_sources
from compass_runtime.checks.modes import Modes
from compass_runtime.plan import GAP
from compass_runtime.program import Program
from compass_runtime.variants import variant

_STACK_SHADOW = 0x1000_0000_0000
"""STACK_SHADOW of sim/engine/check.h."""
_ACCESSES = (
    "-O0",
    "-D__COMPASS_CHECK",
    *("-fsanitize=kernel-address,alignment", "-fsanitize-recover=alignment", "-fno-max-type-align"),
    *("-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    *("-mllvm", "-asan-opt=0"),  # accesses that are in bounds can race
    *("-mllvm", "-asan-use-stack-safety=0"),
    *("-mllvm", "-asan-stack=1"),
    *("-mllvm", "-asan-globals=1"),
    *("-mllvm", "-asan-kernel-mem-intrinsic-prefix=1"),
    *("-mllvm", f"-asan-mapping-offset={_STACK_SHADOW:#x}"),
)
_VALUES = ("-O1", "-D__COMPASS_CHECK_VALUES", "-fsanitize=kernel-memory", "-fno-sanitize-memory-param-retval")
_ARRAY = re.compile(r"^[ \t]*(?:__lsram )?\w+ (\w+)\[\d+\];$", re.MULTILINE)


def _with_addresses(text: str) -> str:
    """C text in which each array of a function is followed by a call that knows its address."""
    return _ARRAY.sub(r"\g<0> __compass_declared(\1);", text)


def _same(text: str) -> str:
    return text


_PASSES: tuple[tuple[Modes, tuple[str, ...], Callable[[str], str]], ...] = (
    (Modes.ALL & ~Modes.UNINIT & ~Modes.OVERFLOW, _ACCESSES, _same),
    (Modes.UNINIT, _VALUES, _with_addresses),
)
"""Each way of compiling, what it can check, and what it changes in the text."""


class CheckedProgram(Program):
    """A program compiled to be checked for `modes`; it runs on a device of its own."""

    gap = GAP
    modes = Modes(0)


_kept: weakref.WeakKeyDictionary[Program, dict[Modes, CheckedProgram]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def checked_programs(program: Program, modes: Modes) -> list[CheckedProgram]:
    """The programs to run, one after another, to check `program` for `modes`; kept for the next time.

    CompassError when the file keeps no C text, ToolchainError when clang is missing.
    """
    found = []
    with _lock:
        kept = _kept.setdefault(program, {})
        for able, flags, change in _PASSES:
            if not able & modes:
                continue
            if able not in kept:
                sources = [replace(s, text=change(s.text)) for s in read_sources(program.code.elf, program.trusted)]
                other = variant(program, flags, sources=sources)
                kept[able] = CheckedProgram(other.content, program.where, program.trusted)
                kept[able].modes = able
            found.append(kept[able])
    return found

"""Programs compiled for checks.

Neither is optimised, so that each access is there and belongs to its line, and what reads a buffer that nobody fills is
not folded away. For accesses, every load and store calls the engine, and clang leaves gaps around arrays. For values,
every variable has a shadow that says which of its bits were set.
"""

from __future__ import annotations

import threading
import weakref

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
_VALUES = ("-O0", "-fsanitize=kernel-memory")
_PASSES: tuple[tuple[Modes, tuple[str, ...]], ...] = (
    (Modes.ALL & ~Modes.UNINIT, _ACCESSES),
    (Modes.UNINIT, _VALUES),
)
"""Each way of compiling, and what it can check."""


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
        for able, flags in _PASSES:
            if not able & modes:
                continue
            if able not in kept:
                other = variant(program, flags)
                kept[able] = CheckedProgram(other.content, program.where)
                kept[able].modes = able
            found.append(kept[able])
    return found

"""Checked runs: kernels compiled again with clang's instrumentation, and its findings as errors.

| module | |
|---|---|
| `modes` | what can be checked |
| `build` | the two ways of compiling: for accesses of memory, and for values that were never written |
| `area` | what the engine is told and what it found (sim/engine/check_area.h) |
| `words` | findings as errors, in the words of a kernel author |
| `overflow` | whole numbers of graphs that reach the ends of their types |
| `run` | running a job with checks |
"""

from compass_runtime.checks.modes import Modes
from compass_runtime.checks.run import applicable, check_call, check_job

__all__ = ["Modes", "applicable", "check_call", "check_job"]

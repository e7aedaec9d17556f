"""A profiled call of a program."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compass_core.errors.rendering import for_stream
from compass_runtime.calls import run_loaded
from compass_runtime.profile.collect import counting
from compass_runtime.profile.result import Profile, profile_of
from compass_runtime.program import Program


def profiled_call(program: Program, args: Sequence[object]) -> Profile:
    """Calls the program like `Program.call`, with counters in its kernels; gives the profile."""
    counted = counting(program).program
    with counted.caller.loaded(args) as job:
        result = run_loaded(job, record=True)
        counted.caller.store(job, args)
    sys.stdout.write(for_stream(result.printf, sys.stdout))
    return profile_of(program, result)

"""What is kept of a case: hashes of its C text and its results, and the estimated cycles of its run.

All of it is the same on every machine. Cycles are counted, not timed. The C text is without what names files and kernels.
Results are bits of the simulator, which computes real numbers without contraction, and functions of the C library in
double precision, rounded once; all NaN count as one, for which of two operands' a sum takes is up to the compiler.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from compass_core.elf.hostcode import ENTRY_PREFIX
from compass_core.hostcc.sources import read_sources
from compass_runtime.calls import run_loaded
from compass_runtime.profile.collect import counting
from compass_runtime.profile.result import Profile, profile_of
from compass_runtime.program import Program

_PLACE = re.compile(r'^# \d+ "[^\n]*\n', re.MULTILINE)
_KEEPER = re.compile(r"^__asm__\(.*?\);\n?", re.MULTILINE | re.DOTALL)
_SHORT = 12


@dataclass(frozen=True)
class Outcome:
    """`c`: a hash of each kernel's C text, in the order of their first run; `launches`: the types of layers of each launch
    and its cycles, of graphs; `refused`: why there is nothing else."""

    cycles: int = 0
    result: str = ""
    c: tuple[str, ...] = ()
    launches: tuple[str, ...] = ()
    refused: str = ""

    def line(self, case: str) -> str:
        """The outcome as a line of a record."""
        return json.dumps({"case": case} | {k: v for k, v in asdict(self).items() if v}, ensure_ascii=False)

    @classmethod
    def of_line(cls, line: str) -> tuple[str, Outcome]:
        """(the case, its outcome) of a line."""
        found = json.loads(line)
        lists = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}
        return lists.pop("case"), cls(**lists)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_SHORT]


def of_arrays(arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    """A hash of the elements of arrays and of their types; the shape does not count."""
    parts = []
    for a in arrays:
        if a.dtype.kind not in "iub":
            a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
        parts += [a.dtype.name.encode(), np.ascontiguousarray(a).tobytes()]
    return digest(b"\0".join(parts))


def texts(program: Program) -> list[str]:
    """The C text of each unit, without places, the kernels' names and the host that it is compiled for."""
    found = []
    for source in read_sources(program.code.elf):
        text = _KEEPER.sub("", _PLACE.sub("", source.text))
        for entry in source.entries:
            text = text.replace(entry.removeprefix(ENTRY_PREFIX), "kernel")
        found.append(text)
    return found


def of_call(program: Program, args: Sequence[Any], outputs: Sequence[np.ndarray[Any, Any]]) -> Outcome:
    """A call of a kernel, whose `outputs` are among the arguments."""
    counted = counting(program).program
    with counted.caller.loaded(args) as job:
        done = run_loaded(job, record=True)
        counted.caller.store(job, args)
    return _outcome(program, profile_of(program, done), outputs)


def of_graph(program: Program, inputs: Mapping[str, np.ndarray[Any, Any]]) -> Outcome:
    """A run of a graph."""
    job = counting(program).program.create_job()
    found = job.run(inputs, record=True)
    profile = profile_of(program, job.result)
    launches = tuple(f"{run.types or run.kernel}: {round(run.cycles)}" for run in profile.layers)
    return _outcome(program, profile, [found[name] for name in sorted(found)], launches)


def _outcome(
    program: Program, profile: Profile, outputs: Sequence[np.ndarray[Any, Any]], launches: tuple[str, ...] = ()
) -> Outcome:
    assert not profile.lost, "the engine had no room for all events of the run"
    c = tuple(digest(text.encode()) for text in texts(program))
    return Outcome(profile.cycles, of_arrays(outputs), c, launches)

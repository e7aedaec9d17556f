"""The output of `compass-run`: a table of the tensors, or everything as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_runtime.compare import Mismatch
from compass_runtime.sizes import spell

if TYPE_CHECKING:
    from compass_runtime.job import Job
    from compass_runtime.profile.result import Profile
    from compass_runtime.rpc.programs import RemoteJob
    from compass_runtime.tensors import ComparedTensor, Comparison

_NAMES_SHOWN = 8
COLUMNS = ("name", "role", "dtype", "shape", "bytes", "file")


@dataclass(frozen=True)
class Outcome:
    """One use of compass-run: the job, where tensors came from and went to, engine times in seconds, mismatches; how many
    samples ran, one after the other."""

    job: Job | RemoteJob
    files: Mapping[str, Path]
    seconds: Sequence[float]
    printed: str
    compared: Sequence[str]
    mismatches: Sequence[Mismatch]
    profile: Profile | None = None
    compared_tensors: Comparison | None = None
    samples: int = 1

    @property
    def median(self) -> float:
        ordered = sorted(self.seconds)
        middle = len(ordered) // 2
        return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """The rows of the table: tensors in the kernel's order, then scalars."""
    out: list[tuple[str, ...]] = []
    for slot in (*outcome.job.inputs, *outcome.job.outputs):
        info = slot.info
        role = "in/output" if info.in_out else info.role
        file = outcome.files.get(info.name)
        out.append((info.name, role, info.dtype.name, spell(slot.shape), str(slot.nbytes), str(file or "(zeros)")))
    for name, value in outcome.job.values.items():
        dtype = outcome.job.program.scalars[name][1]
        out.append((name, "scalar", dtype.name, "", "", f"= {value}"))
    return out


def table(columns: Sequence[str], lines: Sequence[Sequence[str]], numbers: Collection[str] = ()) -> str:
    """Plain text columns, left-aligned but for those called in `numbers`."""
    widths = [max(len(line[i]) for line in (columns, *lines)) for i in range(len(columns))]
    aligned = [str.rjust if name in numbers else str.ljust for name in columns]
    return "\n".join(
        "  ".join(place(cell, width) for place, cell, width in zip(aligned, line, widths, strict=True)).rstrip()
        for line in (columns, *lines)
    )


def text(outcome: Outcome, repeated: bool) -> str:
    """The table, and the engine's times when the run was repeated."""
    lines = [table(COLUMNS, rows(outcome))]
    if outcome.samples > 1:
        lines.append(f"{outcome.samples} samples, one after the other")
    if repeated:
        lines.append(
            f"engine time of {len(outcome.seconds)} runs: min {_time(min(outcome.seconds))}, "
            f"median {_time(outcome.median)}"
        )
    if outcome.compared and not outcome.mismatches:
        lines.append(f"as expected: {', '.join(outcome.compared)}")
    if outcome.compared_tensors is not None:
        lines.append("\n" + comparison(outcome.compared_tensors))
    if outcome.profile is not None:
        from compass_runtime.profile.table import text as tables

        lines.append("\n" + tables(outcome.profile))
    return "\n".join(lines)


COMPARED = ("tensor", "dtype", "elements", "equal", "differ", "largest", "cosine", "")


def comparison(found: Comparison) -> str:
    """The table of compared tensors, in the order in which they are made."""
    lines = [table(COMPARED, [_compared(row) for row in found.rows], COMPARED[2:-1])]
    if found.unused:
        rest = len(found.unused) - _NAMES_SHOWN
        listed = ", ".join(found.unused[:_NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
        lines.append(f"not compared, for no layer makes a tensor of this name: {listed}")
    return "\n".join(lines)


def _compared(row: ComparedTensor) -> tuple[str, ...]:
    head = (row.name, row.dtype, str(row.elements))
    if row.measure is None:
        return (*head, "", "", "", "", row.problem)
    m = row.measure
    cosine = "-" if m.cosine is None else f"{m.cosine:.6f}"
    verdict = "" if row.within else "beyond tolerance"
    return (*head, "yes" if m.equal else "no", str(m.different), f"{m.largest:g}", cosine, verdict)


def _time(seconds: float) -> str:
    return (
        f"{seconds * 1e6:.1f} us"
        if seconds < 1e-3
        else f"{seconds * 1e3:.3f} ms"
        if seconds < 1
        else f"{seconds:.3f} s"
    )


def as_json(outcome: Outcome) -> str:
    """Everything as one JSON object."""
    job = outcome.job
    tensors: list[dict[str, object]] = []
    for slot in (*job.inputs, *job.outputs):
        info, file = slot.info, outcome.files.get(slot.info.name)
        tensors.append(
            {"name": info.name, "role": info.role, "in_out": info.in_out, "dtype": info.dtype.name}
            | {"shape": list(slot.shape), "bytes": slot.nbytes, "file": None if file is None else str(file)}
        )
    kernel = job.program.kernel
    content: dict[str, object] = {
        "program": job.program.where,
        "kernel": kernel.kernel if kernel else None,
        "target": job.program.target,
        "tensors": tensors,
        "scalars": dict(job.values),
        "seconds": {"min": min(outcome.seconds), "median": outcome.median, "runs": list(outcome.seconds)},
        "samples": outcome.samples,
        "printed": outcome.printed,
        "expected": {name: not any(m.name == name for m in outcome.mismatches) for name in outcome.compared},
        "mismatches": [
            {
                "name": m.name,
                "count": m.count,
                "total": m.total,
                "worst": m.worst if math.isfinite(m.worst) else None,
                "worst_index": list(m.worst_index),
            }
            for m in outcome.mismatches
        ],
    }
    if outcome.compared_tensors is not None:
        content["compared"] = [
            {"name": row.name, "dtype": row.dtype, "elements": row.elements, "within": row.within}
            | (_finite(vars(row.measure)) if row.measure else {"problem": row.problem})
            for row in outcome.compared_tensors.rows
        ]
    if outcome.profile is not None:
        from compass_runtime.profile.data import as_data

        content["profile"] = as_data(outcome.profile)
    return json.dumps(content, indent=2)


def _finite(measures: Mapping[str, object]) -> dict[str, object]:
    """JSON has no infinity."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in measures.items()}

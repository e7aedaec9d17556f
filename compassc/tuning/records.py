"""Records: what was measured, one JSON object per line, in files that are only ever appended to."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Finding, Span
from compass_core.reading import jsontext
from compass_core.reading.limits import TUNING_RECORD
from compassc.tuning.result import ERRORS, Result
from compassc.tuning.space import Candidate, key_of
from compassc.tuning.task import Workload

FORMAT = "compassc-tuning/1"
SUFFIX = ".jsonl"
METRICS = ("cycles", "seconds")
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "workload": dict,
    "metric": str,
    "cost": (int, float, type(None)),
    "error": str,
    "message": str,
    "seconds": dict,
}
_WORKLOAD: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "structure": str,
    "shapes": list,
    "dtypes": list,
    "target": str,
    "values": dict,
    "version": str,
}


@dataclass(frozen=True)
class Record:
    """A measurement: what was tried for which workload, and what came of it (`Result`)."""

    workload: Workload
    candidate: Candidate
    metric: str
    cost: float | None
    error: str = ""
    message: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, workload: Workload, candidate: Candidate, metric: str, result: Result) -> Record:
        return cls(workload, candidate, metric, result.cost, result.error, result.message, result.seconds)

    @property
    def result(self) -> Result:
        return Result(self.cost, self.error, self.message, self.seconds)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Equal for two measurements of the same: workload, version, metric, candidate."""
        return self.workload.key, self.workload.version, self.metric, key_of(self.candidate)

    def line(self) -> str:
        """The record as a line of a file."""
        return json.dumps(
            {
                "format": FORMAT,
                "workload": self.workload.as_json(),
                "candidate": self.candidate,
                "metric": self.metric,
                "cost": self.cost,
                "error": self.error,
                "message": self.message,
                "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
            }
        )

    @classmethod
    def parse(cls, line: str | bytes, where: str = "a record") -> Record:
        """The record of a line. CompassError saying what is wrong with it."""
        TUNING_RECORD.check(len(line), where)
        content = jsontext.parse(line, where, "tuning-record", "the record")
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise _bad(f'no record of this toolchain: it does not say "format": "{FORMAT}"')
        _check(content, _FIELDS, "the record")
        if "candidate" not in content:
            raise _bad("the record has no 'candidate'")
        about = content["workload"]
        _check(about, _WORKLOAD, "its workload")
        cost, error, metric = content["cost"], content["error"], content["metric"]
        if metric not in METRICS or (error and error not in ERRORS) or not all(map(_is_shape, about["shapes"])):
            raise _bad("it has a metric, an error or shapes that are none")
        if (cost is None) != bool(error) or isinstance(cost, bool) or (cost is not None and not _is_cost(cost)):
            raise _bad("it must have either an error or a cost, a number of at least 0")
        workload = Workload(
            about["name"],
            about["structure"],
            tuple(tuple(shape) for shape in about["shapes"]),
            tuple(map(str, about["dtypes"])),
            about["target"],
            about["values"],
            about["version"],
        )
        seconds = {str(name): float(value) for name, value in content["seconds"].items() if _is_cost(value)}
        return cls(workload, content["candidate"], metric, cost, error, content["message"], seconds)


def _check(content: Mapping[str, Any], fields: Mapping[str, Any], what: str) -> None:
    for name, kind in fields.items():
        if name not in content or not isinstance(content[name], kind):
            raise _bad(f"{what} has no proper '{name}'")


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in value)


def _is_cost(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max


def _bad(message: str) -> CompassError:
    return CompassError(message, code="tuning-record")


@dataclass(frozen=True)
class RecordFile:
    """A file of records, with the lines that are none."""

    path: Path
    records: tuple[Record, ...]
    problems: tuple[CompassError, ...]


def read(path: Path) -> RecordFile:
    """The records of a file in order. Lines that are none are `problems`, at their line; a last line without its end, as
    a process leaves it that was ended while it wrote, is one of them unless it is whole. CompassError when the file
    cannot be read."""
    records, problems = [], []
    for number, line in enumerate(files.read(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            records.append(Record.parse(line, str(path)))
        except CompassError as error:
            said = f"this line is not used: {error.message}"
            problems.append(Finding(said, Span(str(path), number), code=error.code, help=error.help))
    return RecordFile(path, tuple(records), tuple(problems))


def append(path: Path, records: Sequence[Record]) -> None:
    """Adds records to a file, which is made where it is not there. When this returns they are on the disk; a process that
    ends before leaves whole lines and at most one half, which later lines do not touch. Several processes may append.
    CompassError when it cannot be written."""
    if not records:
        return
    data = "".join(record.line() + "\n" for record in records).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab+") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            size = os.fstat(stream.fileno()).st_size
            if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
                data = b"\n" + data  # a half line stays a line of its own
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise files.unwritable(path, error) from None


def write(path: Path, records: Iterable[Record]) -> None:
    """Writes a file of records, in the place of what was there."""
    files.write(path, "".join(record.line() + "\n" for record in records))


_LONGEST = 100


def candidate_text(record: Record) -> str:
    """A candidate in a line: constants by name; others as JSON, cut."""
    if isinstance(record.candidate, dict) and all(not isinstance(v, (dict, list)) for v in record.candidate.values()):
        return " ".join(f"{name}={value}" for name, value in record.candidate.items())
    text = json.dumps(record.candidate)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def workload_text(record: Record) -> str:
    """A workload in a line."""
    about = record.workload
    sizes = [f"{name}={value}" for name, value in about.values.items()]
    sizes += ["x".join(map(str, shape)) for shape in about.shapes]
    return " ".join([about.name, *sizes])


def distinct(records: Iterable[Record]) -> Iterator[Record]:
    """Each measurement once: of the same candidate there may be several, with other outcomes."""
    seen = set()
    for record in records:
        what = *record.identity, record.cost, record.error
        if what not in seen:
            seen.add(what)
            yield record


def best(records: Iterable[Record]) -> dict[tuple[str, str, str], Record]:
    """By workload, version and metric the record of least cost, the first one of several; none where all have failed."""
    found: dict[tuple[str, str, str], Record] = {}
    for record in records:
        group = record.identity[:3]
        if record.cost is not None and (group not in found or record.cost < (found[group].cost or 0)):
            found[group] = record
    return found


def pruned(records: Iterable[Record], keep: int = 1) -> list[Record]:
    """The `keep` best candidates of each workload, version and metric, best first; what failed is left out."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if record.cost is not None:
            groups.setdefault(record.identity[:3], []).append(record)
    kept = []
    for group in groups.values():
        ranked: dict[str, Record] = {}
        for record in sorted(group, key=lambda r: r.cost or 0):
            ranked.setdefault(record.identity[3], record)
        kept += list(ranked.values())[:keep]
    return kept

"""The record: what every case gave, a file of JSON lines per family, sorted by case, so that a change reads well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from tests.replay.families import FAMILIES
from tests.replay.outcome import Outcome

FOLDER = Path(__file__).with_name("record")
Outcomes = dict[str, Outcome]


def _lines(path: Path) -> Iterable[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else ()


def load(path: Path) -> Outcomes:
    """The outcomes in a file by case; of a case that is there twice, the last."""
    return dict(map(Outcome.of_line, _lines(path)))


def recorded() -> Outcomes:
    """All outcomes on record by FAMILY/CASE."""
    return {f"{f}/{case}": one for f in FAMILIES for case, one in load(FOLDER / f"{f}.jsonl").items()}


def store(outcomes: Mapping[str, Outcome]) -> None:
    """Writes the record anew."""
    for family in FAMILIES:
        lines = [
            o.line(n.removeprefix(f"{family}/")) for n, o in sorted(outcomes.items()) if n.startswith(f"{family}/")
        ]
        (FOLDER / f"{family}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def existing() -> list[str]:
    """All cases that there are, by FAMILY/CASE."""
    return [f"{family}/{name}" for family, cases in FAMILIES.items() for name in sorted(cases.names())]


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """The names that one of the patterns fits, all where there is none; a pattern fits what stands below it, too."""
    listed = [p.rstrip("/") for p in patterns] or ["*"]
    return [n for n in names if any(fnmatchcase(n, p) or fnmatchcase(n, f"{p}/*") for p in listed)]

"""Two sets of outcomes beside each other: what became of each case, and sums by family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from compassc.cli.tables import table_text
from tests.replay.outcome import Outcome


class Verdict(Enum):
    """What became of a case, as tables call it."""

    EQUAL = "equal"
    BETTER = "better"
    WORSE = "worse"
    RESULT = "other result"
    REFUSED = "refused"
    NEW = "new"
    GONE = "gone"


BAD = (Verdict.WORSE, Verdict.RESULT, Verdict.REFUSED)
"""What a change must not do without saying why."""


@dataclass(frozen=True)
class Comparison:
    """A case before and now; None where it was not there."""

    case: str
    before: Outcome | None
    now: Outcome | None
    tolerance: float = 0.0
    """The part by which cycles may grow."""

    @property
    def verdict(self) -> Verdict:
        if self.before is None or (self.before.refused and self.now and not self.now.refused):
            return Verdict.NEW
        if self.now is None:
            return Verdict.GONE
        if self.now.refused:
            return Verdict.EQUAL if self.before.refused else Verdict.REFUSED
        if self.now.result != self.before.result:
            return Verdict.RESULT
        if self.now.cycles > self.before.cycles * (1 + self.tolerance):
            return Verdict.WORSE
        return Verdict.BETTER if self.now.cycles < self.before.cycles else Verdict.EQUAL

    @property
    def other_c(self) -> bool:
        return bool(self.before and self.now and self.before.c != self.now.c)

    @property
    def family(self) -> str:
        return self.case.partition("/")[0]

    def row(self) -> tuple[str, ...]:
        """The case in a table."""
        before, now = (one.cycles if one else 0 for one in (self.before, self.now))
        why = self.now.refused if self.now else ""
        return self.case, self.verdict.value, f"{before:,}", f"{now:,}", change(before, now), why


def change(before: int, now: int) -> str:
    """How cycles changed: `-3.1 %`, or `=`."""
    if before == now or not before:
        return "="
    return f"{100 * (now - before) / before:+.1f} %"


def compared(before: Mapping[str, Outcome], now: Mapping[str, Outcome], tolerance: float = 0.0) -> list[Comparison]:
    """Every case of both, by name."""
    return [Comparison(n, before.get(n), now.get(n), tolerance) for n in sorted({*before, *now})]


def report(found: Sequence[Comparison]) -> str:
    """The cases that are not equal, and the sums."""
    changed = [one for one in found if one.verdict is not Verdict.EQUAL]
    parts = []
    if changed:
        parts.append(table_text(("", ("case", "", "cycles before", "now", "", ""), [one.row() for one in changed])))
    columns = ("family", "cases", *(v.value for v in Verdict), "other C", "cycles before", "now", "")
    families = dict.fromkeys(one.family for one in found)
    rows = [_sums(family, [one for one in found if one.family == family]) for family in families]
    parts.append(table_text(("", columns, [*rows, _sums("all", found)])))
    return "\n".join(parts)


def _sums(name: str, found: Sequence[Comparison]) -> tuple[object, ...]:
    counts = Counter(one.verdict for one in found)
    both = [(one.before.cycles, one.now.cycles) for one in found if one.before and one.now and not one.now.refused]
    before, now = (sum(pair[i] for pair in both) for i in (0, 1))
    others = sum(one.other_c for one in found)
    return name, len(found), *(counts[v] for v in Verdict), others, f"{before:,}", f"{now:,}", change(before, now)

"""Profiles of runs call by call: what each kernel took, as a table, as JSON, as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from compass_core.dataclass import dataclass
from compass_core.reading import jsontext
from compass_runtime.errors import RuntimeValueError


@dataclass(frozen=True)
class Duration:
    """A time in microseconds."""

    microseconds: float


@dataclass(frozen=True)
class Percent:
    """A share of the longest device's time."""

    percent: float


@dataclass(frozen=True)
class Count:
    """How often something happened."""

    count: int


@dataclass(frozen=True)
class Ratio:
    """A number that is averaged over calls, not summed."""

    ratio: float


Metric = Duration | Percent | Count | Ratio | str
Call = Mapping[str, Metric]
_FIELDS: Mapping[str, type[Any]] = {
    "microseconds": Duration,
    "percent": Percent,
    "count": Count,
    "ratio": Ratio,
}
FIRST = ("Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes")
"""The first columns; others follow by the alphabet."""
_NAME, _TIME, _SHARE, _DEVICE, _COUNT, _SHAPES = FIRST
SPACE = "  "


def _number(m: Metric) -> float:
    """The number of a metric; 0 for a text."""
    return 0.0 if isinstance(m, str) else float(next(iter(vars(m).values())))


def _shown(m: Metric) -> str:
    if isinstance(m, str):
        return m
    return f"{_number(m):,.2f}" if not isinstance(m, Count) else f"{m.count:,}"


def _merged(metrics: Sequence[Metric]) -> Metric:
    """The metric of several calls: sums, means of ratios, and texts where all are one."""
    first = metrics[0]
    if isinstance(first, str):
        return first if all(m == first for m in metrics) else ""
    total = sum(_number(m) for m in metrics)
    if isinstance(first, Count):
        return Count(int(total))
    return Ratio(total / len(metrics)) if isinstance(first, Ratio) else type(first)(total)


class Report:
    """What calls and devices took. `calls`: metrics by column, in the order the calls ran in; `device_metrics`: metrics by column
    of each device for the whole run; `configuration`: what else is to be told."""

    def __init__(
        self,
        calls: Sequence[Call],
        device_metrics: Mapping[str, Call],
        configuration: Mapping[str, Metric] | None = None,
    ) -> None:
        self.calls = list(calls)
        self.device_metrics = dict(device_metrics)
        self.configuration = dict(configuration or {})

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """A table in text: the longest calls first, equal ones as one, with sums and a row for each device."""
        calls = self._aggregated() if aggregate else self.calls
        if sort:
            calls = sorted(calls, key=lambda c: -_number(c.get(_TIME, "")))
        rows = [dict(c) for c in calls]
        if col_sums and rows:
            rows.append({"Name": "----------"})
            rows.append({**self._sums(calls), _NAME: "Sum"})
        for device, metrics in self.device_metrics.items():
            rows.append({**metrics, _NAME: "Total", _DEVICE: device})
        columns = self._columns()
        shown = [columns, *([_shown(row.get(c, "")) for c in columns] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*shown)]
        lines = [SPACE.join(t.rjust(w) if i else t.ljust(w) for i, (t, w) in enumerate(zip(r, widths))) for r in shown]
        told = [f"{name}: {_shown(value)}" for name, value in self.configuration.items()]
        return "\n".join([*lines, "", "Configuration", "-------------", *told, ""])

    __str__ = table

    def _columns(self) -> list[str]:
        known = {c for call in [*self.calls, *self.device_metrics.values()] for c in call} | {_NAME, _DEVICE}
        return [c for c in FIRST if c in known] + sorted(known - {*FIRST})

    def _aggregated(self) -> list[Call]:
        groups: dict[tuple[Metric, ...], list[Call]] = {}
        for call in self.calls:
            key = (call.get("Hash", call.get(_NAME, "")), call.get(_SHAPES, ""), call.get(_DEVICE, ""))
            groups.setdefault(key, []).append(call)
        return [
            {
                name: _merged([c[name] for c in group if name in c])
                for name in dict.fromkeys(n for c in group for n in c)
            }
            for group in groups.values()
        ]

    def _sums(self, calls: Sequence[Call]) -> dict[str, Metric]:
        names = dict.fromkeys(n for c in calls for n in c)
        sums = {name: _merged([c[name] for c in calls if name in c]) for name in names}
        return {name: m for name, m in sums.items() if isinstance(m, (Duration, Percent, Count))}

    def csv(self) -> str:
        """A line of sorted column names, and a line for each call; texts are quoted."""
        columns = sorted({c for call in self.calls for c in call})
        out = io.StringIO()
        writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        out.write(",".join(columns) + "\n")
        for call in self.calls:
            values = (call.get(c, "") for c in columns)
            writer.writerow([m if isinstance(m, str) else next(iter(vars(m).values())) for m in values])
        return out.getvalue()

    def json(self) -> str:
        """All of it, as `from_json` reads it."""

        def group(metrics: Call) -> dict[str, dict[str, object]]:
            return {n: {"string": m} if isinstance(m, str) else dict(vars(m)) for n, m in metrics.items()}

        return json.dumps(
            {
                "calls": [group(c) for c in self.calls],
                "device_metrics": {d: group(m) for d, m in self.device_metrics.items()},
                "configuration": group(self.configuration),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report of a text. RuntimeValueError where it is damaged."""
        given = jsontext.parse(text, "report", code="profile-json", what="the report")
        try:
            return cls(
                [_group(c) for c in given["calls"]],
                {str(d): _group(m) for d, m in given["device_metrics"].items()},
                _group(given.get("configuration", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RuntimeValueError(
                f"this is no report: {type(error).__name__}: {error}", code="profile-json", help="give what json() made"
            ) from None


def _group(given: Mapping[str, Mapping[str, str | float]]) -> dict[str, Metric]:
    return {str(name): _metric(value) for name, value in given.items()}


def _metric(given: Mapping[str, str | float]) -> Metric:
    ((kind, value),) = given.items()
    if kind == "string":
        return str(value)
    made: Metric = _FIELDS[kind](int(value) if kind == "count" else float(value))
    return made

"""Laws of files of records."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc.tuning import history, records
from compassc.tuning.measure import ERRORS
from compassc.tuning.records import Record
from compassc.tuning.space import ParameterSpace
from compassc.tuning.task import Workload
from tests.words import CHARACTERS

SIZES = st.lists(st.integers(0, 4096), max_size=3).map(tuple)
WORKLOADS = st.builds(
    Workload,
    st.text(CHARACTERS, max_size=5),
    st.sampled_from(["matmul", "softmax"]),
    st.lists(SIZES, max_size=2).map(tuple),
    st.lists(st.sampled_from(["int8", "float32"]), max_size=2).map(tuple),
    st.sampled_from(["X2_1204", "X3P_1304"]),
    st.dictionaries(st.text(CHARACTERS, max_size=3), st.integers(), max_size=2),
)
OUTCOMES = st.tuples(st.floats(0, 1e12), st.just("")) | st.tuples(st.none(), st.sampled_from(ERRORS))
RECORDS = st.builds(
    lambda workload, tile, metric, outcome, words: Record(workload, {"tile": tile}, metric, *outcome, words),
    WORKLOADS,
    st.integers(1, 4),
    st.sampled_from(records.METRICS),
    OUTCOMES,
    st.text(CHARACTERS, max_size=9),
)


def record(tile: int, cost: float | None, version: str | None = None, size: int = 8) -> Record:
    about = Workload("w", "w", ((size,),), ("int8",), "X2_1204")
    error = "" if cost is not None else "wrong"
    return Record(about if version is None else replace(about, version=version), {"tile": tile}, "cycles", cost, error)


@given(RECORDS)
def test_a_line_gives_the_record_back(one: Record) -> None:
    assert "\n" not in one.line()
    assert Record.parse(one.line()) == one


@settings(max_examples=60)
@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_damage_costs_only_the_lines_that_it_is_in(
    tmp_path_factory: pytest.TempPathFactory, many: list[Record], data: st.DataObject
) -> None:
    """And each of them is told with its number."""
    path = tmp_path_factory.getbasetemp() / "damaged.jsonl"
    at = data.draw(st.integers(0, len(many)))
    damage = data.draw(
        st.sampled_from(
            ["{", "[]", "null", "x", '{"format": "other/1"}', many[0].line()[:-5], '{"a":' * 500 + "1" + "}" * 500]
        )
    )
    lines = [r.line() for r in many]
    path.write_text("\n".join([*lines[:at], damage, *lines[at:]]))
    found = records.read(path)
    assert list(found.records) == many
    assert [p.span.line for p in found.problems if p.span] == [at + 1]
    assert "not used" in found.problems[0].message


FIELDS = ["format", "workload", "metric", "cost", "error", "seconds"]
WRONG = [(n, v) for n in FIELDS for v in ("missing", [[-1]], True)] + [
    ("candidate", "missing"),
    ("cost", "7"),
    *((f"workload.{n}", v) for n in ("structure", "shapes", "version") for v in ("missing", [[-1]], 7.5)),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_every_field_is_looked_at(name: str, value: object) -> None:
    content = json.loads(record(1, 5).line())
    inside, _, key = name.rpartition(".")
    holder = content[inside] if inside else content
    if value == "missing":
        del holder[key]
    else:
        holder[key] = value
    with pytest.raises(CompassError):
        Record.parse(json.dumps(content))


@pytest.mark.parametrize("cost", ["NaN", "Infinity", "-1", "1e999"])
def test_a_cost_is_a_number(cost: str) -> None:
    with pytest.raises(CompassError):
        Record.parse(record(1, 5.0).line().replace('"cost": 5.0', f'"cost": {cost}'))


def test_a_half_line_is_left_behind_by_nobody(tmp_path: Path) -> None:
    """What a killed process wrote half costs one line, whatever is appended behind it."""
    path, whole = tmp_path / "r.jsonl", [record(1, 10), record(2, 9)]
    records.append(path, whole)
    complete = path.read_bytes()
    half = record(3, 8).line()
    for cut in (1, len(half) // 2, len(half) - 1, len(half)):
        path.write_bytes(complete + half[:cut].encode())
        records.append(path, [record(4, 7)])
        found = records.read(path)
        expected = [*whole, *([record(3, 8)] if cut == len(half) else []), record(4, 7)]
        assert list(found.records) == expected
        assert len(found.problems) == (cut != len(half))


def _append_many(path: Path, tile: int) -> None:
    for size in range(20):
        records.append(path, [record(tile, 1.0, size=size)] * 3)


def test_processes_append_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    others = [multiprocessing.get_context("fork").Process(target=_append_many, args=(path, n)) for n in range(3)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    found = records.read(path)
    assert len(found.records) == 180 and not found.problems


@settings(max_examples=50)
@given(st.lists(RECORDS, max_size=12), st.integers(1, 3))
def test_pruning_keeps_the_best(many: list[Record], keep: int) -> None:
    kept = records.pruned(many, keep)
    assert set(records.best(kept)) == set(records.best(many))
    for group, one in records.best(many).items():
        same = [r for r in kept if r.identity[:3] == group]
        costs = [r.cost for r in same]
        assert costs == sorted(c for c in costs if c is not None) and costs[0] == one.cost
        assert len({r.identity for r in same}) == len(same) <= keep


def test_history_takes_the_least_cost_of_this_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, folder = tmp_path / "mine.jsonl", tmp_path / "database"
    records.write(mine, [record(1, 10), record(2, 9), record(3, None), record(4, 1, version="0.0.1")])
    records.append(folder / "all.jsonl", [record(5, 8)])
    about = record(1, 1).workload

    def best() -> object:
        found = history.history().best(about)
        return found and found.candidate["tile"]

    monkeypatch.delenv("COMPASS_TUNING", raising=False)
    assert best() is None
    with history.apply_history_best(mine):
        assert best() == 2
        assert history.history().others == 1
        monkeypatch.setenv("COMPASS_TUNING", str(folder))
        assert best() == 5
        records.append(folder / "all.jsonl", [record(6, 2)])
        assert best() == 6, "what is appended is seen"
        within = history.history().best(about, ParameterSpace({"tile": [1, 2]}))
        assert within is not None and within.candidate == {"tile": 2}, "the best of those that the space has"
        assert history.history().best(about, ParameterSpace({"tile": [77]})) is None
    assert best() == 6
    monkeypatch.delenv("COMPASS_TUNING")
    assert best() is None


def test_lines_that_are_none_are_told_and_the_rest_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("nonsense\n" + record(1, 3).line() + "\n")
    with caplog.at_level(logging.WARNING, "Compass"), history.apply_history_best(path):
        found = history.history().best(record(1, 1).workload)
    assert found is not None and found.cost == 3
    assert f"{path}:1" in caplog.text


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CompassError, match=r"no\.jsonl"), history.apply_history_best(tmp_path / "no.jsonl"):
        pass


def test_unknown_sizes_take_what_most_sizes_want() -> None:
    known = history.History(
        [record(1, 10, size=1), record(2, 20, size=2), record(2, 30, size=3), record(9, 90, size=4)]
    )
    other = replace(record(1, 1).workload, shapes=((77,),))
    assert known.best(other) is None
    assert known.usual(other) == {"tile": 2}
    assert known.usual(replace(other, structure="another")) is None
    assert math.isclose(known.family(other)[0].cost or 0, 10)

"""A sample of the replay: kernels give what they gave when the record was made, in no more cycles; and laws of the tool."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.hostcc import host
from compassc import topi
from compassc.layers.samples import SAMPLES
from compassc.layers.support import has_kernel
from tests.choosing import chosen, some
from tests.replay.compare import BAD, Comparison, Verdict, compared, report
from tests.replay.families import FAMILIES, measure, programs, steady
from tests.replay.outcome import Outcome, of_arrays, texts
from tests.replay.record import FOLDER, load, matching, recorded, store

RECORD = recorded()
UPDATE = "python -m tests.replay record CASE..., and tests/README.md about when to"
KNOWN = Outcome(100, "aa", ("c",), ("Softmax: 100",))


def sample() -> list[str]:
    """Some cases of each family."""
    found = []
    for family, one in FAMILIES.items():
        if one.every:
            found += sorted(chosen((n for n in RECORD if n.startswith(f"{family}/")), one.every))
    return found


@pytest.mark.parametrize("case", sample())
def test_a_case_gives_what_it_gave_in_no_more_cycles(case: str) -> None:
    found = compared({case: RECORD[case]}, {case: measure(case)})
    assert not any(one.verdict in BAD for one in found), f"{report(found)}{UPDATE}"


def test_everything_that_is_declared_is_on_record() -> None:
    """At least one case each: the others are counted by `make replay`."""
    listed = {"/".join(name.split("/")[:2]) for name in RECORD}
    layers = [name for name in SAMPLES if has_kernel(name)]
    wanted = [f"topi/{n}" for n in topi.OPERATORS] + [f"layers/{n}" for n in layers]
    wanted += [f"examples/{n}" for n in FAMILIES["examples"].names()]
    assert sorted(set(wanted) - listed) == [], UPDATE


def test_the_record_is_sorted_small_and_without_repetition() -> None:
    for path in some(FOLDER.glob("*.jsonl")):
        cases = [Outcome.of_line(line)[0] for line in path.read_text(encoding="utf-8").splitlines()]
        assert cases == sorted(set(cases)) and cases, path.name
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000


def test_a_record_reads_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tests.replay.record.FOLDER", tmp_path)
    outcomes = {
        "layers/B/int8": KNOWN,
        "layers/A/int8": Outcome(refused="no kernel"),
        "topi/add": Outcome(3, "b", ("d",)),
    }
    store(outcomes)
    assert recorded() == outcomes
    assert list(load(tmp_path / "layers.jsonl")) == ["A/int8", "B/int8"]


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (KNOWN, KNOWN, Verdict.EQUAL),
        (KNOWN, Outcome(100, "aa", ("d",)), Verdict.EQUAL),
        (KNOWN, Outcome(99, "aa"), Verdict.BETTER),
        (KNOWN, Outcome(101, "aa"), Verdict.WORSE),
        (KNOWN, Outcome(99, "ab"), Verdict.RESULT),
        (KNOWN, Outcome(refused="why"), Verdict.REFUSED),
        (Outcome(refused="why"), Outcome(refused="for another reason"), Verdict.EQUAL),
        (Outcome(refused="why"), KNOWN, Verdict.NEW),
        (None, KNOWN, Verdict.NEW),
        (KNOWN, None, Verdict.GONE),
    ],
)
def test_verdicts(before: Outcome | None, now: Outcome | None, verdict: Verdict) -> None:
    one = Comparison("layers/A/int8", before, now)
    assert one.verdict is verdict
    assert one.other_c == bool(before and now and before.c != now.c)
    (found,) = compared({} if before is None else {"A": before}, {} if now is None else {"A": now})
    assert found.verdict is verdict and verdict.value in report([found])


def test_cycles_may_grow_by_the_tolerance() -> None:
    assert Comparison("A", KNOWN, Outcome(102, "aa"), 0.02).verdict is Verdict.EQUAL
    assert Comparison("A", KNOWN, Outcome(103, "aa"), 0.02).verdict is Verdict.WORSE


def test_patterns_name_cases_and_what_stands_below_them() -> None:
    names = ["layers/Add/int8", "layers/Add/uint8", "topi/add/int8/1"]
    assert matching(names, []) == names
    assert matching(names, ["layers/Add"]) == names[:2]
    assert matching(names, ["*/int8"]) == matching(names, ["*/int8/"]) == [names[0], names[2]]


def test_the_results_of_nan_do_not_depend_on_which_nan_it_is() -> None:
    one, other = np.array([0x7FC00000, 0xFFC00001], "uint32").view("float32")
    assert of_arrays([np.array([one])]) == of_arrays([np.array([other])])
    assert of_arrays([np.float32([0.0])]) != of_arrays([np.float32([-0.0])])


def test_the_c_text_does_not_tell_which_machine_it_is_compiled_on() -> None:
    (program,) = programs(min(name for name in RECORD if name.startswith("layers/")))
    (text,) = texts(program)
    assert "__kernel void" in text and host.triple() not in text and host.current().features not in text


def test_statistics_do_not_depend_on_the_order_of_sums() -> None:
    from compassc.quantizer.statistics import Calibration, Moments, Record

    def found(factor: float) -> Calibration:
        values = np.linspace(-1, 2, 99) * factor
        return steady(Calibration({"x": Record.of(values.astype("float64"))}, {"l": Moments(values[None], None)}))

    one, other = found(1.0), found(1 + 1e-9)
    assert one.records["x"].most > 1.9 and str(one) == str(other) != str(found(1.01))

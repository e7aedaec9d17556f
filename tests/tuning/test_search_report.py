"""Reports of searches: the numbers first, then that the page shows them and needs nothing else."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from compassc.tuning.records import Record
from compassc.tuning.report import importance, knobs_of, report_of
from compassc.tuning.report_page import amount, page
from compassc.tuning.task import Program
from compassc.tuning.tune import TuneOptions, tune

from .invented import Invented, Valley


class Shown(Valley):
    def program(self, candidate):
        return Program("a < b && c: the <program> itself")


@pytest.fixture(scope="module")
def search():
    return tune(Shown(), TuneOptions(trials=40, strategy="model", seed=1), workers=Invented())


def test_the_numbers_are_those_of_the_records(search):
    report = report_of(search)
    assert report.costs == tuple(r.cost for r in search.records)
    good = [c for c in report.costs if c is not None]
    assert report.best[-1] == min(good) and report.default == search.records[0].cost
    known = [b for b in report.best if b is not None]
    assert known == sorted(known, reverse=True)
    assert len(report.expected) == sum(r.cost is not None for r in search.records[1:])
    assert [c for _, c, _ in report.leaders] == sorted(good)[:5]
    assert json.loads(json.dumps(report.as_data())) == report.as_data()


def record(search, cost, **knobs):
    return replace(search.records[0], candidate=knobs, cost=cost, error="")


def test_a_knob_that_decides_alone_has_all_the_importance(search):
    records = [record(search, 100.0 * 2**a, a=a, b=b, c=7) for a in range(4) for b in range(4)]
    shares = dict(importance(records))
    assert shares["a"] == pytest.approx(1) and shares["b"] == shares["c"] == 0
    assert next(n for n, _ in importance(records)) == "a"


def test_knobs_that_decide_as_much_share_it(search):
    records = [record(search, 100.0 * 2 ** (a + b), a=a, b=b) for a in range(6) for b in range(6)]
    shares = dict(importance(records))
    assert shares["a"] == pytest.approx(shares["b"]) and 0.4 < shares["a"] < 0.5


def test_decisions_of_traces_are_knobs():
    assert knobs_of({"decisions": {"y.i": [1, 2, 4]}, "trace": []}) == {"y.i": [1, 2, 4]}
    assert knobs_of({"tile": 3}) == {"tile": 3} and knobs_of(5) == {"candidate": 5}


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta",):
            self.open.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href")]

    def handle_startendtag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_shows_it_and_loads_nothing(search):
    failed = replace(
        search.records[0], candidate={"tile": 128}, cost=None, error="infeasible", message="128 is too much"
    )
    report = report_of(replace(search, records=[*search.records, failed]), {"cycles.bound": 0.75, "run.dot": 0.25})
    text = page(report)
    parser = Balanced()
    parser.feed(text)
    assert not parser.open and not parser.links
    for title in ("Convergence", "Predicted and measured", "Importance of knobs", "The best program", "Failed trials"):
        assert f"<h2>{title}</h2>" in text
    assert "a &lt; b &amp;&amp; c: the &lt;program&gt; itself" in text and "128 is too much" in text
    (data,) = re.findall(r'<script type="application/json" id="search">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data) == report.as_data()
    assert text.count('class="trial"><title>trial') == sum(c is not None for c in report.costs)


def test_searches_without_a_result_have_a_page_too(search):
    failed = [Record(r.workload, r.candidate, r.metric, None, "wrong", "y[0] differs") for r in search.records[:3]]
    text = page(report_of(replace(search, records=failed, predicted={})))
    assert "No trial gave a right result" in text and "y[0] differs" in text
    assert "Convergence" in page(report_of(replace(search, records=[], predicted={})))
    one = page(report_of(replace(search, records=search.records[:1], predicted={})))
    assert "trial 1" in one


def test_costs_are_written_by_their_unit():
    assert amount(1234567.0, "cycles") == "1,234,567"
    assert amount(0.0123, "seconds") == "12.300 ms" and amount(2e-6, "seconds") == "2.0 µs"

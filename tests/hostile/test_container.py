"""A short run of the fuzz campaign (`make fuzz-container` is the long one)."""

from __future__ import annotations

from tests.hostile.container import CONTAINER, answer, corpus, notes_of
from tests.hostile.harness import campaign

COUNT = 4000


def test_the_files_to_start_from_are_sound():
    for data in corpus():
        assert answer(data).startswith("read")
    assert len(notes_of(corpus()[0])) == 15


def test_damaged_files_are_refused_or_read_never_more():
    run = campaign(CONTAINER, 2026, COUNT)
    assert not run.failures
    assert COUNT / 20 < run.read < COUNT * 0.9
    assert len(run.answers) > 60
    assert run.slowest < 1

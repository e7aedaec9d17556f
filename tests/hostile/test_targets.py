"""A short run of every target (`make fuzz-TARGET COUNT=N` are the long ones)."""

from __future__ import annotations

import pytest

from tests.choosing import some
from tests.hostile import native
from tests.hostile.commands import CLI
from tests.hostile.harness import campaign
from tests.hostile.targets import TARGETS

COUNTS = {
    "debug": 600,
    "modules": 1500,
    "npy": 1500,
    "graphs": 1500,
    "stages": 400,
    "tflite": 800,
    "onnx": 300,
    "messages": 400,
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_inputs_to_start_from_are_read(name):
    target = TARGETS[name]
    for data in some(target.corpus()):
        assert target.answer(data, (), True).startswith("read"), data[:40]


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_damaged_inputs_are_refused_or_read_never_more(name, count):
    run = campaign(TARGETS[name], 2026, count)
    assert not run.failures
    assert count / 30 < run.read < count * 0.9
    assert len(run.answers) > 9


FEW = {"statistics": 20, "samples": 150, "settings": 100, "records": 300, "te-traces": 300, "tir-traces": 80}
"""Of readers whose inputs take long, or seldom stay sound."""


@pytest.mark.parametrize(("name", "count"), FEW.items())
def test_what_users_bring_besides_models_is_refused_or_read(name, count):
    target = TARGETS[name]
    for data in target.corpus():
        assert target.answer(data, (), True).startswith("read"), data[:40]
    run = campaign(target, 2026, count)
    assert not run.failures
    assert len(run.answers) > 5


def test_random_command_lines_end_with_a_documented_status():
    for data in CLI.corpus():
        assert CLI.answer(data, (), True).startswith("read")
    run = campaign(CLI, 2026, 300)
    assert not run.failures
    assert run.read > 30 and len(run.answers) > 30


@pytest.mark.parametrize("name", native.NATIVE)
def test_c_readers_under_sanitizers(name):
    if reason := native.why_not():
        pytest.skip(reason)
    run = native.run(native.NATIVE[name], 3000, 2026)
    assert not run.failure
    assert run.inputs >= 3000 and run.covered > 100

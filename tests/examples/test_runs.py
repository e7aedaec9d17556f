"""Every example gives what NumPy gives, in each of the three ways, and PySim and the simulator agree bit for bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import harness
import pytest
from harness import COMPASS_RUN, COMPASSC, Example, check_expected, check_identical, names

from compass_runtime.cli import main as compass_run
from tests.choosing import some
from tests.conftest import Outcome

SEEDS = (1, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_simulator_and_pysim_agree(example: Example, seed: int) -> None:
    for case in some(example.cases(seed)):
        simulated, interpreted = example.run_python(case), example.run_pysim(case)
        check_expected(case, simulated, "simulator")
        check_identical(case, interpreted, simulated, "PySim and simulator")


@pytest.fixture
def in_this_process(compassc: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of an example run in this process."""

    def call(command: list[object]) -> None:
        words = [str(word) for word in command]
        if words[: len(COMPASSC)] == COMPASSC:
            done = compassc(*words[len(COMPASSC) :])
            assert done.status == 0, done
        else:
            assert words[: len(COMPASS_RUN)] == COMPASS_RUN
            with pytest.raises(SystemExit) as ended:
                compass_run(words[len(COMPASS_RUN) :])
            assert ended.value.code == 0

    monkeypatch.setattr(harness, "call", call)


@pytest.mark.usefixtures("in_this_process")
def test_command_line_agrees(example: Example) -> None:
    same_by_command_line(example)


def test_command_line_agrees_as_processes() -> None:
    same_by_command_line(Example(names()[0]))


def same_by_command_line(example: Example) -> None:
    case = list(itertools.islice(example.cases(3), 4))[-1]
    check_identical(case, example.run_cli(case), example.run_python(case), "command line and Python API")


def test_inputs_are_left_alone(example: Example) -> None:
    case = next(iter(example.cases(4)))
    args = case.fresh_args()
    example.executor(*args)
    for (name, before), after in some(zip(case.args.items(), args, strict=True)):
        if name not in case.expected:
            assert (after == before) if isinstance(before, (int, float)) else (after == before).all()


def test_checks_find_nothing_and_change_nothing(example: Example) -> None:
    for case in some(itertools.islice(example.cases(5), 3)):
        args = case.fresh_args()
        assert example.executor.check(*args) == []
        got = {name: a for name, a in zip(case.args, args, strict=True) if name in case.expected}
        check_identical(case, got, example.run_python(case), "checked and plain run")

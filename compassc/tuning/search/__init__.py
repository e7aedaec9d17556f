"""Strategies: which candidates to measure next. A strategy asks for candidates and is told their results."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.tuning.measure import Result
from compassc.tuning.space import Candidate
from compassc.tuning.task import Task

STRATEGIES = {
    "random": "compassc.tuning.search.plain:RandomSearch",
    "grid": "compassc.tuning.search.plain:GridSearch",
    "evolutionary": "compassc.tuning.search.evolutionary:EvolutionarySearch",
    "model": "compassc.tuning.search.ranked:RankedSearch",
}
"""By name: where the class is, which is made from a task and a seed."""


class Strategy(Protocol):
    """Chooses candidates of a task. The same seed and the same results give the same candidates."""

    generation: int
    """How many candidates to ask for before their results are told."""

    def __init__(self, task: Task, seed: int) -> None: ...

    def ask(self, count: int) -> list[Candidate]:
        """At most `count` candidates that were not asked for before; none when there are no more."""

    def tell(self, results: Sequence[tuple[Candidate, Result]]) -> None:
        """The results of candidates, in the order in which they were asked for; also of some that were not."""


def strategy_named(name: str, task: Task, seed: int) -> Strategy:
    """A new strategy; UsageError when there is none of this name."""
    if name not in STRATEGIES:
        raise UsageError(
            f"there is no search strategy '{name}'",
            code="tuning-strategy",
            help=help_for(name, list(STRATEGIES), "strategies"),
        )
    module, _, cls = STRATEGIES[name].partition(":")
    made: Strategy = getattr(import_module(module), cls)(task, seed)
    return made

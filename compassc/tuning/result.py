"""What a measurement gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from compass_core.dataclass import dataclass

Metric = Literal["cycles", "seconds"]
ERRORS = ("infeasible", "build", "wrong", "timeout", "crash")
"""What may be the matter with a candidate: it stands for no program, it cannot be compiled, its results are wrong, it
takes too long to build or to run, it does what ends a run."""


@dataclass(frozen=True)
class Result:
    """What was measured: `cost` in cycles or seconds, or an `error` of ERRORS with its words. `seconds`: what making the
    C text, building and running took."""

    cost: float | None
    error: str = ""
    message: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.cost is not None

"""Mutators: each changes one choice of a trace."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING

from compassc.tir import Trace

if TYPE_CHECKING:
    from typing_extensions import Self


class Mutator:
    """The base of mutators; `kind` is the instruction whose choice it changes."""

    kind = ""

    def initialize(self, context: object) -> None:
        """Takes what it has to know of the context."""

    _initialize_with_tune_context = initialize

    def apply(self, trace: Trace, rng: Random | None = None) -> Trace | None:
        """Another trace; None where there is nothing to change. The choice is drawn again when the trace is applied."""
        draw = rng or Random()
        chosen = [inst for inst in trace.insts if inst.kind == self.kind and trace.get_decision(inst) is not None]
        if not chosen:
            return None
        return trace.with_decision(draw.choice(chosen), None)

    def clone(self) -> Self:
        """Another one like it."""
        return copy.copy(self)

    @staticmethod
    def create(kind: str) -> dict[Mutator, float]:
        """Those of a kind of target, with their probabilities. ValueError for others."""
        from .defaults import mutators_for

        return mutators_for(kind)


PyMutator = Mutator


class MutateTileSize(Mutator):
    """Other sizes of tiles."""

    kind = "SamplePerfectTile"


class MutateComputeLocation(Mutator):
    """Another place to compute a block."""

    kind = "SampleComputeLocation"


class MutateUnroll(Mutator):
    """Another number of steps to unroll."""

    kind = "SampleCategorical"


class MutateThreadBinding(MutateUnroll):
    """Another number of threads."""


class MutateParallel(Mutator):
    """The number of jobs is no choice of a trace: nothing to change."""

    def __init__(self, max_jobs_per_core: int = 16) -> None:
        self.max_jobs_per_core = max_jobs_per_core

"""Steps that choose: numbers and places, at random or as it is said. What was chosen is in the trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compassc.ir.errors import ExpressionTypeError
from compassc.te.errors import ScheduleError
from compassc.tir.base import Base, Place
from compassc.tir.blocks import constant
from compassc.tir.queries import consumers_of
from compassc.tir.trace import BlockRV, ExprRV, LoopRV, instruction

_MODULUS = 2**31 - 1
_TRIES = 64


class Sampling(Base):
    """Steps that choose."""

    def _next(self, below: int) -> int:
        """A whole number from 0 on."""
        self.drawn = 48271 * self.drawn % _MODULUS
        return self.drawn * below // _MODULUS

    @instruction("SampleCategorical", ("candidates", "probs"), sampled=True, pure=True)
    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """One of several numbers, each as often as its weight says. `decision`: the place of the one to take."""
        if len(candidates) != len(probs) or not candidates:
            raise ScheduleError(f"sample_categorical: {len(candidates)} candidates have {len(probs)} weights")
        if min(probs) < 0 or not sum(probs) > 0:
            raise ScheduleError(
                f"sample_categorical: the weights are {list(probs)}, none of which may be negative, nor all 0"
            )
        if decision is None:
            total, point = sum(probs), self._next(1 << 24) / (1 << 24)
            decision, sofar = len(candidates) - 1, 0.0
            for i, p in enumerate(probs):
                sofar += p / total
                if point < sofar:
                    decision = i
                    break
        if not 0 <= decision < len(candidates):
            raise ScheduleError(
                f"sample_categorical: the decision is {decision}, there are {len(candidates)} candidates"
            )
        self.decided = decision
        return self.new_number(int(candidates[decision]))

    @instruction("SamplePerfectTile", ("loop",), ("n", "max_innermost_factor"), sampled=True, pure=True)
    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, decision: Sequence[int] | None = None
    ) -> list[ExprRV]:
        """`n` factors of a loop's extent, the last at most `max_innermost_factor`."""
        if max_innermost_factor < 1:
            raise ScheduleError(f"sample_perfect_tile: max_innermost_factor is {max_innermost_factor}, not positive")
        extent = self._extent("sample_perfect_tile", loop, n)
        if extent is None:
            factors = [-1, *[1] * (n - 1)]
        elif decision is not None:
            factors = _repaired(list(decision), extent, n)
        else:
            factors = self._tile(extent, n, max_innermost_factor)
        self.decided = factors
        return [self.new_number(f) for f in factors]

    @instruction(
        "SamplePartitionedTile", ("loop",), ("n", "partition_pos", "innerpart_factor"), sampled=True, pure=True
    )
    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """`n` factors of a loop's extent; the product of those from `partition_pos` on is a multiple of
        `innerpart_factor`."""
        extent = self._extent("sample_partitioned_tile", loop, n)
        if not 0 <= partition_pos < n:
            raise ScheduleError(f"sample_partitioned_tile: partition_pos is {partition_pos}, there are {n} factors")

        if innerpart_factor < 1:
            raise ScheduleError(f"sample_partitioned_tile: innerpart_factor is {innerpart_factor}, not positive")

        def fits(f: Sequence[int]) -> bool:
            return math.prod(f) == extent and math.prod(f[partition_pos:]) % innerpart_factor == 0

        if extent is None or extent % innerpart_factor:
            factors = [-1, *[1] * (n - 1)]
        else:
            plain = [1] * n
            plain[0] = extent // innerpart_factor
            plain[partition_pos] *= innerpart_factor
            factors = list(decision) if decision is not None and len(decision) == n and fits(decision) else plain
            if decision is None:
                tries = (self._tile(extent, n, extent) for _ in range(_TRIES))
                factors = next((f for f in tries if fits(f)), plain)
        self.decided = factors
        return [self.new_number(f) for f in factors]

    def _extent(self, step: str, loop: LoopRV, n: int) -> int | None:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ExpressionTypeError(f"{step}: n is a positive int, got {n!r}")
        return constant(self.located_loop(loop)[2].stop)

    def _tile(self, extent: int, n: int, most: int) -> list[int]:
        """Factors with a given product: the last one first, then prime by prime."""
        small = [d for d in range(1, min(extent, most) + 1) if extent % d == 0]
        last = extent if n == 1 else small[self._next(len(small))]
        factors = [1] * (n - 1)
        for p in _primes(extent // last):
            factors[self._next(n - 1)] *= p
        return [*factors, last]

    @instruction("SampleComputeLocation", ("block",), sampled=True, pure=True)
    def sample_compute_location(self, block: BlockRV, decision: int | None = None) -> LoopRV:
        """Where to compute a block: a loop around what reads it (decision 0, 1, ...), or a mark for `compute_at`: as it
        is (-1), or inlined (-2)."""
        function, tree, s = self.located_block(block)
        loops = tree.loops_around(consumers_of(tree, s)[0]) if consumers_of(tree, s) else []
        candidates = [-1]
        if self._possible(lambda t: t.compute_inline(block)):
            candidates.append(-2)
        for i, loop in enumerate(loops):
            if self._possible(lambda t, v=loop.loop_var: t.compute_at(block, t.new_loop(function, v))):
                candidates.append(i)
        if decision is None:
            decision = candidates[self._next(len(candidates))]
        elif decision not in candidates:
            lower = [c for c in candidates if 0 <= c < decision]
            decision = max(lower, default=-1)
        self.decided = decision
        if decision >= 0:
            return self.new_loop(function, loops[decision].loop_var)
        made = LoopRV()
        self.symbols[made] = Place("", "@inline" if decision == -2 else "@root")
        return made

    def _possible(self, step: Any) -> bool:
        """Whether a step is legal, which is not taken."""
        saved = self.snapshot()
        try:
            step(self)
        except ScheduleError:
            return False
        finally:
            self.restore(saved)
        return True


def _repaired(decision: list[int], extent: int, n: int) -> list[int]:
    """A decision made for another extent: what does not divide becomes what they have in common."""
    if len(decision) != n:
        raise ScheduleError(f"sample_perfect_tile: the decision has {len(decision)} factors, there are {n}")
    rest = extent
    for i in range(n - 1, 0, -1):
        decision[i] = math.gcd(rest, max(decision[i], 1))
        rest //= decision[i]
    return [rest, *decision[1:]]


def _primes(value: int) -> list[int]:
    found, p = [], 2
    while p * p <= value:
        while value % p == 0:
            found.append(p)
            value //= p
        p += 1
    return [*found, value] if value > 1 else found

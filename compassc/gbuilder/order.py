"""Which launches a launch waits for: those whose tensors it uses, and those whose memory it takes over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from compass_core.aipubin.device import is_x3
from compassc.gbuilder.memory import Plan, Step, nbytes, owner
from compassc.gbuilder.plugin_api import Tensor

Waits = tuple[int, ...] | None
"""Sub-graph numbers; None means all earlier ones."""
MOST_X3 = 4
"""Sub-graphs that an X3 block can name."""
_Range = tuple[int, int, int]
"""Section, and the bytes in it: the first one, and the one behind the last."""
_Access = tuple[int, int, int, int, bool]
"""The step, the range, and whether the step writes it."""


def waits(steps: Sequence[Step], plan: Plan, target: str) -> list[Waits]:
    """The dependencies of each step in the form that the target has: X2 knows none, the previous step, or all."""
    places = {
        id(placed.tensor): (number, placed.offset, placed.offset + max(nbytes(placed.tensor), 1))
        for number, section in enumerate(plan.sections)
        for placed in section.placements
    }
    seen: dict[int, list[_Access]] = {}
    done: list[int] = []
    result: list[Waits] = []
    for i, step in enumerate(steps):
        accesses = [(i, *place, False) for place in _ranges(step.reads, places)]
        accesses += [(i, *place, True) for place in _ranges(step.writes, places)]
        before = (1 << i) - 1
        direct = _direct(accesses, seen, done, before)
        finished = _union(direct, done)
        expressible = len(direct) <= MOST_X3 if is_x3(target) else direct <= {i - 1}
        if i and (finished == before or not expressible):
            result.append(None)
            finished = before
        else:
            result.append(tuple(sorted(direct)))
        done.append(finished)
        for access in accesses:
            seen.setdefault(access[1], []).append(access)
    return result


def _direct(
    accesses: Sequence[_Access], seen: Mapping[int, Sequence[_Access]], done: Sequence[int], before: int
) -> set[int]:
    """The earlier steps to wait for, without those that another one of them has waited for already.

    Sets of steps are bits of a number: `done`, what is finished when a step is; `before`, all earlier steps.
    """
    direct: set[int] = set()
    finished = 0
    for _, section, low, high, writes in accesses:
        for step, _, other_low, other_high, wrote in reversed(seen.get(section, ())):
            if finished == before:
                break
            if (writes or wrote) and low < other_high and other_low < high and not finished >> step & 1:
                direct.add(step)
                finished |= done[step] | 1 << step
    return {step for step in direct if not any(done[other] >> step & 1 for other in direct)}


def _union(direct: Iterable[int], done: Sequence[int]) -> int:
    finished = 0
    for step in direct:
        finished |= done[step] | 1 << step
    return finished


def _ranges(tensors: Sequence[Tensor], places: dict[int, _Range]) -> list[_Range]:
    return [places[id(t)] for t in map(owner, tensors) if id(t) in places]

"""Which launches a launch waits for: those whose tensors it uses, and those whose memory it takes over."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.aipubin.device import is_x3
from compassc.gbuilder.memory import Plan, Step, nbytes, owner
from compassc.gbuilder.plugin_api import Tensor

Waits = tuple[int, ...] | None
"""Sub-graph numbers; None stands for all before."""
MOST_X3 = 4
"""Sub-graphs that an X3 block can name."""
_Range = tuple[int, int, int]


def waits(steps: Sequence[Step], plan: Plan, target: str) -> list[Waits]:
    """What each step has to wait for, in the terms of the target: X2 knows nothing, the one before, and all."""
    places = {
        id(placed.tensor): (number, placed.offset, placed.offset + max(nbytes(placed.tensor), 1))
        for number, section in enumerate(plan.sections)
        for placed in section.placements
    }
    reads = [_ranges(step.reads, places) for step in steps]
    writes = [_ranges(step.writes, places) for step in steps]
    done: list[set[int]] = []
    result: list[Waits] = []
    for i in range(len(steps)):
        needed = {j for j in range(i) if _meet(writes[i], reads[j] + writes[j]) or _meet(reads[i], writes[j])}
        direct = {j for j in needed if not any(j in done[k] for k in needed)}
        finished = direct.union(*(done[k] for k in direct))
        expressible = len(direct) <= MOST_X3 if is_x3(target) else direct <= {i - 1}
        if i and (len(finished) == i or not expressible):
            result.append(None)
            finished = set(range(i))
        else:
            result.append(tuple(sorted(direct)))
        done.append(finished)
    return result


def _ranges(tensors: Sequence[Tensor], places: dict[int, _Range]) -> list[_Range]:
    return [places[id(t)] for t in map(owner, tensors) if id(t) in places]


def _meet(some: Sequence[_Range], others: Sequence[_Range]) -> bool:
    return any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] for a in some for b in others)

"""The numbers of default schedules."""

from __future__ import annotations

from compass_core.dataclass import dataclass
from compassc.te.errors import ScheduleError


@dataclass(frozen=True)
class Knobs:
    """The numbers of a schedule; 0 chooses one.

    `lanes`: of a vector. `chunk`: elements of the last axis that one turn of the shared loop computes where there are few
    rows. `rows`: how many rows of a product are computed together, in registers. `columns`: vectors of lanes side by side
    there, on CUDA devices elements. `blocks`: tiles of rows that one turn of the shared loop has. `cache`: whether rows go
    through the memory of an NPU's TEC. `threads`: of a block on CUDA devices, `depth`: how much of a sum is in its shared
    memory at a time, `joined`: how many parts of a reduction a thread joins at a time, from 2 on.
    """

    lanes: int = 0
    chunk: int = 0
    rows: int = 0
    columns: int = 0
    blocks: int = 0
    cache: bool = True
    threads: int = 128
    depth: int = 0
    joined: int = 8

    def __post_init__(self) -> None:
        if self.joined < 2:
            raise ScheduleError(f"the knob joined is 2 or more, got {self.joined}")

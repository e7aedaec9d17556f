"""What a schedule keeps of itself after each step, where `PassContext(config={"te.keep_schedule_record": True})` asks for it."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from compassc.pass_manager.context import KEEP_RECORD, PassContext

if TYPE_CHECKING:
    from compassc.te.schedule.schedule import Schedule

BEGINNING = "vanilla"
"""The name of the record before the first step."""
MADE_OF_OTHERS = ("tile",)
"""Steps that are kept as the steps that they take."""
UNNAMED = ("cache_read", "cache_write", "rfactor", "create_group", *MADE_OF_OTHERS)
"""Steps after which nothing is kept."""


def begin(schedule: Schedule) -> None:
    """Has a new schedule keep its records where the current context says so."""
    schedule.keep_schedule_record = bool(PassContext.current().config.get(KEEP_RECORD, False))
    keep(schedule, BEGINNING)


def name_of(step: str, nparts: object) -> str:
    """The name that a step is kept under; empty for one that is not kept. `nparts`: what `split` is given for it."""
    if step in UNNAMED:
        return ""
    return "split_by_nparts" if step == "split" and nparts is not None else step


def keep(schedule: Schedule, name: str) -> None:
    """Keeps the state after the step of that name."""
    if schedule.keep_schedule_record and name and not schedule.replaying:
        schedule.schedule_record.append(copied(schedule))
        schedule.primitive_record.append(name)


def copied(schedule: Schedule) -> Schedule:
    """The state of a schedule as one of its own, of the same operations and axes, without records."""
    made = copy.copy(schedule)
    made.lowered = None
    made.keep_schedule_record, made.schedule_record, made.primitive_record, made.running = False, [], [], []
    made.trace = replace(schedule.trace, steps=list(schedule.trace.steps))
    made.intrinsics, made.variables = dict(schedule.intrinsics), dict(schedule.variables)
    stages = {stage: copy.copy(stage) for stage in schedule.stages}
    for stage, own in stages.items():
        own.restore(stage.snapshot())
        own.schedule = made
        own.attached = None if stage.attached is None else (stages[stage.attached[0]], stage.attached[1])
    made.stages = list(stages.values())
    made.groups = [copy.copy(group) for group in schedule.groups]
    for group in made.groups:
        group.schedule, group.members = made, [stages[stage] for stage in group.members]
    return made

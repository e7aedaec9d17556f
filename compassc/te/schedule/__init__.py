"""Classic schedules: how the stages of a tensor expression are computed, as a list of steps that can be replayed."""

from compassc.te.schedule.relations import Fuse, Split
from compassc.te.schedule.schedule import Schedule, create_schedule
from compassc.te.schedule.stage import Stage
from compassc.te.schedule.trace import Step, Trace

__all__ = ["Fuse", "Schedule", "Split", "Stage", "Step", "Trace", "create_schedule"]

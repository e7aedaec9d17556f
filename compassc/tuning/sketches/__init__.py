"""Schedules that rules make of the compute graph: sketches, random decisions, traces."""

from compassc.tuning.sketches.space import SketchSpace, SketchTask

__all__ = ["SketchSpace", "SketchTask"]

"""The pipeline of launches, as data."""

from __future__ import annotations

STAGES: dict[str, tuple[str, ...]] = {"group": ("JoinElementwise", "PlanKernels")}

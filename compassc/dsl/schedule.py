"""Schedules of tensor programs; this toolchain has none yet, and says so to whoever imports them."""

from __future__ import annotations

from compass_core.errors import CompassError

raise CompassError(
    "schedules are not available yet",
    code="no-schedule",
    help="write the kernel with S.prim_func; everything else of compassc.dsl is there",
)

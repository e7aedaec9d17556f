"""Search: the machine tries programs for a workload, measures them, and keeps what it learns as records.

A `Task` is a workload with a space of candidates, each a JSON value; `measure` builds and runs candidates; strategies
choose which ones; `records` keeps results, and builds take the best from there.
"""

from __future__ import annotations


def may_be_on_record() -> bool:
    """Whether there are any records, found out without loading what reads them."""
    import sys
    from pathlib import Path

    from compass_core import switches

    if "compassc.tuning.history" in sys.modules or switches.TUNING.get():
        return True
    return (Path(__file__).parent / "shipped").is_dir()

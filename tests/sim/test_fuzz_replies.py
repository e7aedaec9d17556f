"""Forged replies, a few of those of `make fuzz-replies`."""

from __future__ import annotations

from fuzz_replies import fuzz


def test_forged_replies_are_results_or_errors() -> None:
    found = fuzz(3000, seed=0)
    assert sum(found.values()) == 3000
    assert {"worker-died", "job-refused", "kernel-timeout", "result without records", "result with records"} <= set(
        found
    )

"""Any legal steps on blocks that somebody wrote give what the blocks give; see `random_kernels` for more of them."""

from __future__ import annotations

from collections import Counter

from tests.tir import random_kernels

COUNT = 30


def test_random_steps_on_written_blocks_are_right():
    ends, taken = Counter(), Counter()
    for seed in range(COUNT):
        end, steps = random_kernels.run(seed)
        ends[end == "right"] += 1
        taken += steps
    assert ends[True] > COUNT * 2 // 3, ends
    assert taken["compute_at"] + taken["reverse_compute_at"] + taken["compute_inline"], taken

"""A sample of `make soak-builds`."""

from .soak import soak


def test_builds_beside_each_other_are_right_or_say_why(tmp_path):
    outcomes = soak(tmp_path, 10, seed=1, jobs=4)
    assert sum(outcomes.values()) == 10 and outcomes["done"] >= 5

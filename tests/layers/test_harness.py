"""Runs that wait for the end of a test are made there, and kernels that are compiled together are what they are alone."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import Layer
from compassc.layers.kernels import kernel_of
from tests.layers import harness
from tests.layers.cases import layer_of, tensor
from tests.layers.harness import Array, expect, expecting, run

INPUT = np.arange(-3, 37, dtype="float32").reshape(5, 8)


def layers() -> list[Layer]:
    x = tensor("x", INPUT.shape, "float32")
    return [
        layer_of("Activation", [x], "float32", {"method": method}, [x.shape]) for method in ("RELU", "TANH", "FLOOR")
    ]


def test_what_is_expected_is_looked_at_when_all_is_said(tmp_path):
    seen: list[str] = []

    def wrong(_: list[Array]) -> None:
        seen.append("looked at")
        raise AssertionError("another number")

    with pytest.raises(AssertionError, match="another number"), expecting():
        for layer in layers():
            expect(kernel_of([layer]), layer, [INPUT], tmp_path, wrong)
        assert not seen
    assert seen == ["looked at"]


def test_kernels_compiled_together_give_what_they_give_alone(tmp_path, monkeypatch):
    alone, together = [], []
    monkeypatch.setattr(harness, "_built", {})
    for layer in layers():
        alone += run(kernel_of([layer]), layer, [INPUT], tmp_path)
    monkeypatch.setattr(harness, "_built", {})
    given = INPUT.copy()
    with expecting():
        for layer in layers():
            expect(kernel_of([layer]), layer, [given], tmp_path, together.extend)
        given[:] = 0  # inputs are as they were when it was said
    np.testing.assert_array_equal(together, alone)
    assert len({made.read_bytes() for made in tmp_path.glob("*/*/*.o")}) == 1
    assert len(harness._built) == len(alone) == 3

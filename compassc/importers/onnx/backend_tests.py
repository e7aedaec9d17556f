"""ONNX's own node tests that do not pass, by the reason: part of docs/onnx.md, and what the tests expect.

They are the node tests of the package onnx with static shapes and tensors of numbers. Names are patterns of `fnmatch`.
`NO_KERNEL` has what the references compute and no kernel does, so that the build for a target refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

NOT_PASSED: dict[str, tuple[str, ...]] = {
    "operators of training, and of ai.onnx.ml, are not supported": (
        "test_adagrad*",
        "test_adam*",
        "test_momentum*",
        "test_nesterov_momentum",
        "test_ai_onnx_ml_*",
    ),
    "the operator is random": ("test_bernoulli*", "test_training_dropout*"),
    "graphs have 32 bits of each number": ("test_bitcast_*float64*",),
    "graphs have no type for these floats of 8 bits": ("test_cast*FNUZ*", "test_cast_e8m0_*"),
    "how many results it gives follows from the values": (
        "test_nonmaxsuppression_*",
        "test_nonzero_example",
        "test_unique_*",
    ),
    "images are decoded on the host": ("test_image_decoder_*",),
}

NO_KERNEL: dict[str, str] = {
    "numbers of uint32 (and of uint64, which becomes uint32) are not sorted": "kernels do not compute with uint32",
    "a device has no tensors of floats of 8 and 4 bits": r"is float\d_e\w+, which a device has no tensors of",
}
"""Tests that the build for a target refuses, and a pattern that matches the reasons it gives."""


def no_kernel(given: Sequence[str]) -> str:
    """The entry of `NO_KERNEL` of a build that failed for the reasons `given`; "" when one of them is not listed."""
    found = [next((why for why, p in NO_KERNEL.items() if re.search(p, text)), "") for text in given]
    return found[0] if found and all(found) else ""


def reason(name: str) -> str:
    """Why a node test does not pass; "" when it does."""
    return next((why for why, names in NOT_PASSED.items() if any(fnmatchcase(name, n) for n in names)), "")

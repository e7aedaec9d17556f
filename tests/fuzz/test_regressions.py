"""What the random programs found: each kernel gives the same both ways."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.dsl import BuildManager
from compassc.language.functions import PyPrimFunc
from tests.choosing import some

from . import regression_kernels
from .run import alike, values_for

KERNELS = {name: k for name, k in vars(regression_kernels).items() if isinstance(k, PyPrimFunc)}
ENTRIES = {name: k for name, k in KERNELS.items() if not name.startswith("sub_")}


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
@pytest.mark.parametrize("name", ENTRIES)
def test_same_both_ways(name: str, target: str) -> None:
    kernel = ENTRIES[name]
    built = BuildManager(target).build(kernel)
    for seed in range(3):
        python, compiled = (values_for([p.name for p in kernel.params], seed) for _ in range(2))
        kernel(*python.values())
        built(*compiled.values())
        for key, expected in some(python.items()):
            if isinstance(expected, np.ndarray):
                wrong = np.flatnonzero(~alike(expected, compiled[key]))
                assert not wrong.size, (key, wrong[:4], expected[wrong[:4]], compiled[key][wrong[:4]])

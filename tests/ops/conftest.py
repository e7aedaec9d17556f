"""Operations run as PySim runs them, on plain NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.ops import core
from compassc.pysim import pysim_impl
from compassc.pysim.values import PyVar, of_numpy


def run(name, *args, **options):
    """The result of an operation as a NumPy value; arrays and NumPy scalars are kernel values, numbers are literals."""
    wrapped = [of_numpy(a) if isinstance(a, (np.ndarray, np.generic)) else a for a in args]
    if isinstance(options.get("r"), np.ndarray):
        options["r"] = of_numpy(options["r"])
    with np.errstate(all="ignore"):
        out = pysim_impl(core.get(name))(*wrapped, **options)
    return out.value if isinstance(out, PyVar) else out


@pytest.fixture(name="run")
def run_fixture():
    return run


@pytest.fixture
def rng():
    return np.random.default_rng(7)

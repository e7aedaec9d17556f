"""scikit-learn's digits, read from their file: the package itself takes a second to import."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Array = np.ndarray[Any, Any]
_FOUND = find_spec("sklearn")
needs_digits = pytest.mark.skipif(_FOUND is None, reason="scikit-learn is not there")


@cache
def load_digits() -> tuple[Array, Array]:
    """Images [1797, 8, 8] of numbers from 0 to 16, and what they show."""
    assert _FOUND is not None and _FOUND.submodule_search_locations is not None, "scikit-learn is not there"
    rows = np.loadtxt(Path(*_FOUND.submodule_search_locations, "datasets", "data", "digits.csv.gz"), delimiter=",")
    return rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(int)

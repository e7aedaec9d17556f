"""Functions that every server offers, for trying whether a session works: `rpc.test.*`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compass_runtime.ndarray import NDArray, array
from compass_runtime.packed import register_func

PREFIX = "rpc.test."


def _raise(name: str) -> object:
    raise ValueError(name)


def _ones(tensor: NDArray) -> None:
    """ValueError where an element is not 1."""
    if not (np.asarray(tensor) == 1).all():
        raise ValueError("not all elements are 1")


def _adder(x: float) -> Callable[[float], float]:
    return lambda y: x + y


def _returned(mode: str) -> Callable[..., object]:
    """A function by its name, on an array of ten zeros, or on one that it is given."""
    import sys

    kept = array(np.zeros(10, np.float32))
    modes: dict[str, Callable[..., object]] = {
        "get_arr": lambda: kept,
        "ref_count": lambda: sys.getrefcount(kept),
        "get_elem": lambda i: float(np.asarray(kept)[i]),
        "get_arr_elem": lambda other, i: float(np.asarray(other)[i]),
    }
    if mode not in modes:
        raise RuntimeError(f"there is no mode '{mode}'")
    return modes[mode]


FUNCTIONS: dict[str, Callable[..., object]] = {
    "addone": lambda x: x + 1,
    "strcat": lambda name, x: f"{name}:{x}",
    "except": _raise,
    "runtime_str_concat": lambda x, y: x + y,
    "remote_array_func": _ones,
    "add_to_lhs": _adder,
    "remote_return_nd": _returned,
    "echo": lambda *args: args[0],
    "call": lambda function, *args: function(*args),
}

for _name, _body in FUNCTIONS.items():
    register_func(PREFIX + _name, _body, override=True)

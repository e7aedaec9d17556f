"""Kernels and parameter descriptions that the tests share."""

from __future__ import annotations

ADD = """
__kernel void k(__global int* a, __global int* b, int n) {
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) b[i] = a[i] + 1;
}
"""


def pointer(name, role, index=0, dtype="int32", shape=None, read=False):
    shape = None if shape is None else list(shape)
    base = {"name": name, "kind": "pointer", "dtype": dtype, "role": role, "index": index}
    return base | {"shape": shape, "read": read}


def scalar(name, dtype="int32", value=None):
    return {"name": name, "kind": "scalar", "dtype": dtype, "role": "attr", "value": value}


def extents(*pointers):
    """A program for `p` that says: every pointer is accessed from 0 up to n elements of 4 bytes."""
    body = [["access", p, 0, ["mul", "n", 4]] for p in pointers]
    return {
        "entry": "p",
        "params": dict.fromkeys(pointers, 4),
        "functions": {"p": {"params": [*pointers, "n"], "body": body}},
    }

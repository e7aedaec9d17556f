"""Hybrid script: statements over tensors, written as a Python function, for where `te.compute` has no expression.

@te.hybrid.script
def outer(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c

c = outer(te.placeholder((8,)), te.placeholder((4,)))  # a tensor
outer(numpy.ones(8), numpy.ones(4))  # an array: the function runs as Python
"""

from importlib import import_module
from typing import TYPE_CHECKING

from compassc.te.hybrid.op import HybridOp
from compassc.te.hybrid.parser import HybridError, parse
from compassc.te.hybrid.runtime import HYBRID_GLOBALS
from compassc.te.hybrid.script import script

if TYPE_CHECKING:  # for editors and type checkers
    from compassc.te.hybrid.module import HybridModule, build

__all__ = ["HYBRID_GLOBALS", "HybridError", "HybridModule", "HybridOp", "build", "parse", "script"]


def __getattr__(name: str) -> object:
    if name in ("HybridModule", "build"):  # they lower, and lowering knows the operations of scripts
        return getattr(import_module("compassc.te.hybrid.module"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""PySim: a kernel run by the Python interpreter, with NumPy as the machine."""

from ..language.dispatch import PySimInfo
from .call import call_sub, run_entry
from .checks import checking
from .descriptors import PyDescPointer
from .impl import pysim_impl
from .memory import PyBuffer, PyPointer
from .values import PyVar

__all__ = [
    "PyBuffer",
    "PyDescPointer",
    "PyPointer",
    "PySimInfo",
    "PyVar",
    "call_sub",
    "checking",
    "pysim_impl",
    "run_entry",
]

"""PySim: a kernel run by the Python interpreter, with NumPy as the machine."""

from ..dispatch import PySimInfo
from .call import call_sub, run_entry
from .checks import checking
from .impl import pysim_impl

__all__ = ["PySimInfo", "call_sub", "checking", "pysim_impl", "run_entry"]

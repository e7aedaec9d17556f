"""The AIFF, the fixed-function unit: its registers, what the model knows of their fields, and its packed weights.

The model itself is C (sim/engine/aiff*.c): the engine has it, and PySim calls it as a library.
"""

from __future__ import annotations

GENERATIONS = ("X2", "X3")
"""Register sets: X3P and X3S share one."""

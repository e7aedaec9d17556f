"""What an operator may share a loop with, by how its elements follow from those of its operands."""

from __future__ import annotations

from enum import Enum


class PatternKind(Enum):
    """How elements of a result follow from the operands; passes that fuse, and schedules, ask for it and not for names."""

    ELEMENTWISE = "each output element is a function of the input elements at its place"
    BROADCAST = "as elementwise, with operands of fewer elements"
    INJECTIVE = "each output element is one input element at another place"
    REDUCTION = "an output element comes from many; elementwise layers may follow in the same kernel"
    ANCHOR = "windows and products; elementwise layers may follow in the same kernel"
    OPAQUE = "stands alone"

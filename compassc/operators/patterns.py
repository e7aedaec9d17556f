"""Facts of operators and layer types that passes ask for, and not for names: what one may share a loop with, and how its weights
lie."""

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


class Filters(Enum):
    """How the weights of sums of products lie: what each output channel is multiplied with."""

    BY_OUTPUT = "[outputs, window..., inputs / groups]"
    TRANSPOSED = "[outputs / groups, window..., inputs]"

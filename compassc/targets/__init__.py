"""What schedules and kernels are built for: kinds of targets, each declared once, and targets with their options.

A kind says how threads and memory are laid out (its machine), which passes run, which generator makes code of the result,
and on which device the arrays lie that the code is called with.
"""

from compassc.targets.kind import Kind, Option, kind, kinds, register_kind
from compassc.targets.modules import build, lowered
from compassc.targets.target import Target, TargetError

__all__ = ["Kind", "Option", "Target", "TargetError", "build", "kind", "kinds", "lowered", "register_kind"]

"""How each layer type is quantised: a rule per type, in a module per family.

A rule is a function of a `Job` that gives the quantised layer, or several, of which the last one makes the outputs. It
raises NotQuantised where this layer has no quantised form; then it stays in a float type, as types without a rule do.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from compassc.graph import Layer
from compassc.quantizer.job import Job

Rule = Callable[[Job], "Layer | list[Layer]"]
RULES: dict[str, Rule] = {}
"""Rules by layer type; filled by `all_rules`."""
WHOLE = "it is of whole numbers, which stay what they are"
NO_RULE: dict[str, str] = {
    **dict.fromkeys(
        "DivMod BitShift FixedPoint Bitwise MatMulInteger ConvInteger Switch CollapseRepeated AccidentalHits YuvToRgb RgbToYuv "
        "ConstantOfShape".split(),
        WHOLE,
    ),
    **dict.fromkeys(("If", "Loop"), "it runs other graphs"),
    "FakeQuantWithMinMaxVars": "it is there to round real numbers in training",
    "GetValidCount": "its rows hold ids, scores and places, for which no one scale is right",
    "MultiboxTransformLoc": "its rows hold classes, scores and places, for which no one scale is right",
}
"""Why types that are computed in integers have no rule."""

Made = TypeVar("Made", bound=Rule)


def rule(*types: str) -> Callable[[Made], Made]:
    """Registers a rule for layer types."""

    def register(made: Made) -> Made:
        for name in types:
            if name in RULES:
                raise ValueError(f"the layer type {name} has two rules")
            RULES[name] = made
        return made

    return register


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by layer type."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return RULES

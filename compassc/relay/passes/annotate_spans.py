"""Give every expression a place: that in the text of the module.

Before: any module.
After: the module of its own text, whose expressions have places in the text "GeneratedSource".
"""

from __future__ import annotations

from compassc.relay.module import IRModule
from compassc.relay.parser import parse

NAME = "AnnotateSpans"
LEVEL = 0
REQUIRED = ()
SOURCE = "GeneratedSource"


def run(module: IRModule) -> IRModule:
    return parse(module.astext(), SOURCE)

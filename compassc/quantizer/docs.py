"""Writes docs/quantised-layers.md, which layers become integers, from the declarations: `python -m compassc.quantizer.docs`."""

from __future__ import annotations

import re
from pathlib import Path

from compass_core import files
from compassc.layers.declare import LayerType, all_types
from compassc.layers.families.activation.reference import METHOD_OF
from compassc.quantizer.convert import why_no_rule
from compassc.quantizer.coordinates import OF_PLACES, TAKEN
from compassc.quantizer.rules import all_rules
from compassc.quantizer.settings import FLOAT_TYPES, PRESET_LAYERS, PRESETS
from compassc.quantizer.tables import FASTER_AS_FLOATS

PAGE = Path("docs/quantised-layers.md")
SOURCES = ("Input", "Constant")
WITH_FUNCTIONS = [name for name, settings in PRESETS.items() if not settings.table_bits and not settings.float]
"""Presets in which some functions are floats."""
HEAD = """# Layers in integers

Which layers `compassc quantize` computes in integers, and why others stay floats ([quantisation](quantisation.md)).
Made by `make docs` from the declarations of layers and rules. A layer of a type with integers stays a float, too, where
this form of it has none, or no kernel; the command says which and why.

Types marked "places" are coordinates, or take some: these have 16 bits in every preset, and what stays a float of them is
float32.

| layer | computed in | remark |
|---|---|---|
"""


def row(declared: LayerType) -> str:
    """A line of the table."""
    name = declared.name
    remarks = ["places"] if name in TAKEN or name in OF_PLACES else []
    if name in all_rules() or name in SOURCES:
        kind = "integers"
        for dtype in FLOAT_TYPES:
            own = [
                preset for preset, each in PRESET_LAYERS.items() if each.get(f"type:{name}", {}).get("float") == dtype
            ]
            own += WITH_FUNCTIONS if dtype == "float32" and METHOD_OF.get(name, name) in FASTER_AS_FLOATS else []
            if own:
                remarks.append(f"{dtype} in {', '.join(own)}")
    else:
        why = why_no_rule(name)
        kind = "whole numbers" if "whole numbers" in why else "floats"
        remarks += [] if kind == "whole numbers" else [re.sub(r"[;,] (keep|use) .*", "", why)]
    return f"| {name} | {kind} | {'; '.join(remarks)} |"


def page() -> str:
    """The Markdown page."""
    known = [d for d in all_types().values() if not d.refused and d.name not in SOURCES]
    return HEAD + "\n".join(row(d) for d in sorted(known, key=lambda d: d.name.lower())) + "\n"


if __name__ == "__main__":
    files.write(PAGE, page())

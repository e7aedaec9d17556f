"""Regions: functions that run on the NPU. `placement` makes them."""

from __future__ import annotations

from compassc.relay.expr import Function
from compassc.relay.visit import post_order

COMPILER = "compass"
"""The attribute `Compiler` of functions that are regions of the NPU."""
PREBUILT = "compass.pre_build.ir_txt"
"""The attribute of a region that names the file of its graph of layers; that of others is made of its calls."""


def is_region(f: Function) -> bool:
    """Whether a function runs on the NPU."""
    return f.attrs.get("Compiler") == COMPILER


def has_regions(f: Function) -> bool:
    """Whether it was said of a function which of its calls run on the NPU."""
    return any(isinstance(e, Function) and is_region(e) for e in post_order(f.body))

"""Quantisation: float graphs to graphs of integers.

`observe` runs the float graph on samples and keeps statistics, `quantize` makes the quantised graph of them and of
`Settings`. `data` reads samples, `strategies` choose ranges, `rules` say how each layer type is quantised, `convert`
walks over the graph, `compare` measures how near the result is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compassc.quantizer.convert import quantize
    from compassc.quantizer.model import quantize_model
    from compassc.quantizer.observe import calibrate
    from compassc.quantizer.settings import LayerSettings, Settings
    from compassc.quantizer.statistics import Calibration

__all__ = ["Calibration", "LayerSettings", "Settings", "calibrate", "quantize", "quantize_model"]
_MODULES = {
    "calibrate": "observe", "quantize": "convert", "quantize_model": "model", "LayerSettings": "settings", "Settings": "settings",
    "Calibration": "statistics",
}  # fmt: skip


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

"""Quantisation of a graph in one call, as commands and builds want it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compass_core.errors import CompassError
from compassc.graph import Graph
from compassc.quantizer.convert import quantize_with_reasons
from compassc.quantizer.data import Pictures, Samples, load
from compassc.quantizer.observe import calibrate
from compassc.quantizer.settings import Settings
from compassc.quantizer.statistics import Calibration


@dataclass
class Outcome:
    """A quantised graph; the statistics it was made with; why layers stay floats, by name ("": as the settings say);
    layers that were given more bits, by name."""

    graph: Graph
    calibration: Calibration | None
    floats: Mapping[str, str]
    settings: Settings
    raised: Mapping[str, str] = field(default_factory=dict)
    cosine: float | None = None


def needs_data(settings: Settings) -> bool:
    """Whether some layers become integers."""
    return not settings.common.float or any(given.get("float", "x") in ("", None) for _, given in settings.layers)


def quantize_model(
    graph: Graph,
    data: Any = None,
    settings: Settings | str = "int8",
    *,
    calibration: Calibration | None = None,
    min_cosine: float | None = None,
    pictures: Pictures | None = None,
    limit: int | None = None,
    done: Callable[[int], None] | None = None,
) -> Outcome:
    """Calibrates a float graph with data, as `data.load` takes them, and quantises it.

    `calibration`: statistics of an earlier run instead of running again. `min_cosine`: layers get more bits until each
    output's cosine to the float graph's is at least that. CompassError where data are missing or do not fit.
    """
    wanted = Settings.preset(settings) if isinstance(settings, str) else settings
    samples: Samples | None = None if data is None else load(data, graph, pictures, limit)
    if calibration is None and needs_data(wanted):
        if samples is None:
            raise CompassError(
                "integers need calibration data", code="calibration-data", help="--calibrate DATA, or --quantize fp16"
            )
        calibration = calibrate(graph, samples, wanted, done)
    if min_cosine is not None:
        from compassc.quantizer.precision import raised

        if samples is None or calibration is None:
            raise CompassError("a cosine is measured on data", code="calibration-data", help="--calibrate DATA")
        return raised(graph, samples, calibration, wanted, min_cosine)
    made = quantize_with_reasons(graph, calibration, wanted)
    return Outcome(made.graph, calibration, made.floats, wanted)

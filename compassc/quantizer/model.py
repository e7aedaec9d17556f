"""Quantisation of a graph in one call, as commands and builds want it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from compass_core import progress
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.graph import Graph
from compassc.quantizer.convert import quantize_with_reasons
from compassc.quantizer.data import Pictures, Samples, load
from compassc.quantizer.observe import calibrate
from compassc.quantizer.prepare import prepared
from compassc.quantizer.settings import Settings
from compassc.quantizer.state_sequences import followed
from compassc.quantizer.statistics import Calibration
from compassc.quantizer.verdict import judge, parted

if TYPE_CHECKING:
    from compassc.quantizer.verdict import Verdict

AUTO = "auto"
"""Instead of a preset: int8, and other forms for as few layers as keep the outputs near."""


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
    why: str = ""
    """Of a mixture that was searched for: how it was chosen."""
    verdict: Verdict | None = None


def needs_data(settings: Settings) -> bool:
    """Whether some layers become integers."""
    return not settings.common.float or any(given.get("float", "x") in ("", None) for _, given in settings.layers)


def quantize_model(
    graph: Graph,
    data: object = None,
    settings: Settings | str = "int8",
    *,
    calibration: Calibration | None = None,
    min_cosine: float | None = None,
    min_sqnr: float | None = None,
    pictures: Pictures | None = None,
    limit: int | None = None,
    done: Callable[[int], None] | None = None,
    judged: bool = False,
    cycles: Callable[[Graph], float] | None = None,
) -> Outcome:
    """Calibrates a float graph with data, as `data.load` takes them, and quantises it.

    `settings`: also "auto": int8, with other forms for as few layers as keep a cosine of 0.999 (or `min_cosine`, `min_sqnr`)
    of each output to the float graph's, which of them take the fewest cycles (`cycles(graph)`, by default an estimate).
    `calibration`: statistics of an earlier run instead of running again. `min_cosine`: layers get more bits until each
    output's cosine to the float graph's is at least that. `judged`: every fifth sample is held back from calibration, and the
    verdict on some of them is part of what comes out; `min_sqnr` in dB is asked of it. CompassError where data are missing or
    do not fit, and where outputs are less near than asked for.
    """
    auto = settings == AUTO
    wanted = settings if isinstance(settings, Settings) else Settings.preset("int8" if auto else settings)
    samples: Samples | None = None if data is None else followed(graph, load(data, graph, pictures, limit))
    if samples is None and (auto or min_cosine is not None or min_sqnr is not None):
        raise CompassError("similarity is measured on data", code="calibration-data", help="--calibrate DATA")
    measured, held_back = samples, False
    if samples is not None and judged:
        samples, measured, held_back = parted(samples)
    if calibration is None and (auto or needs_data(wanted)):
        if samples is None:
            raise CompassError(
                "integers need calibration data", code="calibration-data", help="--calibrate DATA, or --quantize fp16"
            )
        calibration = calibrate(graph, samples, wanted, done or _told(len(samples)))
    made = None
    if measured is not None and calibration is not None and (auto or min_cosine is not None):
        made = _mixture(graph, measured, calibration, settings, wanted, min_cosine, min_sqnr, cycles)
    if made is None:
        whole = quantize_with_reasons(graph, calibration, wanted)
        made = Outcome(whole.graph, calibration, whole.floats, wanted)
    if measured is not None and (judged or min_sqnr is not None):
        made.verdict = judge(prepared(graph, wanted), made.graph, made.settings, measured, held_back)
        made.verdict.check(min_cosine, min_sqnr)
    return made


def _told(count: int) -> Callable[[int], None]:
    """Tells how many samples are done."""
    numbers = itertools.count(1)

    def done(many: int) -> None:
        for _ in range(many):
            progress.tell("samples of the calibration", next(numbers), count)

    return done


def _mixture(
    graph: Graph,
    samples: Samples,
    calibration: Calibration,
    settings: Settings | str,
    wanted: Settings,
    min_cosine: float | None,
    min_sqnr: float | None,
    cycles: Callable[[Graph], float] | None,
) -> Outcome:
    """What a search for as few layers in other forms as needed finds."""
    from compassc.quantizer.precision import Wanted, raised

    asked = Wanted(*(value if value is not None else Wanted._field_defaults[key]
                     for key, value in (("cosine", min_cosine), ("sqnr", min_sqnr))))  # fmt: skip
    base = "int8" if settings == AUTO else settings if isinstance(settings, str) else "the form of the settings"
    demanded = min_cosine is not None or min_sqnr is not None
    return raised(graph, samples, calibration, wanted, asked, cycles, base=base, demanded=demanded)

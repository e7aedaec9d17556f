"""The options with which commands quantise, and what they say about it."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from compass_core import progress
from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import Console
from compassc.cli.option_types import Calibration as GivenCalibration
from compassc.cli.option_types import Given
from compassc.cli.options import chain
from compassc.models.build import QuantizeRequest

if TYPE_CHECKING:
    from compassc.graph import Graph, Layer
    from compassc.quantizer import Calibration
    from compassc.quantizer.data import Pictures
    from compassc.quantizer.model import Outcome
    from compassc.quantizer.settings import Settings

PRESETS = ("auto", "int8", "int16", "w8a16", "fp16", "bf16")
"""What `--quantize` takes: `compassc.quantizer.settings.PRESETS`, which a command line does not load for its help, and a mixture."""


def numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    """Numbers apart by commas."""
    if text is None:
        return None
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(map(math.isfinite, found)):
        raise click.BadParameter(f"'{text}' is no number, nor several apart by commas", ctx, param)
    return found


def size(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, int] | None:
    """HEIGHTxWIDTH, or one number for both."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(re.fullmatch("[1-9][0-9]{0,5}", p) for p in parts):
        raise click.BadParameter(f"'{text}' is no size such as 256 or 256x320", ctx, param)
    return int(parts[0]), int(parts[-1])


calibration_options = chain(
    click.option("--calibrate", type=options.SOURCE, metavar="DATA", help="Samples: .npy, .npz, a folder of images, or FILE.py:DATASET."),
    click.option("--samples", type=click.IntRange(1), metavar="N", help="Take the first N samples only."),
    click.option("--mean", callback=numbers, metavar="A,B,C", help="Subtracted from pixels (0 to 255)."),
    click.option("--std", callback=numbers, metavar="A,B,C", help="Pixels are divided by it."),
    click.option("--size", callback=size, metavar="HxW", help="Resize images to this, then cut out the middle."),
    click.option(
        "--quantize-settings", "settings", type=options.FILE,
        metavar="FILE.yaml", help="Settings of all and of single layers.",
    ),
    click.option("--min-cosine", type=click.FloatRange(0, 1), metavar="X", help="Give layers more bits until outputs are as near as X."),
    click.option("--min-sqnr", type=float, metavar="DB", help="Refuse outputs with less signal to error."),
)  # fmt: skip
"""Where samples come from, and what is wanted of the result."""
quantize_option = click.option(
    "--quantize",
    type=click.Choice(PRESETS),
    help="Bits of weights and activations (default: auto, by layer as needed).",
)


NEAR = "a cosine of 0.99 or 20 dB"
"""`compassc.quantizer.verdict.NEAR_COSINE` and `NEAR_SQNR`, in words."""
MODELS_ONLY = (
    "outputs",
    "calibrate",
    "quantize",
    "samples",
    "mean",
    "std",
    "size",
    "settings",
    "min_cosine",
    "min_sqnr",
)
"""What the options above are called among the parameters of a command."""


def refuse(given: Given) -> None:
    """UsageError when one of the options is given for something that is no model."""
    asked = {name: given.get(name) for name in (*MODELS_ONLY, "aiff")}
    asked["state"] = given.get("states") or None
    asked["batch"] = given.get("batch", 1) != 1
    for name, value in asked.items():
        if value not in (None, (), False):
            option = {"settings": "quantize-settings", "outputs": "output-tensor"}.get(name, name.replace("_", "-"))
            raise UsageError(f"--{option} is about models, not about kernels", code="usage")


def request_of(given: Given) -> QuantizeRequest | None:
    """What the options ask of a build; None when none of them is given."""
    if all(given.get(name) is None for name in MODELS_ONLY if name != "outputs"):
        return None
    return QuantizeRequest(
        given.get("calibrate"), settings_of(given), given.get("min_cosine"), pictures_of(given), given.get("samples"),
        given.get("min_sqnr"), True, partial(_cycles, given.get("target") or ""),
    )  # fmt: skip


def _cycles(target: str, graph: Graph) -> float:
    from compassc.models.model import estimated_cycles

    return estimated_cycles(graph, target)


def pictures_of(given: GivenCalibration) -> Pictures:
    """How the options say that images become arrays."""
    from compassc.quantizer.data import Pictures

    return Pictures(given.get("mean") or (0.0,), given.get("std") or (1.0,), given.get("size"))


@contextmanager
def telling(console: Console) -> Iterator[None]:
    """Warnings of what runs inside are said as those of a command."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in said:
        if issubclass(warning.category, UserWarning):
            console.say(f"warning: {warning.message}")


def quantised(console: Console, graph: Graph, given: GivenCalibration, statistics: Calibration | None) -> Outcome:
    """The graph quantised as the options say; tells which layers stay floats."""
    from compassc.quantizer.model import quantize_model

    with telling(console), progress.shown(console.verbose):
        return quantize_model(
            graph, given.get("calibrate"), settings_of(given), min_cosine=given.get("min_cosine"),
            pictures=pictures_of(given), limit=given.get("samples"), min_sqnr=given.get("min_sqnr"), judged=True,
            cycles=partial(_cycles, ""), calibration=statistics,
        )  # fmt: skip


def settings_of(given: GivenCalibration) -> Settings | str:
    """The settings that the options `--quantize` and `--quantize-settings` name, or the name of a preset."""
    name, settings = given.get("quantize"), given.get("settings")
    if not settings:
        return name or ("auto" if given.get("calibrate") else "int8")
    from compassc.quantizer.settings import Settings

    if name == "auto":
        raise UsageError(
            "--quantize auto chooses what --quantize-settings says",
            code="usage",
            help="--min-cosine X with the settings",
        )
    return Settings.read(settings, Settings.preset(name or "int8"))


def _counts(layers: list[Layer], quantised: int) -> list[str]:
    """How many layers compute in which numbers: those of 16-bit floats are asked for as such, not left over."""
    small = {
        name: sum(all(t.dtype == name for t in layer.outputs) for layer in layers) for name in ("float16", "bfloat16")
    }
    found = [f"{n} of {len(layers)} layers are {name}" for name, n in small.items() if n]
    return found if found and not quantised else [f"{quantised} of {len(layers)} layers are quantised", *found]


def summary(made: Outcome) -> list[str]:
    """Lines about a quantised graph: how many layers are floats, and why, and which got more bits."""
    layers = [layer for layer in made.graph.computing() if layer.type not in ("Quantize", "DeQuantize")]
    lines = _counts(layers, len(layers) - len(made.floats))
    for name, why in made.floats.items():
        if why:
            lines.append(f"'{name}' stays a float: {why}")
    for name, form in made.raised.items():
        lines.append(f"'{name}' is {form}")
    lines += made.why.splitlines()
    if made.verdict is not None:
        lines += made.verdict.lines()
        if made.verdict.is_far:
            lines.append(f"warning: outputs are far from those of the float graph (less than {NEAR})")
    elif made.cosine is not None:
        lines.append(f"the smallest cosine of an output is {made.cosine:.5f}")
    return lines

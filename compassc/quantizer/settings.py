"""What is wanted of the quantised graph: bits, modes, strategies, for all layers and for some of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from fnmatch import fnmatchcase
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compass_core.reading import yamltext
from compassc.graph import Layer
from compassc.layers.declare import all_types
from compassc.quantizer.numbers import ASYMMETRIC, FULL, MODES, RESTRICTED
from compassc.quantizer.strategies import parse

FLOAT_TYPES = ("float16", "bfloat16", "float32")
ROUNDINGS = ("nearest", "adaptive")
BY_TYPE = "type:"
"""Before the name of a layer type, where layers are chosen."""


@dataclass(frozen=True)
class LayerSettings:
    """How one layer is quantised.

    `float`: the type that the layer stays in instead. `multiplier_bits`: of requantisation; 0: as many as activations.
    `table_bits`: tables have 2^n items, at the integers that the vendor's quantiser takes; 0: as many as keep 65 dB, at those of the lookup. `bias_effective_bits`: the high bits of biases that are used; 0: all.
    Strategies are named as `strategies` reads them. `rounding` of weights: to the nearest, or adaptive: up or down as
    the layer's outputs change least. `force_signed`: integers of outputs that are never negative are signed, too.
    `rescale_means`: means of windows have a scale of their own; else that of their input, as the vendor's quantiser gives.
    `rescale_norms`: the scale of normalised values follows from their range; else from how many are normalised together.
    """

    activation_bits: int = 8
    weight_bits: int = 8
    bias_bits: int = 32
    bias_effective_bits: int = 0
    multiplier_bits: int = 0
    table_bits: int = 8
    activation_mode: str = FULL
    weight_mode: str = RESTRICTED
    per_channel: bool = True
    activation_strategy: str = "extrema"
    weight_strategy: str = "extrema"
    rounding: str = "nearest"
    force_signed: bool = False
    rescale_means: bool = False
    rescale_norms: bool = False
    float: str = ""

    @property
    def factor_bits(self) -> int:
        """Bits of the multipliers of requantisation."""
        return self.multiplier_bits or self.activation_bits

    @property
    def mode(self) -> str:
        """Of activations: those of more than 8 bits are symmetric."""
        return FULL if self.activation_mode == ASYMMETRIC and self.activation_bits > 8 else self.activation_mode


RANGES: dict[str, tuple[int, int]] = {
    "activation_bits": (8, 16), "weight_bits": (4, 16), "bias_bits": (16, 48), "bias_effective_bits": (16, 48),
    "multiplier_bits": (2, 16), "table_bits": (8, 16),
}  # fmt: skip
FREE = ("multiplier_bits", "bias_effective_bits", "table_bits")
"""Those that may be 0, too."""
CHOICES: dict[str, tuple[str, ...]] = {
    "activation_mode": MODES, "weight_mode": MODES, "float": FLOAT_TYPES, "rounding": ROUNDINGS,
}  # fmt: skip
SWITCH: tuple[str, Callable[[object], bool]] = ("true or false", lambda value: isinstance(value, bool))
OF_GRAPH: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "fallback": (f"one of {', '.join(FLOAT_TYPES)}", lambda value: value in FLOAT_TYPES),
    "momentum": ("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
    "unify": ("a number from 1", lambda value: _is_number(value) and value >= 1),
}
"""Settings of a graph that are no switches: what they are to be."""
BITS = {"bits": ("activation_bits", "weight_bits")}
"""Keys that stand for several."""
WITH_ROOM = "1.25extrema"
"""Where 16 bits have steps to spare: values a little beyond those of the calibration are not cut."""
PRESETS: dict[str, LayerSettings] = {
    "int8": LayerSettings(rescale_means=True, rescale_norms=True),
    "w8a16": LayerSettings(
        activation_bits=16,
        table_bits=0,
        activation_strategy=WITH_ROOM,
        force_signed=True,
        rescale_means=True,
        rescale_norms=True,
    ),
    "int16": LayerSettings(
        activation_bits=16,
        weight_bits=16,
        bias_bits=48,
        table_bits=0,
        activation_strategy=WITH_ROOM,
        force_signed=True,
        rescale_means=True,
        rescale_norms=True,
    ),
    "fp16": LayerSettings(float="float16"),
    "bf16": LayerSettings(float="bfloat16"),
}
"""Settings by the names that `--quantize` takes."""
_HALF: Mapping[str, object] = {"float": "float16"}
_FLOAT: Mapping[str, object] = {"float": "float32"}
# the forms of 16 bits know the deviation to a few bits only
_NORMS = {f"type:{kind}": _FLOAT for kind in ("LayerNorm", "InstanceNorm", "GroupNorm", "MVN", "RMSNorm")}
PRESET_LAYERS: dict[str, dict[str, Mapping[str, object]]] = {
    "int8": {"type:RMSNorm": _HALF},
    "w8a16": _NORMS,
    "int16": _NORMS,
}
"""Settings of single types that belong to those names."""
PRESET_FALLBACKS = {"w8a16": "float32", "int16": "float32"}
"""Where the fallback is not the usual one: half floats have fewer bits than 16-bit integers, and are converted more slowly."""


@dataclass(frozen=True)
class Settings:
    """Settings of a graph: `common` of all layers, `layers` of those whose names (or `type:` and their types) match.

    Names go before types, full names before those with `*` and `?`, later keys before earlier ones. `fallback`: the type of layers that have no
    quantised form. `equalise`: scales of channels are moved between neighbouring linear layers first. `correct_biases`:
    biases make up for the mean error of rounded weights. `only_kernels`: layers whose integers no kernel of the library
    computes with have none. `momentum`: how much of a running mean stays when a sample is added.
    `unify`: tensors that meet at a Concat or in a sum take one range where the largest is at most so many times the smallest; 1: never.
    """

    common: LayerSettings = LayerSettings()
    layers: tuple[tuple[str, Mapping[str, object]], ...] = ()
    fallback: str = "float16"
    equalise: bool = False
    correct_biases: bool = False
    only_kernels: bool = True
    momentum: float = 0.9
    unify: float = 1.0

    @classmethod
    def preset(cls, name: str, **changes: object) -> Settings:
        """The settings of that name: int8, int16, w8a16, fp16 or bf16. UsageError for others."""
        if name not in PRESETS:
            help = help_for(name, PRESETS, "settings")
            raise UsageError(f"there are no settings '{name}'", code="quantize-settings", help=help)
        common = {f.name: getattr(PRESETS[name], f.name) for f in fields(LayerSettings)}
        made = cls(fallback=PRESET_FALLBACKS.get(name, cls.fallback))
        return made.changed(**common).overridden(PRESET_LAYERS.get(name, {})).changed(**changes)

    @classmethod
    def read(cls, path: Path | str, base: Settings | None = None) -> Settings:
        """The settings of a YAML file, on top of `base` or of the preset that its key `base` names."""
        text = files.read_text(Path(path))
        given = yamltext.parse(text, str(path), "quantize-settings", "the settings") or {}
        if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
            raise UsageError(f"'{path}' is no mapping of settings", code="quantize-settings")
        given = dict(given)
        named, each = given.pop("base", None), given.pop("layers", {}) or {}
        made = cls.preset(str(named)) if named else base or cls()
        if not isinstance(each, dict) or not all(isinstance(k, str) and _by_name(v) for k, v in each.items()):
            help = 'layers: {"/head/*": {activation_bits: 16}, "type:Softmax": {float: float16}}'
            raise UsageError(f"'layers' of '{path}' is no mapping of mappings", code="quantize-settings", help=help)
        try:
            return made.changed(**given).overridden(each)
        except UsageError as error:
            raise UsageError(f"'{path}': {error.message}", code=error.code, help=error.help) from None

    def changed(self, **given: Any) -> Settings:
        """These settings with others of the graph or of all layers. UsageError for unknown ones and wrong values."""
        own = {f.name for f in fields(Settings)} - {"common", "layers"}
        of_graph = {key: given.pop(key) for key in list(given) if key in own}
        for key, value in of_graph.items():
            wanted, holds = OF_GRAPH.get(key, SWITCH)
            if not holds(value):
                raise UsageError(f"'{key}' is {value!r}, expected {wanted}", code="quantize-settings")
        return replace(self, common=replace(self.common, **checked(given)), **of_graph)

    def overridden(self, each: Mapping[str, Mapping[str, object]]) -> Settings:
        """These settings with others for layers by name, with `*` and `?`, or `type:` and a type."""
        added = tuple((key, checked(dict(given))) for key, given in each.items())
        return replace(self, layers=(*self.layers, *added))

    def of(self, layer: Layer) -> LayerSettings:
        """The settings of a layer."""
        found: dict[str, Any] = {}
        for pattern, given in self._types:
            if fnmatchcase(layer.type, pattern):
                found |= given
        for pattern, given in self._patterns:
            if fnmatchcase(layer.name, pattern):
                found |= given
        found |= self._exact.get(layer.name, {})
        return replace(self.common, **found) if found else self.common

    @cached_property
    def _types(self) -> list[tuple[str, Mapping[str, object]]]:
        return [(key[len(BY_TYPE) :], given) for key, given in self.layers if key.startswith(BY_TYPE)]

    @cached_property
    def _patterns(self) -> list[tuple[str, Mapping[str, object]]]:
        return [(k, given) for k, given in self.layers if not k.startswith(BY_TYPE) and exact_name(k) is None]

    @cached_property
    def _exact(self) -> dict[str, dict[str, object]]:
        """Settings of layers that are named in full: there may be as many as layers."""
        made: dict[str, dict[str, object]] = {}
        for key, given in self.layers:
            name = exact_name(key)
            if name is not None and not key.startswith(BY_TYPE):
                made.setdefault(name, {}).update(given)
        return made

    def unmatched(self, layers: tuple[Layer, ...]) -> list[str]:
        """Keys of `layers` that are no type, or match no name in a graph."""
        names = {layer.name for layer in layers}
        types = {*all_types(), *(layer.type for layer in layers)}
        return [
            key
            for key, _ in self.layers
            if exact_name(key) not in names
            and not any(
                fnmatchcase(n, key.removeprefix(BY_TYPE)) for n in (types if key.startswith(BY_TYPE) else names)
            )
        ]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _by_name(value: object) -> bool:
    """Whether a value is a mapping of names."""
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


def exact_name(key: str) -> str | None:
    """The one name that a key matches; None where it may match several."""
    name = key.replace("[[]", "[").replace("[*]", "*").replace("[?]", "?")
    return name if escape(name) == key else None


def checked(given: dict[str, object]) -> dict[str, Any]:
    """Settings of a layer by name, as they are held; UsageError for those that are none."""
    for key, several in BITS.items():
        if key in given:
            value = given.pop(key)
            given = {**dict.fromkeys(several, value), **given}
    known = {f.name for f in fields(LayerSettings)}
    for key, value in given.items():
        if key not in known:
            help = help_for(key, sorted(known), "settings")
            raise UsageError(f"there is no setting '{key}'", code="quantize-settings", help=help)
        if fault := _fault(key, value):
            raise UsageError(f"'{key}' is {value!r}, expected {fault}", code="quantize-settings")
    return given


def _fault(key: str, value: Any) -> str:
    """What a setting should be instead; "" for one that is right."""
    if key in RANGES:
        least, most = RANGES[key]
        zero = value == 0 and key in FREE
        whole = isinstance(value, int) and not isinstance(value, bool)
        return "" if zero or whole and least <= value <= most else f"a whole number from {least} to {most}"
    if key in CHOICES:
        empty = key == "float" and value in ("", None)
        return "" if empty or value in CHOICES[key] else f"one of {', '.join(CHOICES[key])}"
    if key in ("per_channel", "force_signed", "rescale_means", "rescale_norms"):
        wanted, holds = SWITCH
        return "" if holds(value) else wanted

    try:
        parse(str(value))
    except ValueError as error:
        return str(error)
    return ""

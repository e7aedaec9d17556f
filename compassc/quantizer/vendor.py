"""The vendor's configuration files (.cfg): a model's import, quantisation and build in one file.

`read` checks a file as a whole and gives its sections; `settings_of` makes settings of the section of the optimiser for
the layers of a graph.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, UsageError, together
from compass_core.errors.suggest import help_for, nearest
from compass_core.files import claims
from compass_core.reading import jsontext
from compass_core.reading.patterns import compiled
from compassc.graph import Graph, Layer
from compassc.layers.families.activation.reference import function_of
from compassc.quantizer.data import load, program_in
from compassc.quantizer.settings import LayerSettings, Settings
from compassc.quantizer.vendor_fields import (
    DEFAULTS,
    GLOBAL_METHODS,
    PER_LAYER,
    REFUSED,
    TAKEN,
    WITHOUT_EFFECT,
)

CODE = "vendor-config"
SECTIONS = {"common": "Common", "parser": "Parser", "optimizer": "Optimizer", "gbuilder": "GBuilder"}
OTHER_NAMES = {"autoquantizationtool": "optimizer"}
"""Sections under names of older versions."""
COMMENTS = ("#", ";", ",", "//")
PARSER_KEYS = (
    "model_type model_name model_domain input_model input input_names input_shape input_shapes output output_names "
    "output_dir input_dtype input_layout batch_size input_data_format force_float_ir compat_quantized_model"
).split()
BUILDER_KEYS = (
    "target outputs inputs simulator profile tcm_size tiling dump debug dot png random-init prof_unit local_lib dumpir "
    "disable_mmu"
).split()
TRUST = "if you trust whoever made this file: --trust"
OLD_TARGETS = ("Z1", "Z2", "Z3", "X1")
"""Targets whose biases have 16 effective bits."""


@dataclass
class Config:
    """A configuration file: its sections with keys in lower case, the lines they stand in, and what was said about it.

    `trusted`: the user says that it may run the programs that it names, and write where it wants.
    """

    path: Path
    sections: Mapping[str, Mapping[str, str]]
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    trusted: bool = False

    def get(self, section: str, *keys: str, default: str = "") -> str:
        """The value of the first of these keys that is there and not empty."""
        of_section = self.sections.get(section, {})
        return next((of_section[k] for k in keys if of_section.get(k)), default)

    def flag(self, section: str, key: str, default: bool = False) -> bool:
        text = self.get(section, key).lower()
        if text not in ("", "true", "false"):
            raise self.error(section, key, f"'{key}' is {text!r}, expected true or false")
        return default if not text else text == "true"

    def file(self, section: str, key: str) -> Path:
        """A path, from the folder of the configuration file or from the current one."""
        given = Path(self.get(section, key))
        beside = self.path.parent / given
        found = beside if not given.is_absolute() and beside.exists() else given
        claims.reads(found)
        return found

    def program(self, section: str, key: str) -> None:
        """Tells that the value names a program that is to run: CompassError unless the file is trusted."""
        if not self.trusted:
            name = self.get(section, key)
            raise self.error(section, key, f"'{name}' is a program, which would run with your rights", TRUST)

    def written(self, section: str, key: str, path: Path, suffix: str) -> Path:
        """The path of a result that the file asks for. Unless the file is trusted it is in the file's folder or the
        current one, not hidden, and has the suffix of such results."""
        if self.trusted:
            return path
        end = Path(os.path.realpath(path))
        folders = (Path(os.path.realpath(folder)) for folder in (".", self.path.parent))
        inside = next((end.relative_to(folder) for folder in folders if end.is_relative_to(folder)), None)
        if inside is None or any(part.startswith(".") for part in inside.parts):
            raise self.error(section, key, f"'{path}' would be written, which is outside of this file's folder", TRUST)
        if end.suffix != suffix:
            raise self.error(section, key, f"'{path}' would be written, expected a name that ends in {suffix}", TRUST)
        return path

    def error(self, section: str, key: str, message: str, help: str = "") -> CompassError:
        line = self.lines.get((section, key), 1)
        return CompassError(message, Span(str(self.path), line), code=CODE, help=help)


def read(path: Path, trusted: bool = False, also: Mapping[str, Iterable[str]] = MappingProxyType({})) -> Config:
    """The configuration in a file; `trusted`: see `Config`; `also`: more keys of sections that are known. CompassError naming every line that is wrong; unknown keys are warnings."""
    return parsed(files.read_text(path), path, trusted, also)


def parsed(
    content: str, path: Path, trusted: bool = False, also: Mapping[str, Iterable[str]] = MappingProxyType({})
) -> Config:
    """The configuration of a text; `path`: where it is from, which errors name."""
    text = "\n".join("" if line.lstrip().startswith(COMMENTS) else line for line in content.splitlines())
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    try:
        parser.read_string(text, str(path))
    except configparser.Error as error:
        several: Any = getattr(error, "errors", None)
        line = getattr(error, "lineno", None) or (several[0][0] if several else 1)
        first = error.message.splitlines()[0]
        raise CompassError(f"this is no configuration: {first}", Span(str(path), int(line)), code=CODE) from None
    found: dict[str, dict[str, str]] = {}
    for name in parser.sections():
        found[_section(name)] = {key: value.strip() for key, value in parser.items(name)}
    made = Config(path, found, _lines(text), trusted=trusted)
    made.warnings += [w for name, keys in found.items() for w in _unknown(name, list(keys), also.get(name, ()))]
    return made


def _section(header: str) -> str:
    """The name of a section: lower case, today's name, the first of a numbered row without its number."""
    name = header.lower()
    name = OTHER_NAMES.get(name, name)
    return "optimizer" if name == "optimizer_0" else name


def _lines(text: str) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.fullmatch(r"\s*\[(.+)\]\s*", line):
            section = _section(header[1])
        elif key := re.match(r"\s*([\w.-]+)\s*[=:]", line):
            found[section, key[1].lower()] = number
    return found


def _unknown(section: str, keys: Sequence[str], also: Iterable[str]) -> list[str]:
    known: dict[str, Sequence[str]] = {
        "common": ("mode", "use_aqt"),
        "parser": PARSER_KEYS,
        "optimizer": (*PER_LAYER, *TAKEN, *WITHOUT_EFFECT, *REFUSED),
        "gbuilder": BUILDER_KEYS,
        "runtime": ("simulator", "verbose", "dump"),
    }
    if section not in known:
        return [f"the section [{section}] is not known"]
    made = []
    for key in keys:
        if key not in (names := [*known[section], *also]):
            near = nearest(key, names)
            name = SECTIONS.get(section, section)
            made.append(f"[{name}] has no key '{key}'" + (f"; did you mean '{near}'?" if near else ""))
    return made


# -- the optimiser's section


class Choice:
    """A field with values of its own for some layers: `GLOBAL & <[(i,j),..]:V> <[Type,..]:V> <{regex}:V>`."""

    def __init__(self, text: str, longest: int) -> None:
        """`longest`: of the names that the patterns are matched with."""
        common, _, rest = text.partition("&")
        self.common = common.strip()
        self.by_id: list[tuple[list[tuple[int, int]], str]] = []
        self.by_type: list[tuple[list[str], str]] = []
        self.by_name: list[tuple[re.Pattern[str], str]] = []
        parts = re.findall(r"<([^<>]*)>", rest)
        ends = [re.search(r"[\]}]\s*:", part) for part in parts]
        if rest.strip() and (not all(ends) or not parts or re.sub(r"<[^<>]*>", "", rest).strip()):
            raise ValueError("VALUE & <[(i,j)]:VALUE> <[Type]:VALUE> <{regex}:VALUE>")
        for part, end in zip(parts, ends, strict=True):
            assert end is not None, "all have one"
            self._add(part[: end.start() + 1].strip(), part[end.end() :].strip(), longest)

    def _add(self, which: str, value: str, longest: int) -> None:
        if which[0] not in "{[":
            raise ValueError("VALUE & <[(i,j)]:VALUE> <[Type]:VALUE> <{regex}:VALUE>")
        if which.startswith("{"):
            self.by_name.append((compiled(which[1:-1], longest), value))
            return
        pairs = re.findall(r"\(\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\)", which)
        if pairs:
            self.by_id.append(([(int(a), int(b)) for a, b in pairs], value))
        else:
            self.by_type.append(([n.strip().lower() for n in which[1:-1].split(",")], value))

    def of(self, index: int, layer: Layer) -> str:
        """The value for a layer: by its number, else its type (of activations also the method), else its name."""
        for ranges, value in self.by_id:
            if any(a <= index <= b for a, b in ranges):
                return value
        names = {layer.type.lower(), function_of(layer).lower()}
        for types, value in self.by_type:
            if names & set(types):
                return value
        return next((value for pattern, value in self.by_name if pattern.fullmatch(layer.name)), self.common)


def settings_of(config: Config, graph: Graph) -> Settings:
    """The settings of the section [Optimizer] for a graph. CompassError naming every field that is wrong or not known
    here; what changes nothing is a warning."""
    section = config.sections.get("optimizer", {})
    faults = _refused(config)
    choices: dict[str, Choice] = {}
    longest = max((len(layer.name) for layer in graph.layers), default=0)
    for key in PER_LAYER:
        text = re.sub(r"\s+", "", section.get(key, "")) or DEFAULTS.get(key, "")
        try:
            choices[key] = Choice(text, longest)
        except ValueError as error:
            faults.append(config.error("optimizer", key, f"'{key}' is {text!r}, expected {error}"))
    common: dict[str, object] = {}
    each: dict[str, dict[str, object]] = {}
    for key, choice in choices.items():
        try:
            common |= _taken(key, choice.common)
            for index, layer in enumerate(graph.layers):
                value = choice.of(index, layer)
                if value != choice.common:
                    each.setdefault(layer.name, {}).update(_taken(key, value))
        except ValueError as error:
            faults.append(config.error("optimizer", key, f"'{key}' is {section.get(key, '')!r}, expected {error}"))
    each = _with_opt_config(config, graph, each, faults)
    common |= _of_graph(config, faults)
    if faults:
        raise together(faults)
    settings = Settings(common=LayerSettings(activation_strategy="mean", per_channel=False))
    return settings.changed(**common).overridden({escape(name): given for name, given in each.items()})


def _taken(key: str, text: str) -> Mapping[str, object]:
    return PER_LAYER[key](text) if text or key in ("bias_effective_bits", "multiplier_bits") else {}


def _refused(config: Config) -> list[CompassError]:
    found = []
    for key, text in config.sections.get("optimizer", {}).items():
        plain = re.sub(r"\s+", "", text).lower()
        if key in REFUSED and plain not in REFUSED[key]:
            found.append(
                config.error("optimizer", key, f"'{key}' is {text!r}, which is not supported", "leave the line out")
            )
        elif key in WITHOUT_EFFECT and plain not in ("", "false", "disable"):
            config.warnings.append(f"[Optimizer] '{key}' has no effect: {WITHOUT_EFFECT[key]}")
    return found


def _of_graph(config: Config, faults: list[CompassError]) -> dict[str, object]:
    """Settings that are of all layers."""
    made: dict[str, object] = {}
    target = config.get("optimizer", "min_compatible_zhouyi_target", default="X2").upper().split("_")[0]
    if target in OLD_TARGETS and not config.get("optimizer", "bias_effective_bits"):
        made["bias_effective_bits"] = 16
    for part in config.get("optimizer", "global_calibration", default="none").split("&"):
        name = re.sub(r"[\[(].*", "", part.strip()).lower()
        if name not in GLOBAL_METHODS:
            faults.append(
                config.error(
                    "optimizer", "global_calibration", f"'global_calibration' names '{name}', which is not supported",
                    help_for(name, GLOBAL_METHODS, "methods"),
                )
            )  # fmt: skip
        made |= GLOBAL_METHODS.get(name, {})
    momentum = config.get("optimizer", "running_statistic_momentum", default="0.9")
    try:
        made["momentum"] = float(momentum)
    except ValueError:
        faults.append(config.error("optimizer", "running_statistic_momentum", f"{momentum!r} is no number from 0 to 1"))
    if config.flag("optimizer", "unify_scales_for_concat"):
        threshold = config.get("optimizer", "unify_scales_for_concat_threshold", default="1.05")
        try:
            made["unify"] = max(float(threshold), 1.0)
        except ValueError:
            faults.append(
                config.error("optimizer", "unify_scales_for_concat_threshold", f"{threshold!r} is no number from 1")
            )
    return made


OF_LAYERS: dict[str, str] = {
    "q_bits_weight": "weight_bits", "q_bits_activation": "activation_bits", "q_bits_bias": "bias_bits",
    "bias_effective_bits": "bias_effective_bits", "lut_items_in_bits": "lut_items_in_bits",
    "multiplier_bits": "multiplier_bits", "q_mode_weight": "quantize_method_for_weight",
    "q_mode_activation": "quantize_method_for_activation", "q_strategy_weight": "calibration_strategy_for_weight",
    "q_strategy_activation": "calibration_strategy_for_activation", "trigger_float_op": "trigger_float_op",
}  # fmt: skip
"""Keys of the JSON file of single layers, and the fields that they are."""


def _with_opt_config(
    config: Config, graph: Graph, each: dict[str, dict[str, object]], faults: list[CompassError]
) -> dict[str, dict[str, object]]:
    """Settings of single layers in the JSON file that `opt_config` names; other layers and keys are left out."""
    if not config.get("optimizer", "opt_config"):
        return each

    path = config.file("optimizer", "opt_config")
    given = jsontext.parse(files.read_text(path), str(path))
    names = {layer.name for layer in graph.layers}
    for name, keys in given.items() if isinstance(given, dict) else ():
        for key, value in keys.items() if name in names and isinstance(keys, dict) else ():
            if key not in OF_LAYERS:
                continue
            try:
                each.setdefault(name, {}).update(PER_LAYER[OF_LAYERS[key]](str(value)))
            except ValueError as error:
                faults.append(CompassError(f"'{key}' of '{name}' is {value!r}, expected {error}", Span(str(path), 1),
                                           code=CODE))  # fmt: skip
    return each


# -- data


DATASETS: dict[str, Sequence[int] | None] = {
    "numpydataset": None, "numpywithdimdataset": None, "numpymultiinputdataset": None,
    "tensorfromnumpymultiinputdataset": None, "numpyzippeddataset": None, "numpynhwc2nchwdataset": (0, 3, 1, 2),
    "numpynchw2nhwcdataset": (0, 2, 3, 1),
}  # fmt: skip
"""Data sets by name, and the order of axes that each brings samples to."""


def samples_of(config: Config, graph: Graph) -> Any:
    """The calibration data that the section [Optimizer] names; None where it names none."""
    import numpy as np

    if not config.get("optimizer", "calibration_data"):
        return None
    name = config.get("optimizer", "dataset").lower()
    if not name:
        raise config.error(
            "optimizer", "calibration_data", "'calibration_data' without 'dataset'", "dataset = numpydataset"
        )
    if name not in DATASETS and name + "dataset" not in DATASETS:
        raise config.error(
            "optimizer", "dataset", f"the data set '{name}' is not known", help_for(name, DATASETS, "data sets")
        )
    path = config.file("optimizer", "calibration_data")
    if program_in(str(path)) is not None:
        config.program("optimizer", "calibration_data")
    order = DATASETS.get(name, DATASETS.get(name + "dataset"))
    if order is None:
        return load(path, graph)
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise config.error("optimizer", "calibration_data", f"'{path}' holds no array: {error}") from None
    if array.ndim != 4:
        raise config.error("optimizer", "calibration_data", f"'{path}' has {array.ndim} dimensions, expected 4")
    return load(array.transpose(*order), graph)


def shapes_of(config: Config) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs that the section [Parser] names."""
    names = [n.strip() for n in config.get("parser", "input", "input_names").split(",") if n.strip()]
    text = config.get("parser", "input_shape", "input_shapes")
    parts = re.findall(r"\[([^\]]*)\]", text)
    for part in parts:
        if not all(re.fullmatch(r"\s*[0-9]{1,9}\s*", n) for n in part.split(",") if part.strip()):
            raise config.error("parser", "input_shape", f"'[{part}]' is no shape", "write it as [1, 224, 224, 3]")
    shapes = [tuple(map(int, part.split(","))) if part.strip() else () for part in parts]
    if text and len(shapes) != len(names):
        raise config.error("parser", "input_shape", f"{len(shapes)} shapes for {len(names)} inputs")
    return dict(zip(names, shapes, strict=False)) if text else {}


def required(config: Config, section: str, key: str) -> str:
    """The value of a key. UsageError where it is missing."""
    value = config.get(section, key)
    if not value:
        raise UsageError(f"'{config.path}' names no '{key}' in [{SECTIONS[section]}]", code=CODE)
    return value

"""`aipubuild`: a model to aipu.bin as a configuration file of the vendor says, for those who have such files.

`aipubuild model.cfg` is `compassc import`, `optimize`, `quantize` and `gbuild` with the settings of its sections; the
graphs lie where the file wants them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compass_core import files, switches, targets
from compass_core.arrays import Array
from compass_core.errors.suggest import help_for
from compass_runtime import Program
from compassc.cli import errors, options
from compassc.cli.console import Console
from compassc.cli.outputs import graph_place, hand_over, place
from compassc.importers import import_model

if TYPE_CHECKING:
    from compassc.graph import Graph
    from compassc.quantizer.vendor import Config

SUFFIXES = {"onnx": ".onnx", "tflite": ".tflite", "torch": ".pt2", "pytorch": ".pt2"}
"""Model types that can be imported, and what their files are called."""
NO_EFFECT = ("simulator", "profile", "tcm_size", "tiling", "dump", "debug", "dot", "png", "random-init", "prof_unit",
             "dumpir", "disable_mmu")  # fmt: skip
"""Keys of [GBuilder] that change nothing here."""


@click.command(epilog=options.example("compassc aipubuild model.cfg"))
@click.argument("source", type=options.INPUT, metavar="FILE.cfg")
@click.option("--plugins", multiple=True, type=options.PLACE, metavar="DIR|FILE", help="Load plugins of DIR, or FILE.")
@click.option(
    "--trust",
    is_flag=True,
    help="Trust whoever made FILE.cfg: run the programs that it names (data sets FILE.py:NAME, PyTorch's .pt2), write "
    "results wherever it says.",
)
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, plugins: tuple[Path, ...], trust: bool) -> None:
    """A model to aipu.bin as a configuration file (.cfg) of the vendor says.

    [Parser] names the model, [Optimizer] how it is quantised and with which data, [GBuilder] target and result. With
    mode=run the result is run on the simulator. Results lie in the folder of the file or the current one. Plugins are
    those of --plugins and of the folders in AIPUPLUGIN_PATH.
    """
    from compassc.quantizer import vendor

    console.inputs.append(source)
    config = vendor.read(source, trust)
    mode = config.get("common", "mode", default="build").lower()
    if mode not in ("build", "run"):
        raise config.error("common", "mode", f"'mode' is {mode!r}, expected build or run")
    wanted = config.written("gbuilder", "outputs", Path(config.get("gbuilder", "outputs", default="aipu.bin")), ".bin")
    target = _target(config)
    quantised = _quantised(console, config)
    for key in NO_EFFECT:
        if config.get("gbuilder", key).lower() not in ("", "false"):
            config.warnings.append(f"[GBuilder] '{key}' has no effect here")
    for warning in dict.fromkeys(config.warnings):
        console.say(f"warning: {warning}")
    program = wanted if mode == "build" else wanted.with_name("aipu.bin")
    _build(console, config, quantised, program, plugins, target)
    if mode == "run":
        _run(console, config, program, wanted)


def _target(config: Config) -> str:
    """The NPU configuration, which is looked up before the work begins. CompassError for one that is not known."""
    given = config.get("gbuilder", "target")
    return targets.load(given.upper() if given else switches.TARGET.get()).name


def _result(config: Config, section: str, default: str, key: str, name: str) -> Path:
    """The path of a result called `name`, as `key` says, in the section's folder, which is made where it is missing."""
    if Path(name).name != name:
        raise config.error(section, key, f"'{name}' is no name of a file")
    folder = Path(config.get(section, "output_dir", default=default))
    path = config.written(section, "output_dir", folder / name, ".txt")
    folder.mkdir(parents=True, exist_ok=True)
    return graph_place(None, path)


def _imported(config: Config) -> Graph:
    """The float graph of the model that [Parser] names."""
    from compassc.graph import passes
    from compassc.quantizer import vendor

    kind = config.get("parser", "model_type", default="onnx").lower()
    vendor.required(config, "parser", "input_model")
    path = config.file("parser", "input_model")
    if kind not in SUFFIXES or path.suffix.lower() != SUFFIXES[kind]:
        known = ", ".join(f"{k} ({s})" for k, s in SUFFIXES.items())
        raise config.error(
            "parser", "model_type", f"'{path}' of the type {kind!r} cannot be imported", f"known are {known}"
        )
    if path.suffix.lower() == ".pt2":
        config.program("parser", "input_model")
    graph = import_model(path, vendor.shapes_of(config))
    graph = _with_outputs(config, graph)
    return passes.optimise(graph)


def _with_outputs(config: Config, graph: Graph) -> Graph:
    """The graph up to the outputs that [Parser] names: layers, or tensors."""
    from compassc.graph.passes import remove_dead_layers

    names = [n.strip() for n in config.get("parser", "output", "output_names").split(",") if n.strip()]
    layers = {layer.name: layer.outputs for layer in graph.layers}
    tensors = graph.tensors()
    missing = [n for n in names if n not in layers and n not in tensors]
    if missing and len(names) == len(graph.outputs):
        return graph  # the model's own outputs, under names of its tensors
    if missing:
        raise config.error(
            "parser", "output", f"no layer or tensor is called '{missing[0]}'", help_for(missing[0], layers, "layers")
        )
    if not names:
        return graph
    ends = [t for n in names for t in ((tensors[n],) if n in tensors else layers[n])]
    return remove_dead_layers.run(replace(graph, outputs=tuple(dict.fromkeys(ends))))


def _quantised(console: Console, config: Config) -> tuple[Path, Path]:
    """Imports and quantises; gives the files of the quantised graph."""
    import warnings

    from compassc.graph import files, verify
    from compassc.quantizer import Calibration, quantize_model, vendor
    from compassc.quantizer.model import needs_data

    graph = _imported(config)
    name = config.get("parser", "model_name", default=config.get("optimizer", "model_name", default="model"))
    files.save(graph, _result(config, "parser", ".", "model_name", f"{name}.txt"))
    settings = vendor.settings_of(config, graph)
    quantised = config.get("optimizer", "quant_ir_name", "out_ir_name", default=f"{name}_o")
    path = _result(config, "optimizer", "./opt_log", "quant_ir_name", f"{quantised}.txt")
    statistics = config.get("optimizer", "statistic_file")
    calibration = Calibration.load(config.file("optimizer", "statistic_file")) if statistics else None
    data = vendor.samples_of(config, graph)
    if data is None and calibration is None and needs_data(settings):
        raise config.error("optimizer", "calibration_data", "[Optimizer] names no 'calibration_data'",
                           "dataset = numpydataset, calibration_data = samples.npy")  # fmt: skip
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        made = quantize_model(graph, data, settings, calibration=calibration)
    config.warnings += [str(w.message) for w in said if issubclass(w.category, UserWarning)]
    verify.check(made.graph, verify.Stage.QUANTISED)
    weights = files.save(made.graph, path)
    if config.flag("optimizer", "save_statistic_info") and made.calibration is not None:
        made.calibration.save(path.with_name(f"{name}_statistic_info.npz"))
    from compassc.cli.quantizing import summary

    for line in summary(made):
        console.say(line)
    console.made(path)
    return path, weights


def _build(
    console: Console, config: Config, quantised: tuple[Path, Path], output: Path, plugins: tuple[Path, ...], target: str
) -> None:
    from compassc.gbuilder.build import GraphOptions, build_model

    here = Path.cwd()
    libraries = tuple(Path(p.strip()) for p in config.get("gbuilder", "local_lib").split(",") if p.strip())
    with place(output) as made:
        choice = GraphOptions(
            plugin_dirs=plugins, library_dirs=(here, *libraries),
            work_dir=made.parent / f"{quantised[0].stem}.compass",
        )  # fmt: skip
        built = build_model(quantised[0], quantised[1], made, target, choice)
        console.clear_progress()
        console.say(built.summary())
        hand_over(console, made, output)


def _run(console: Console, config: Config, program: Path, wanted: Path) -> None:
    """Runs aipu.bin on the files of inputs; the outputs' bytes go to `wanted`, and NAME.1 and so on."""
    import numpy as np

    loaded = Program.load(program)
    names = [n.strip() for n in config.get("gbuilder", "inputs").split(",") if n.strip()]
    inputs: dict[str, Array] = {}
    job = loaded.create_job()
    tensors = loaded.inputs
    if len(names) != len(tensors):
        raise config.error("gbuilder", "inputs", f"{len(names)} files for {len(tensors)} inputs")
    for name, t in zip(names, tensors, strict=True):
        content = files.read(Path(name) if Path(name).exists() else config.path.parent / name)
        size = t.dtype.size * math.prod(t.shape or ())
        if len(content) != size:
            raise config.error("gbuilder", "inputs", f"'{name}' has {len(content)} bytes, the input '{t.name}' {size}")
        inputs[t.name] = np.frombuffer(content, t.numpy_dtype).reshape(t.shape or ())
    results: Mapping[str, Array] = job.run(inputs)
    for i, array in enumerate(results.values()):
        path = wanted if not i else wanted.with_name(f"{wanted.name}.{i}")
        files.write(path, np.asarray(array).tobytes())
        console.made(path)


def main() -> None:
    """Entry point of the `aipubuild` program."""
    sys.exit(errors.run(command, sys.argv[1:], "aipubuild"))


if __name__ == "__main__":
    main()

"""The stages from a model to aipu.bin. Each leaves its graph in the folder of the build, and can start from the file of
the one before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files, switches, targets
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, UsageError
from compass_core.reading.limits import RECORD_BYTES
from compassc.driver.build import STAGE_FOLDER_SUFFIX, Listener, StageRecord, run_stages
from compassc.driver.files import sha256_of, stage_files
from compassc.driver.stages import Stage, find_stage
from compassc.graph.files import is_graph, load, save
from compassc.graph.launches import write_launches
from compassc.graph.passes import optimise, run_stage
from compassc.graph.specialise import specialise
from compassc.graph.states import asked_states
from compassc.graph.verify import Stage as Guarantee
from compassc.graph.verify import check

if TYPE_CHECKING:
    from compassc.gbuilder.build import GraphBuild
    from compassc.graph import Graph, Tensor
    from compassc.pass_manager import PassOptions
    from compassc.quantizer.data import Pictures
    from compassc.quantizer.model import Outcome
    from compassc.quantizer.settings import Settings

EVEN = "even.txt"
"""The float graph with the weights of neighbouring layers evened out, where the settings ask for that: what the quantised
one is to be compared with."""
LAUNCHES = "launches.txt"
"""Which layers run in one launch, and why no more."""
STATISTICS = "calibration.npz"
"""What calibration found, for `compassc quantize --statistics`."""


@dataclass(frozen=True)
class QuantizeRequest:
    """How a graph is quantised; the arguments of `compassc.quantizer.quantize_model`. `data`: samples to calibrate with.
    `outcome`: what an earlier build of the same graph made by this request, which is taken."""

    data: object = None
    settings: Settings | str = "int8"
    min_cosine: float | None = None
    pictures: Pictures | None = None
    limit: int | None = None
    min_sqnr: float | None = None
    judged: bool = False
    cycles: Callable[[Graph], float] | None = None
    outcome: Outcome | None = None


@dataclass
class ModelRequest:
    """What to build of a model, and how.

    `source`: the model's file, or a graph's text, which needs no import any more; instead of it `model`, an object that can
    be imported, or `graph`.
    `shapes`: of inputs, where the model leaves them open. `outputs`: tensors of the model's file that are to be outputs,
    instead of its own. `passes`: options of the stage optimize.
    `quantize`: how the graph is quantised; None: not at all. `output`: the aipu.bin; the files of the stages go to `folder`, by default `STEM.compass` beside it, and the graph of the last stage
    to `final` where that is not gbuild. `fuse`: element-wise layers join the kernel of the layer before them. `aiff`: 1x1
    convolutions are built for the AIFF (`GraphOptions`). `batch`: samples that a run takes. `states`: outputs that are inputs
    of the next run, inputs by outputs, or "auto" (`compassc.graph.states.asked_states`), besides those that the model says.
    """

    source: Path | None = None
    model: Any = None
    graph: Graph | None = None
    target: str = ""
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    outputs: Sequence[str] = ()
    passes: PassOptions | None = None
    quantize: QuantizeRequest | None = None
    output: Path = Path("aipu.bin")
    folder: Path | None = None
    final: Path | None = None
    stop_after: str = "gbuild"
    fuse: bool = True
    aiff: bool = False
    batch: int = 1
    states: Mapping[str, str] | str = field(default_factory=dict)

    def stage_folder(self) -> Path:
        """Where the stage files go."""
        stem = self.source.stem if self.source is not None else "model"
        return self.folder or self.output.parent / (stem + STAGE_FOLDER_SUFFIX)


@dataclass
class ModelBuild:
    """The state of a build: the graph as the last stage left it; `graphs` has those of all stages by the stage's name.

    `floats`: the graph that a quantised one stands for."""

    request: ModelRequest
    folder: Path
    target: targets.Target
    graph: Graph | None = None
    graphs: dict[str, Graph] = field(default_factory=dict)
    floats: Graph | None = None
    quantised: Outcome | None = None
    built: GraphBuild | None = None
    records: list[StageRecord] = field(default_factory=list)

    @property
    def result(self) -> Path:
        """The main artifact of the last stage that ran."""
        return self.records[-1].outputs[0]

    def last_graph(self) -> Graph:
        """The graph as it is now."""
        assert self.graph is not None, "stages run after the import, or on a graph that was loaded"
        return self.graph


def _load_model(build: ModelBuild, path: Path) -> None:
    build.request.source = path


def _import(build: ModelBuild) -> list[Path]:
    from compassc.importers import import_model, import_object

    request = build.request
    if request.model is not None:
        return _keep(build, "import", _stateful(build, import_object(request.model, request.shapes)))
    assert request.source is not None, "import has a file to read"
    imported = import_model(request.source, request.shapes, request.outputs)
    return _keep(build, "import", _stateful(build, imported))


def _stateful(build: ModelBuild, graph: Graph) -> Graph:
    """The graph with the states that are asked for."""
    return asked_states(graph, build.request.states) if build.request.states else graph


def _load_graph(build: ModelBuild, path: Path) -> None:
    graph = load(path)
    check(graph)
    build.graph = _stateful(build, specialise(graph, build.request.shapes) if build.request.shapes else graph)


def _optimize(build: ModelBuild) -> list[Path]:
    return _keep(build, "optimize", optimise(build.last_graph(), build.request.passes))


def _quantize(build: ModelBuild) -> list[Path]:
    from compassc.quantizer.model import quantize_model

    asked = build.request.quantize
    assert asked is not None, "the stage runs when it was asked for"
    build.floats = build.last_graph()
    made = asked.outcome or quantize_model(
        build.floats, asked.data, asked.settings, min_cosine=asked.min_cosine, pictures=asked.pictures,
        limit=asked.limit, min_sqnr=asked.min_sqnr, judged=asked.judged, cycles=asked.cycles,
    )  # fmt: skip
    check(made.graph, Guarantee.QUANTISED)
    build.quantised = made
    outputs = _keep(build, "quantize", made.graph)
    if made.settings.equalise:
        build.floats = run_stage("equalise", build.floats)
        outputs += [build.folder / EVEN, save(build.floats, build.folder / EVEN)]
    if made.calibration is not None:
        made.calibration.save(build.folder / STATISTICS)
        outputs.append(build.folder / STATISTICS)
    return outputs


def _batch(build: ModelBuild) -> list[Path]:
    from compassc.quantizer.batching import batched

    graph = build.last_graph()
    return _keep(build, "batch", batched(graph, build.floats or graph, build.request.batch))


def _keep(build: ModelBuild, name: str, graph: Graph) -> list[Path]:
    """Takes over what a stage made, and writes it."""
    request = build.request
    last = request.final is not None and request.stop_after == name
    path = request.final if last and request.final else build.folder / stage_named(name).writes
    build.graph = build.graphs[name] = graph
    return [path, save(graph, path)]


def _gbuild(build: ModelBuild) -> list[Path]:
    from compassc.gbuilder.build import GraphOptions, build_in_memory

    request = build.request
    # Kernels have a folder of their own: their builds lock it, while this build holds the lock of its own.
    options = GraphOptions(work_dir=build.folder / "kernels", fuse=request.fuse, aiff=request.aiff)
    build.built = build_in_memory(build.last_graph(), build.folder, request.output, build.target.name, options)
    return [build.built.path, files.write(build.folder / LAUNCHES, write_launches(build.built.grouping))]


STAGES: tuple[Stage[ModelBuild], ...] = (
    Stage("import", ".onnx", "float.txt", _load_model, _import),
    Stage("optimize", "float.txt", "opt.txt", _load_graph, _optimize),
    Stage("quantize", "opt.txt", "quant.txt", _load_graph, _quantize),
    Stage("batch", "quant.txt", "batch.txt", _load_graph, _batch),
    Stage("gbuild", "batch.txt", ".bin", _load_graph, _gbuild),
)


def stage_named(name: str) -> Stage[ModelBuild]:
    """The stage of models called `name`; UsageError with the nearest name when there is none."""
    return find_stage(name, STAGES, f"a model has no stage '{name}'")


def run_model_build(
    request: ModelRequest, listener: Listener | None = None, waiting: Callable[[Path], object] = lambda folder: None
) -> ModelBuild:
    """Runs the stages up to `request.stop_after` and writes build.yaml; see `run_build`."""
    last = stage_named(request.stop_after)
    constants = [
        Path(name).with_suffix(".bin").name for name in (EVEN, *(s.writes for s in STAGES if s is not STAGES[-1]))
    ]
    if last is STAGES[-1] and request.output.name in constants:
        raise UsageError(
            f"'{request.output.name}' is what the constants of a stage are called", code="usage", help="-o NET.bin"
        )
    build = ModelBuild(request, request.stage_folder(), targets.load(request.target or switches.TARGET.get()))
    stages = [stage for stage in STAGES if _is_asked(stage.name, request)]
    if request.outputs and stages[0].name != "import":
        help = "give the model's own file"
        raise UsageError(
            f"'{request.source}' is a graph, whose outputs are chosen at the import", code="usage", help=help
        )
    if last not in stages:
        why, help = _MISSING[last.name]
        raise UsageError(f"'{request.source}' {why}", code="usage", help=help)
    if request.graph is not None:
        build.graph = _stateful(build, request.graph)
    elif stages[0].name != "import":
        assert request.source is not None, "there is a model, a graph, or the file of one"
        stages[0].load(build, request.source)
    with stage_files(build.folder, lambda: waiting(build.folder)):
        run_stages(build, stages, last, listener)
        _write_record(build)
    return build


_MISSING = {
    "import": ("is a graph, which is not imported any more", "--stop-after optimize"),
    "quantize": ("is not to be quantised", "--calibrate DATA, or --quantize fp16"),
    "batch": ("is built for one sample", "--batch N"),
}
"""Why a stage is none of a build, and what to do."""


def _is_asked(name: str, request: ModelRequest) -> bool:
    """Whether a stage is part of what is asked for."""
    if name == "import":
        return request.graph is None and (request.source is None or not is_graph(request.source))
    return {"quantize": request.quantize is not None, "batch": request.batch > 1}.get(name, True)


def _write_record(build: ModelBuild) -> None:
    from compassc.driver.record import write_record

    graph = build.last_graph()
    about = {
        **_asked(build.request),
        "floats": _floats(build),
        "layers": {name: len(list(made.computing())) for name, made in build.graphs.items()},
        "inputs": [_described(t) for t in graph.inputs],
        "outputs": [_described(t) for t in graph.outputs],
    }
    write_record(build.folder, build.target.name, build.records, about, {})


def _asked(request: ModelRequest) -> dict[str, object]:
    """What a record says of the request: the model, and the form of it that was built."""
    return {
        "model": str(request.source) if request.source else None,
        "shapes": {name: list(shape) for name, shape in request.shapes.items()},
        "output_tensors": list(request.outputs),
        "quantize": _quantising(request.quantize),
        "aiff": request.aiff,
        "batch": request.batch,
        "states": request.states if isinstance(request.states, str) else dict(request.states),
    }


def has_other_build(request: ModelRequest) -> bool:
    """Whether the folder of a request has a build already that is not known to be of the same form."""
    path = request.stage_folder() / "build.yaml"
    if not path.exists():
        return False
    asked = request.quantize
    named = asked is None or (isinstance(asked.data, (str, Path, type(None))) and isinstance(asked.settings, str))
    same = {"target": request.target or switches.TARGET.get(), **_asked(request)}
    try:
        record = _record_in(path)
    except CompassError:
        return True
    return not named or any(record.get(key) != value for key, value in same.items())


def _record_in(path: Path) -> dict[str, Any]:
    """What a build.yaml says. CompassError where it is none."""
    from compass_core.reading import yamltext

    record = yamltext.parse(files.read_text(path, RECORD_BYTES), str(path), "bad-record", "the record of a build")
    if not isinstance(record, dict):
        raise CompassError("not the record of a build", Span(str(path), 1), code="bad-record")
    return record


def _floats(build: ModelBuild) -> str | None:
    """The file of the graph that a quantised one stands for."""
    if build.floats is None:
        return None
    return EVEN if build.floats is not build.graphs["optimize"] else stage_named("optimize").writes


def _quantising(asked: QuantizeRequest | None) -> dict[str, object] | None:
    """What was asked for; data and settings by their names, where they have one."""
    if asked is None:
        return None
    named = {"settings": asked.settings, "calibrate": asked.data}
    shown = {key: str(value) if isinstance(value, (str, Path)) else None for key, value in named.items()}
    return {**shown, "min_cosine": asked.min_cosine, "min_sqnr": asked.min_sqnr, "samples": asked.limit}


def _described(tensor: Tensor) -> dict[str, object]:
    numbers = {"scale": tensor.scale, "zero": tensor.zero} if tensor.is_integer else {}
    return {"name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape), **numbers}


@dataclass(frozen=True)
class ModelRecord:
    """What the build.yaml of a model says. `graph`: the text of the graph that was built; `floats`: that of the one it was
    quantised from; `source`: the file that it was made from. None where there is none."""

    graph: Path
    floats: Path | None
    binary: Path
    source: Path | None


def read_record(folder: Path) -> ModelRecord:
    """Reads the record of a finished build. CompassError where there is none, and where aipu.bin is another one by now."""
    path = folder / "build.yaml"
    if not path.is_file():
        raise CompassError(f"'{folder}' is not the folder of a build: it has no build.yaml", code="unknown-file")
    record = _record_in(path)
    try:
        stages = {stage["name"]: stage for stage in record["stages"]}
        # a model of other outputs, or for several samples, is not what its framework computes
        whole = record["model"] and not record.get("output_tensors") and record.get("batch", 1) == 1
        source = _found(folder, record["model"]) if whole else None
        graphs = [stage.writes for stage in STAGES if stage.name in stages and stage.name != "gbuild"]
        floats = folder / record["floats"] if record["floats"] and record.get("batch", 1) == 1 else None
        made = stages.get("gbuild")
        binary = _found(folder, made["output"]) if made else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CompassError(
            f"not the record of a model's build: {error!r:.300}", Span(str(path), 1), code="bad-record"
        ) from None
    if made is None:
        raise CompassError(
            f"the build in '{folder}' ended before the aipu.bin",
            code="unknown-file",
            help="build it without --stop-after",
        )
    if binary is None or sha256_of(binary) != made["sha256"]:
        raise CompassError(
            f"the aipu.bin of the build in '{folder}' is not there any more",
            code="unknown-file",
            help="build the model again",
        )
    return ModelRecord(folder / graphs[-1], floats, binary, source)


def _found(folder: Path, name: str) -> Path | None:
    """A file that a record names: in the folder, or beside it, or where it was when seen from the current folder."""
    path = Path(name)
    return next((p for p in (folder / path.name, folder.parent / path.name, path) if p.is_file()), None)

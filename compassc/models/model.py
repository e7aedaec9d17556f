"""A model that was built, and is called from Python."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import files, progress
from compass_core.arrays import Array
from compass_core.errors import UsageError
from compass_core.samples import joined
from compass_runtime.profile.collect import counting
from compass_runtime.profile.result import profile_of
from compass_runtime.states import States
from compassc.driver.build import STAGE_FOLDER_SUFFIX
from compassc.graph import Graph, Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.files import load
from compassc.graph.states import shown_outputs
from compassc.layers.real_values import to_real
from compassc.models.build import ModelBuild, ModelRequest, QuantizeRequest, read_record, run_model_build
from compassc.models.ends import Sample, elements_of, is_quantised, named, samples_of, short_name, the_sample

if TYPE_CHECKING:
    from compass_runtime import rpc
    from compass_runtime.job import Job
    from compass_runtime.profile.result import Profile
    from compass_runtime.program import Program
    from compass_runtime.rpc.programs import RemoteJob
    from compassc.quantizer.settings import Settings


class Model:
    """A built model. `model(x)` runs it on the simulator.

    `graph` is what was built, `floats` the graph before it was quantised (the same, where it was not; None, where it came
    quantised); `path` is the aipu.bin, `folder` has the files of the stages.
    """

    def __init__(self, graph: Graph, floats: Graph, path: Path, folder: Path, source: Any = None) -> None:
        """`source`: the file or object that the graph was made from, which evaluations compare with."""
        self.graph = graph
        self.floats = None if graph is floats and is_quantised(graph) else floats
        self.path, self.folder, self.source = path, folder, source
        self._keep: object = None
        self._session: rpc.Session | None = None

    @classmethod
    def of(cls, build: ModelBuild, keep: object = None) -> Model:
        """The model of a finished build. `keep`: what its files last as long as."""
        request = build.request
        floats = build.floats if build.floats is not None and request.batch == 1 else build.last_graph()
        source = request.model if request.model is not None else request.source
        model = cls(build.last_graph(), floats, build.result, build.folder, source)
        model._keep = keep
        return model

    @classmethod
    def load(cls, folder: Path | str) -> Model:
        """The model that a build left in a folder (`compassc build`, `compile(..., folder=...)`, `export`). CompassError
        where that is none, or the build did not reach the aipu.bin."""
        folder = Path(folder)
        record = read_record(folder)
        graph = load(record.graph)
        floats = load(record.floats) if record.floats is not None else graph
        return cls(graph, floats, record.binary, folder, record.source)

    # -- what it is

    @property
    def name(self) -> str:
        """The file that it was made from, without its suffix; else the graph's name."""
        return Path(self.source).stem if isinstance(self.source, (str, Path)) else self.graph.name

    @property
    def target(self) -> str:
        """The NPU configuration."""
        return self.program.target

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self.graph.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self.graph.outputs

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers that compute something, in order."""
        return tuple(self.graph.computing())

    @property
    def quantised(self) -> bool:
        """Whether it computes with integers that stand for real numbers."""
        return self.graph is not self.floats

    @cached_property
    def exact(self) -> bool:
        """Whether it computes with integers alone, so that the references give the same bits as the kernels."""
        return all(t.is_integer for layer in self.layers for t in (*layer.inputs, *layer.outputs))

    @cached_property
    def program(self) -> Program:
        """The aipu.bin as the runtime has it."""
        from compass_runtime.program import Program

        return Program.load(self.path, trusted=True)

    @cached_property
    def _job(self) -> Job:
        return self.program.create_job()

    @property
    def rpc_sess(self) -> rpc.Session | None:
        """The session on whose server the model runs when it is called; None: it runs here."""
        return self._session

    @rpc_sess.setter
    def rpc_sess(self, session: rpc.Session | None) -> None:
        self.__dict__.pop("_there", None)
        self._session = session

    @cached_property
    def _there(self) -> RemoteJob:
        """The model on the server of the session."""
        from compass_runtime.rpc.programs import RemoteProgram

        assert self._session is not None
        return RemoteProgram(self._session, self.program, self.path.read_bytes()).create_job()

    def __repr__(self) -> str:
        ends = [", ".join(f"{t.dtype} {list(t.shape)}" for t in tensors) for tensors in (self.inputs, self.outputs)]
        return f"<Model '{self.name}' for {self.target}: {ends[0]} -> {ends[1]}, {len(self.layers)} layers>"

    # -- running

    def __call__(self, *inputs: object, raw: bool = False, nan: str = "refuse", **by_name: object) -> Any:
        """Runs on arrays, in the order of `inputs` or by name: real numbers, which are quantised where the model is, and
        given back as real numbers in float32. `raw`: the integers themselves, in and out. `nan`: what becomes of NaN
        where the model takes integers: "refuse", or "warn" (it is the element 0 then, as in `Quantize` layers).

        Arrays have the shapes of `inputs`, or any number of samples along a first axis, as the outputs then have. Gives
        the output, a tuple where there are several. CompassError for arrays of other names, shapes or (raw) types, for
        numbers that the model's integers do not stand for, and for faults of the run.

        A model with states keeps them from run to run until `reset()`: they are not among the outputs, and among the inputs
        where somebody wants to begin with others, as one sample, or to give one for each.
        """
        arrays = named(self.graph, by_name if by_name else inputs)
        single = all(arrays[t.name].shape == t.shape for t in self.inputs if t.name in arrays)
        begin = self.states.beginning(arrays)
        self.states.set(self.raw_inputs(begin, raw, nan))
        rest = {name: array for name, array in arrays.items() if name not in begin}
        runs = [self.run(sample, raw, nan) for sample in samples_of(self.graph, rest)]
        shown = shown_outputs(self.graph)
        found = [runs[0][t.name] if single else _joined(t, [run[t.name] for run in runs], raw) for t in shown]
        return found[0] if len(found) == 1 else tuple(found)

    def run(self, sample: Mapping[str, Array], raw: bool = False, nan: str = "refuse") -> dict[str, Array]:
        """The outputs of one run by the names of their tensors, for inputs by theirs; states that are left out are those of the
        run before."""
        job = self._job if self._session is None else self._there
        made = job.run(self.states.completed(self.raw_inputs(sample, raw, nan)))
        self.states.keep(made)
        return {t.name: made[t.name] if raw else to_real(t, made[t.name]) for t in self.outputs}

    @cached_property
    def states(self) -> States:
        """What is kept from run to run, as elements of inputs: `.kept` by name."""
        return States(self.program)

    def reset(self) -> None:
        """Begins anew: states are what they are before the first run."""
        self.states.reset()

    def tensors(self, *inputs: object, raw: bool = False, **by_name: object) -> dict[str, Array]:
        """Every tensor that a launch makes, by name, for one sample. Layers that share a kernel have none between them."""
        sample = the_sample(self.graph, by_name if by_name else inputs)
        made = self.all_tensors(self.raw_inputs(sample, raw))
        known = self.graph.tensors()
        return {n: to_real(known[n], a) if n in known and not raw else a for n, a in made.items()}

    def all_tensors(self, raw_inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The elements of every tensor that a launch makes, by name, for those of the inputs."""
        from compass_runtime.tensors import all_tensors

        return all_tensors(self._job, self.states.completed(raw_inputs))

    def profile(self, *inputs: object, raw: bool = False, **by_name: object) -> Profile:
        """What a run costs, estimated: `.cycles`, `.layers`, `.lines`. Without arrays the inputs are zeros."""
        given = by_name or inputs or [np.zeros(t.shape, np.float32) for t in self.inputs]
        sample = the_sample(self.graph, given)
        with progress.shown():
            job = counting(self.program).program.create_job()
        job.run(self.states.completed(self.raw_inputs(sample, raw)), record=True)
        return profile_of(self.program, job.result)

    def raw_inputs(self, sample: Mapping[str, Array], raw: bool = False, nan: str = "refuse") -> Sample:
        """The elements of the inputs for real numbers; `raw`: they are such already; `nan` as in calls."""
        given = [t for t in self.inputs if t.name in sample]
        if raw:
            return {t.name: sample[t.name] for t in given}
        return {t.name: elements_of(t, sample[t.name], short_name(self.graph, t), nan) for t in given}

    def export(self, path: Path | str) -> Path:
        """Writes the model: a file is the aipu.bin, a folder gets the graphs and the record of the build, too. A path is
        a folder where there is one, where it has no suffix, and where that is .compass. Gives the path."""
        path = Path(path)
        if path.suffix not in ("", STAGE_FOLDER_SUFFIX) and not path.is_dir():
            return files.write(path, self.path.read_bytes())
        if path.is_file():
            raise UsageError(f"'{path}' is a file, not a folder", code="usage", help="name a folder, or FILE.bin")
        for file in [
            self.path,
            *sorted(f for f in self.folder.iterdir() if f.is_file() and not f.name.startswith(".")),
        ]:
            files.write(path / file.name, file.read_bytes())
        return path


def _joined(tensor: Tensor, parts: Sequence[Array], raw: bool) -> Array:
    """An output of any number of samples along a first axis, in which each has one entry."""
    if parts:
        return joined(tensor.shape, parts)
    one = np.zeros(tensor.shape, numpy_dtype(tensor.dtype))
    return joined(tensor.shape, [one if raw else to_real(tensor, one)])[:0]


def compile(
    model: object,
    target: str = "",
    *,
    calibrate: object = None,
    quantize: Settings | str | None = None,
    min_cosine: float | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    folder: Path | str | None = None,
    fuse: bool = True,
    aiff: bool = False,
    batch: int = 1,
    states: Mapping[str, str] | str | None = None,
    example_inputs: Sequence[object] | None = None,
) -> Model:
    """Builds a model: `compassc.compile("model.onnx", target="X3P_1304")`.

    `model` is a file that `compassc import` reads, a graph's text, an `onnx.ModelProto`, a `torch.export.ExportedProgram`, a
    `compassc.graph.Graph`, or with `example_inputs`, the arguments of a call, a `torch.nn.Module`.
    `calibrate`: samples with which it is quantised: a path, arrays, or a sequence (`compassc.quantizer.data.load`);
    `quantize`: how, "int8" (the default, given samples), "auto", "int16", "w8a16", "fp16", "bf16", or
    `compassc.quantizer.Settings`;
    `min_cosine`: layers get more bits until the outputs are as near to the float graph's. `shapes`: of inputs by name, where the model leaves them open. `folder`: where aipu.bin and the files of the stages are
    left, by default a temporary one that lasts as long as the model. `fuse`: element-wise layers join the kernel of the
    layer before them. `aiff`: 1x1 convolutions are built for the AIFF where results are known to be the same. `batch`:
    samples that a run takes. `states`: outputs that are inputs of the next run, inputs by outputs, or "auto": those of recurrent
    layers. CompassError naming everything that is not supported.
    """
    if not isinstance(target, str):
        raise UsageError(
            f"the target is a {type(target).__name__}, expected the name of a configuration", code="usage",
            help="compassc.compile(module, example_inputs=(x,), target='X2_1204')",
        )  # fmt: skip
    keep = tempfile.TemporaryDirectory(prefix="compassc-") if folder is None else None
    place = Path(keep.name if keep else str(folder))
    request = ModelRequest(
        target=target, shapes=shapes or {}, folder=place, output=place / "aipu.bin", fuse=fuse, aiff=aiff, batch=batch,
        states=states or {},
    )  # fmt: skip
    if calibrate is not None or quantize is not None or min_cosine is not None:
        request.quantize = QuantizeRequest(
            calibrate, quantize or "int8", min_cosine, cycles=lambda graph: estimated_cycles(graph, target)
        )
    if example_inputs is not None:
        from compassc.importers.torch import exported

        request.model = exported(model, example_inputs)
    elif isinstance(model, Graph):
        request.graph = model
    elif isinstance(model, (str, Path)):
        request.source = Path(model)
    else:
        request.model = model
    with progress.shown():
        return Model.of(run_model_build(request), keep)


def estimated_cycles(graph: Graph, target: str = "") -> float:
    """What a run of a graph takes, estimated on the simulator."""
    return compile(graph, target).profile().cycles

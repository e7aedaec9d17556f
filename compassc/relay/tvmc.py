"""Models compiled to packages and run, as the program `tvmc` does it: `load`, `compile`, `run`.

A package is a tar file of the kernels (`mod.so`, a module file), the graph (`mod.json`) and its parameters (`mod.params`).
"""

from __future__ import annotations

import argparse
import io
import logging
import re
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray as Array

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compass_core.reading import arrays
from compass_runtime.debug_executor import GraphModuleDebug
from compass_runtime.devices import Device, cpu, cuda
from compass_runtime.graph_executor import GraphExecutor, GraphModule
from compass_runtime.module import HostModule, pack, unpack
from compass_runtime.ndarray import NDArray
from compass_runtime.param_dict import load_param_dict, save_param_dict
from compass_runtime.profile.calls import Report
from compass_runtime.rpc.options import Wanted
from compass_runtime.rpc.session import Session
from compass_runtime.timing import BenchmarkResult, Plan, measure
from compassc.pass_manager.context import PassContext, Sequential
from compassc.relay import transform
from compassc.relay.backend.build import GraphExecutorFactoryModule, build, lowered
from compassc.relay.backend.placement import HOST, Placement
from compassc.relay.module import IRModule
from compassc.relay.programs import read_program
from compassc.relay.types import Open
from compassc.targets import Target

LIBRARY, GRAPH, PARAMS = "mod.so", "mod.json", "mod.params"
PACKAGE, RECORDS = "module.tar", "tuning_records.json"
_log = logging.getLogger(__name__)
LAYOUT_OPS = ("nn.conv2d", "nn.conv2d_transpose", "qnn.conv2d")
"""The operators whose layouts are changed where none are named."""
FORMATS: dict[str, tuple[str, ...]] = {"onnx": (".onnx",), "pytorch": (".pt2",), "relay": (".relay", ".rly", ".txt")}
"""The formats of models, with the ends of their files' names."""
DEVICES: dict[str, Callable[[], Device]] = {"cpu": cpu, "cuda": cuda}
FILLS: dict[str, Callable[[tuple[int, ...], str], Array[np.generic]]] = {
    "zeros": lambda shape, dtype: np.zeros(shape, dtype),
    "ones": lambda shape, dtype: np.ones(shape, dtype),
    "random": lambda shape, dtype: _random(shape, dtype),
}
Shapes = Mapping[str, Sequence[int | Open]]


class TVMCException(CompassError):
    """A model, a package or an option that cannot be used."""

    exit_code = 4

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, code="usage", help=help)


class TVMCImportError(TVMCException):
    """A Python package that is missing."""

    exit_code = 5


def _random(shape: tuple[int, ...], dtype: str) -> Array[np.generic]:
    rng = np.random.default_rng()
    if dtype in ("int8", "uint8"):
        return rng.integers(0, 128, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def generate_tensor_data(shape: Sequence[int], dtype: str, fill_mode: str) -> Array[np.generic]:
    """An array: `zeros`, `ones`, or `random` numbers from -1 to 1, of bytes from 0 to 127."""
    if fill_mode not in FILLS:
        raise TVMCException(f"unknown fill-mode: {fill_mode}", help_for(fill_mode, list(FILLS), "fill modes"))
    return FILLS[fill_mode](tuple(shape), dtype)


def parse_shape_string(inputs_string: str) -> dict[str, list[int | Open]]:
    """Shapes by names of inputs, `a:[1,3,224,224] b:[1,10]`; extents that are not positive are open."""
    found: dict[str, list[int | Open]] = {}
    end = 0
    for m in re.finditer(r"\s*(\S+?):\s*\[([-\d,\s]+)\]\s*,?", inputs_string):
        if m.start() != end:
            break
        extents = [int(n) for n in m[2].split(",") if n.strip()]
        found[m[1]] = [n if n > 0 else Open() for n in extents]
        end = m.end()
    if not found or inputs_string[end:].strip():
        raise argparse.ArgumentTypeError(
            f"the shapes {inputs_string!r} are not understood from {inputs_string[end:]!r} on: write 'a:[1,3,8,8] b:[1,10]'"
        )
    return found


@dataclass
class TVMCModel:
    """A model: its module, its parameters by name, and its file, if it has one."""

    mod: IRModule
    params: dict[str, NDArray] = field(default_factory=dict)
    model_path: str | None = None

    def summary(self, file: TextIO | None = None) -> None:
        """Print the module."""
        print(self.mod, file=file or sys.stdout)

    def default_package_path(self) -> str:
        """Where a package goes that is given no place."""
        return PACKAGE

    def default_tuning_records_path(self) -> str:
        """Where records of searches go that are given no place."""
        return RECORDS

    def export_package(
        self,
        executor_factory: GraphExecutorFactoryModule,
        package_path: str | None = None,
        cross: str = "",
        cross_options: str = "",
        output_format: str = "so",
    ) -> str:
        """Write the package of what was built; gives its path. TVMCException for what packages are not (`check_package`)."""
        check_package(cross, cross_options, output_format)
        library = HostModule()
        for module in executor_factory.get_lib().imported_modules:
            library.import_module(module)
        members = {
            LIBRARY: pack(library),
            GRAPH: executor_factory.get_graph_json().encode(),
            PARAMS: bytes(save_param_dict(executor_factory.get_params())),
        }
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        path = package_path or self.default_package_path()
        files.write(Path(path), out.getvalue())
        return path


def check_package(cross: str, cross_options: str, output_format: str) -> None:
    """TVMCException for a compiler of other machines and its options, and for formats other than `so`."""
    if output_format == "mlf":
        raise TVMCException(
            "no model libraries (mlf) are written: they hold C for microcontrollers, with its runtime, which is not made here",
            "leave the format out: packages are run by compassc tvmc run; for C of a host: relay.build(..., target='c')",
        )
    if output_format != "so":
        raise TVMCException(
            f"there is no package of the format {output_format}", help_for(output_format, ["so"], "formats")
        )
    if cross or cross_options:
        raise TVMCException(
            "no compiler is called for packages: their kernels are made by the target, and kept as they are",
            "leave --cross-compiler and its options out; export_library(path, cc=...) links libraries of hosts with another compiler",
        )


class TVMCPackage:
    """A package: `graph` (JSON), `params` (bytes), and the kernels (`library`)."""

    type = "classic"
    executor_type = "graph"
    lib_name = LIBRARY

    def __init__(self, package_path: str | Path, project_dir: None = None) -> None:
        path = Path(package_path)
        if not path.exists():
            raise TVMCException(f"Input file '{path}' doesn't exist, is a broken symbolic link, or a directory.")
        if path.is_dir():
            raise TVMCException(f"'{path}' is a directory, not a package")
        members = _members(files.read(path), str(path))
        self.package_path = str(path)
        self.graph = members[GRAPH].decode(errors="replace")
        self.params = bytearray(members[PARAMS])
        self.library = unpack(members[LIBRARY], f"{path}: {LIBRARY}")

    def executor(self, device: Device) -> GraphModule:
        """What runs it."""
        return GraphModule(self._graph(device))

    def remote_executor(self, session: Session, device: str) -> GraphModule:
        """What runs it on a server: its kernels are loaded there. RPCError where the server does not load them."""
        session.upload(pack(self.library), LIBRARY)
        library, params = session.load_module(LIBRARY), load_param_dict(self.params)
        return GraphModule(GraphExecutor(self.graph, library, [session.device(device)], params))

    def debugger(self, device: Device) -> GraphModuleDebug:
        """What runs it kernel by kernel."""
        return GraphModuleDebug(self._graph(device), device, self.graph, "prof")

    def _graph(self, device: Device) -> GraphExecutor:
        return GraphExecutor(self.graph, self.library, [device], load_param_dict(self.params))


def _members(data: bytes, where: str) -> dict[str, bytes]:
    """The files of a package. TVMCException where one is missing."""
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for info in archive:
                if info.name in (LIBRARY, GRAPH, PARAMS) and info.isreg() and info.size <= len(data):
                    content = archive.extractfile(info)
                    found[info.name] = content.read() if content else b""
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise TVMCException(f"'{where}' is no archive that can be read: {error}") from None
    missing = [name for name in (LIBRARY, GRAPH, PARAMS) if name not in found]
    if missing:
        raise TVMCException(
            f"the package '{where}' has no {', '.join(missing)}", "compassc tvmc compile writes packages"
        )
    return found


@dataclass(frozen=True)
class TVMCResult:
    """Outputs by name (`output_0`, ...), the times of runs and what each kernel takes, where they were measured."""

    outputs: dict[str, Array[np.generic]]
    times: BenchmarkResult | None = None
    report: Report | None = None

    def format_times(self) -> str:
        """A table of the times in milliseconds."""
        return "" if self.times is None else str(self.times)

    def get_output(self, name: str) -> Array[np.generic]:
        """An output."""
        return self.outputs[name]

    def save(self, output_path: str | Path) -> None:
        """Write the outputs to an .npz file."""
        with io.BytesIO() as content:
            arrays.write_archive(content, self.outputs)
            files.write(Path(output_path), content.getvalue())


def load(path: str | Path, model_format: str | None = None, shape_dict: Shapes | None = None) -> TVMCModel:
    """The model of a file. TVMCException where there is none, or of a format that is not read."""
    file = Path(path)
    if not file.is_file():
        raise TVMCException(f"Input file '{file}' doesn't exist, is a broken symbolic link, or a directory.")
    if model_format is not None and file.suffix.lower() not in FORMATS.get(model_format, ()):
        known = "; ".join(f"{name}: {', '.join(ends)}" for name, ends in FORMATS.items())
        raise TVMCException(f"'{file}' is not called as files of the format {model_format} are", f"formats are {known}")
    module, params = read_program(file, shape_dict)
    return TVMCModel(module, params, str(file))


def target_of(text: str) -> Target:
    """The target of a text: one, or an NPU and its host, with `, ` between them."""
    first, *rest = [part.strip() for part in text.split(", ") if part.strip()]
    if len(rest) > 1:
        raise TVMCException(f"{len(rest) + 1} targets are given", "give an NPU and its host: 'X2_1204, llvm'")
    return Target(first, host=Target.of(rest[0])) if rest else Target.of(first)


def compile(
    tvmc_model: TVMCModel,
    target: str,
    opt_level: int = 3,
    package_path: str | None = None,
    dump_code: Sequence[str] = (),
    dump_offloads: str = "",
    disabled_pass: Sequence[str] = (),
    pass_context_configs: Mapping[str, object] | None = None,
    mod_name: str = "default",
    desired_layout: Sequence[str] = (),
    desired_layout_ops: Sequence[str] = LAYOUT_OPS,
    mixed_precision: bool = False,
    cross: str = "",
    cross_options: str = "",
    output_format: str = "so",
) -> TVMCPackage:
    """Build a model for a target and write its package.

    `dump_code`: `relay` writes the text of the optimised module beside it. `dump_offloads`: a file, or `-` for stdout, that tells
    which operator runs where. `desired_layout`: that of data, and of weights behind a colon, of `desired_layout_ops`.
    TVMCException for targets and texts that there are not, and for what packages are not (`check_package`).
    """
    check_package(cross, cross_options, output_format)
    chosen, path = target_of(target), package_path or tvmc_model.default_package_path()
    if unknown := [kind for kind in dump_code if kind != "relay"]:
        raise TVMCException(f"there is no text of the kind {unknown[0]}", "kinds are relay")
    with PassContext(opt_level=opt_level, disabled_pass=list(disabled_pass), config=dict(pass_context_configs or {})):
        module = prepared(tvmc_model.mod, desired_layout, desired_layout_ops, mixed_precision)
        built = build(module, chosen, params=tvmc_model.params, mod_name=mod_name)
        if dump_code:
            text = lowered(module, chosen, mod_name).module.astext()
            files.write(Path(f"{path}.relay"), text)
    if dump_offloads:
        text = offloads(built.placement)
        print(text) if dump_offloads == "-" else files.write(Path(dump_offloads), f"{text}\n")
    return TVMCPackage(tvmc_model.export_package(built, path))


def prepared(module: IRModule, layouts: Sequence[str], ops: Sequence[str], mixed: bool) -> IRModule:
    """The module in other layouts and types."""
    passes = [transform.InferType()]
    if layouts:
        wanted = {op: [*(layouts[0].split(":")), "default"][:2] for op in ops}
        passes += [transform.RemoveUnusedFunctions(), transform.ConvertLayout(wanted), transform.FoldConstant()]
    if mixed:
        passes += [transform.ToMixedPrecision("float16")]
    made: IRModule = Sequential(passes)(module)
    return made


def offloads(placement: Placement) -> str:
    """How many operators run where, and a line for each."""
    rows = [("generic" if r.place == HOST else r.region, r.operator) for r in placement.rows]
    counts = {"compass": sum(place != "generic" for place, _ in rows), "generic": sum(p == "generic" for p, _ in rows)}
    head = ["Total number of operators and distribution by targets", f"Total: {len(rows)}"]
    return "\n".join([*head, *(f"{name}: {n}" for name, n in counts.items()), "", *(f"{p} <- {op}" for p, op in rows)])


def run(
    tvmc_package: TVMCPackage,
    device: str = "cpu",
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, Array[np.generic]] | None = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    end_to_end: bool = False,
) -> TVMCResult:
    """Run a package. Inputs that are not given are filled (`generate_tensor_data`); with `benchmark` runs are measured, with
    `end_to_end` inputs are copied in each; with `profile` each kernel is measured by itself (`report`).

    `hostname`, `port`: a server that runs it, `compassc rpc-server` (NPUs' kernels, a host's by the right `llvm`); with `rpc_key`
    a tracker, which gives one of that key. Nothing is measured there. RPCError where the server does not run the package.
    """
    if device not in DEVICES:
        raise TVMCException(f"there is no device {device}", help_for(device, list(DEVICES), "devices"))
    asked = _server(hostname, port, rpc_key)
    if asked and (benchmark or profile):
        raise TVMCException(
            "no times are measured on servers: they would be those of the way there and back of each kernel",
            "measure where the package is to run, or a kernel there with session.load_module(...).time_evaluator(NAME, device)",
        )
    with asked.session(_log.info) if asked else nullcontext() as session:
        if session is None:
            graph = tvmc_package.executor(DEVICES[device]())
        else:
            graph = tvmc_package.remote_executor(session, device)
        given = _filled(graph, dict(inputs or {}), fill_mode)
        graph.run(**given)
        times = measure(lambda: graph.run(**(given if end_to_end else {})), Plan(number, repeat)) if benchmark else None
        outputs = {f"output_{i}": np.array(graph.get_output(i).numpy()) for i in range(graph.get_num_outputs())}
    report = tvmc_package.debugger(DEVICES[device]()).profile(None, **given) if profile else None
    return TVMCResult(outputs, times, report)


def _server(hostname: str | None, port: int | str, rpc_key: str | None) -> Wanted:
    """The server at an address, or of a key by the tracker there; none without an address. TVMCException for a key alone."""
    if hostname is None:
        if rpc_key:
            raise TVMCException("a key of servers is given, and no tracker", "name it: --rpc-tracker HOST:PORT")
        return Wanted()
    address = f"{hostname}:{port}"
    return Wanted(tracker=address, key=rpc_key) if rpc_key else Wanted(remote=address)


def _filled(graph: GraphModule, given: dict[str, Array[np.generic]], fill_mode: str) -> dict[str, Array[np.generic]]:
    """Arrays for all inputs. TVMCException for those that the graph does not have."""
    shapes, dtypes = graph.get_input_info()
    if unknown := [name for name in given if name not in shapes]:
        raise TVMCException(f"the package has no input '{unknown[0]}'", help_for(unknown[0], list(shapes), "inputs"))
    for name, shape in shapes.items():
        if name not in given:
            given[name] = generate_tensor_data(shape, dtypes[name], fill_mode)
    return given


def get_top_results(result: TVMCResult, max_results: int) -> Array[np.generic]:
    """The places and values of the largest numbers of the first row of `output_0`, largest first, as two rows."""
    values = np.asarray(result.outputs["output_0"][0]).reshape(-1)
    places = np.argsort(values)[::-1][:max_results]
    return np.array([places, values[places]])

"""The module of one NPU program: it carries its aipu.bin, and offers the functions that the vendor's runtime offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from compass_core import files
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading import names
from compass_runtime.arguments import Arguments, parameters_of
from compass_runtime.errors import RuntimeStateError, RuntimeTypeError, RuntimeValueError
from compass_runtime.job import Job
from compass_runtime.module import ENTRY, LOADER, RUNNABLE, SERIALIZABLE, Module, sealed, unsealed
from compass_runtime.ndarray import NDArray, array
from compass_runtime.packed import get_global_func, register_func
from compass_runtime.program import Program, TensorInfo

DUMP_HOOK = "compass.runtime.dump_tensors"


@dataclass(frozen=True)
class ParamInfo:
    """Data type and byte size of an input or output."""

    dtype: str
    size: int

    packed_object = True


class CompassModule(Module):
    """One aipu.bin.

    The kernel's own name is a function of one argument per kernel parameter; `compass_run`, and `func_name` where one
    is given, take the inputs and then the outputs. Nothing is loaded before the first use. `source`: the C text.
    `description`: name and parameters of the kernel, where their types and shapes are known; calls are held against it.
    """

    type_key = "compass.runtime.CompassModule"
    flags = SERIALIZABLE | RUNNABLE

    def __init__(
        self,
        content: bytes,
        func_name: str = "",
        with_profile: bool = False,
        target: str = "",
        *,
        source: str = "",
        description: dict[str, object] | None = None,
        program: Program | None = None,
    ) -> None:
        super().__init__()
        self.content = content
        if program is not None:
            self.program = program
        if not names.is_label(func_name) or "/" in func_name:
            raise CompassError(f"the function name {func_name!r:.80} is no name", code="bad-name")
        self.func_name = func_name
        self.with_profile = with_profile
        self._target = target
        self.source, self.description = source, description
        self._arguments: Arguments | None = None
        if description is not None:
            self._arguments = Arguments(str(description["name"]), parameters_of(description))
        self._functions: dict[str, Callable[..., object]] = {
            "compass_run": self.run,
            "compass_dynamic_run": self.dynamic_run,
            "compass_set_inputs": self.set_inputs,
            "compass_set_outputs": self.set_outputs,
            "compass_execute": self.execute,
            "compass_get_outputs": self.get_outputs,
            "compass_get_param_info": self.get_param_info,
        }

    @cached_property
    def program(self) -> Program:
        """The program, read on first use. CompassError when the content is none."""
        return Program.load(self.content)

    @property
    def target(self) -> str:
        return self._target or self.program.target

    @cached_property
    def job(self) -> Job:
        """The job of the functions `compass_...`; it needs all sizes and scalars known since the build."""
        return self.program.create_job()

    @property
    def format(self) -> str:
        return "c" if self.source else ""

    def get_source(self, format: str = "") -> str:
        """The C text of the kernel; empty for a program whose text is not known."""
        return self.source if format in ("", self.format) else ""

    def find(self, name: str) -> Callable[..., object] | None:
        if name in self._functions:
            return self._functions[name]
        if self.func_name and name in (self.func_name, ENTRY):
            return self.run
        kernel = self.program.kernel
        if kernel is not None and name in (kernel.kernel, ENTRY):
            return self.call
        return self.run if name == ENTRY else None

    def call(self, *args: object) -> None:
        """Runs with one argument per kernel parameter; outputs are changed in place."""
        if self._arguments is None:
            self.program.call([np.asarray(arg) if isinstance(arg, NDArray) else arg for arg in args])
            return
        arrays, back = self._arguments.laid_out(args)
        numbers = [p.shape is None for p in self._arguments.parameters]
        self.program.call([a.item() if number else a for number, a in zip(numbers, arrays, strict=True)])
        for given, used in back:
            given[...] = used

    def run(self, *args: object) -> None:
        """Inputs, then outputs: loads the inputs, runs, fills the outputs."""
        inputs, outputs = self._split(args)
        _dump(self.func_name, True, inputs)
        self._run(inputs, outputs)
        _dump(self.func_name, False, outputs)

    def _run(self, inputs: Sequence[object], outputs: Sequence[object]) -> None:
        with self.job.lock:
            self.job.revive()
            self._put(self.job, self.program.inputs, inputs)
            self._put(self.job, self.program.outputs, outputs)
            try:
                self.job.execute()
                self._get(self.job, outputs)
            finally:
                self.job.residency.release(forget=True)

    def dynamic_run(self, *inputs: object) -> list[NDArray]:
        """Runs with inputs of any size the kernel allows; gives new outputs."""
        infos = self.program.inputs
        _count(inputs, len(infos), "compass_dynamic_run")
        arrays = {info.name: _checked(info, i, value, None) for i, (info, value) in enumerate(zip(infos, inputs), 1)}
        job = self.program.create_job(arrays={info.name: info.elements_of(arrays[info.name]) for info in infos})
        return [array(value) for value in job.run(arrays).values()]

    def set_inputs(self, *inputs: object) -> None:
        """Loads the inputs."""
        _count(inputs, len(self.program.inputs), "compass_set_inputs")
        with self.job.lock:
            self.job.hold()
            self._put(self.job, self.program.inputs, inputs)

    def set_outputs(self, *outputs: object) -> None:
        """Gives the outputs their content before the run."""
        _count(outputs, len(self.program.outputs), "compass_set_outputs")
        with self.job.lock:
            self.job.hold()
            self._put(self.job, self.program.outputs, outputs)

    def execute(self) -> None:
        """Runs with the inputs that are loaded."""
        with self.job.lock:
            self.job.hold()
            self.job.execute()

    def get_outputs(self, *outputs: object) -> None:
        """Fills the arrays with the outputs."""
        _count(outputs, len(self.program.outputs), "compass_get_outputs")
        with self.job.lock:
            self._get(self.job, outputs)

    def get_param_info(self, index: int, is_input: bool) -> ParamInfo:
        """Data type and bytes of an input or output."""
        infos = self.program.inputs if is_input else self.program.outputs
        if not 0 <= index < len(infos):
            raise RuntimeValueError(
                f"there is no {'input' if is_input else 'output'} {index}: the program has {len(infos)}",
                code="invalid-tensor-id",
            )
        return ParamInfo(infos[index].dtype.name, self.job.slots[infos[index].name].nbytes)

    def _split(self, args: Sequence[object]) -> tuple[Sequence[object], Sequence[object]]:
        inputs, outputs = len(self.program.inputs), len(self.program.outputs)
        _count(args, inputs + outputs, f"the program with {inputs} inputs and {outputs} outputs")
        return args[:inputs], args[inputs:]

    def _put(self, job: Job, infos: Sequence[TensorInfo], values: Sequence[object]) -> None:
        for i, (info, value) in enumerate(zip(infos, values, strict=True), 1):
            job.slots[info.name].load(_checked(info, i, value, job.slots[info.name].nbytes))

    def _get(self, job: Job, values: Sequence[object]) -> None:
        for i, (slot, value) in enumerate(zip(job.outputs, values, strict=True), 1):
            slot.store(_checked(slot.info, i, value, slot.nbytes))

    def save_to_bytes(self) -> bytes:
        fields: dict[str, object] = {
            "func_name": self.func_name,
            "with_profile": self.with_profile,
            "target": self._target,
        }
        if self.source:
            fields["source"] = self.source
        if self.description is not None:
            fields["description"] = self.description
        return sealed(fields, self.content)


def _count(given: Sequence[object], wanted: int, what: str) -> None:
    if len(given) != wanted:
        raise RuntimeStateError(f"{what} takes {wanted} tensors, not {len(given)}", code="argument-count")


def _checked(info: TensorInfo, position: int, value: object, nbytes: int | None) -> Array:
    """The array of a tensor argument. A RuntimeTypeError or CompassError when it is none or does not fit."""
    if not isinstance(value, (np.ndarray, NDArray)):
        raise RuntimeTypeError(
            f"tensor {position} ('{info.name}') must be an array, not {type(value).__name__}", code="argument-type"
        )
    given = np.asarray(value)
    if not given.flags.c_contiguous:
        raise RuntimeStateError(
            f"tensor {position} ('{info.name}') is not contiguous",
            code="not-contiguous",
            help="use numpy.ascontiguousarray",
        )
    return info.checked(given, given.nbytes if nbytes is None else nbytes)


def _dump(func_name: str, is_input: bool, tensors: Sequence[object]) -> None:
    """Calls the hook that a user may have registered to see all tensors."""
    hook = get_global_func(DUMP_HOOK, allow_missing=True)
    if hook is not None:
        hook(func_name, is_input, list(tensors))


def load_content(data: bytes) -> CompassModule:
    """The module that `save_to_bytes` wrote. RuntimeValueError when the bytes are damaged."""
    try:
        fields, content = unsealed(data, CompassModule.type_key)
        name, target, profile = fields["func_name"], fields["target"], fields["with_profile"]
        if not (isinstance(name, str) and isinstance(target, str) and isinstance(profile, bool)):
            raise TypeError("a field is of another type")
        source, description = fields.get("source", ""), fields.get("description")
        if not isinstance(source, str) or not isinstance(description, (dict, type(None))):
            raise TypeError("a field is of another type")
        return CompassModule(content, name, profile, target, source=source, description=description)
    except (CompassError, ValueError, KeyError, TypeError):
        raise RuntimeValueError(f"the content of a {CompassModule.type_key} is damaged", code="module-file") from None


def make_module(path: str, func_name: str = "", with_profile: bool = False, target: str = "", dtcm: str = "") -> Module:
    """The module of an aipu.bin; `dtcm` is for generations that are not supported, and ignored."""
    return CompassModule(files.read(Path(path)), func_name, with_profile, target)


def init(module: Module) -> None:
    """Reads the programs of all NPU modules in a tree, so that damage shows before the first run."""
    for below in module.tree():
        if isinstance(below, CompassModule):
            below.program.graph()


register_func(LOADER + CompassModule.type_key, load_content)
register_func("compass.runtime.CompassModule", make_module)
register_func("compass.runtime.init", init)

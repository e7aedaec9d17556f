"""Workloads by name, their compute graphs, and tasks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from compass_core.dataclass import dataclass
from compass_core.hostcc.host import num_threads
from compassc.targets import Target
from compassc.te.schedule import Schedule
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, post_order

from ..autotvm.flops import compute_flop
from ..autotvm.task import deserialize_args, serialize_args
from ..ir_functions import load_json, save_json
from .state import State, Steps, python_code

if TYPE_CHECKING:
    from .policy import EmptyPolicy, SketchPolicy, TuningOptions

Workload = tuple[str, tuple[object, ...] | None]
"""The name or hash of a workload, and its arguments; None where they are none."""
Maker = Callable[..., Sequence[Tensor]]
"""What gives the tensors of a workload for arguments."""
WORKLOAD_FUNC_REGISTRY: dict[str, Maker | Sequence[Tensor]] = {}
TASK_INPUT_CHECK_FUNC_REGISTRY: dict[str, Callable[[Sequence[Tensor]], Mapping[Tensor, str]]] = {}
"""Functions by names of workloads: under which names tensors of one are inputs that are given."""


def get_func_name(func: Callable[..., object]) -> str:
    """The name of a function."""
    return getattr(func, "func_name", func.__qualname__.split(".")[-1])


def register_workload(func_name: Maker | str, f: Maker | Sequence[Tensor] | None = None, override: bool = False) -> Any:
    """Registers a function that gives tensors, inputs and outputs. RuntimeError where its name is taken."""
    return _register(WORKLOAD_FUNC_REGISTRY, func_name, f, override)


def register_task_input_check_func(func_name: object, f: object = None, override: bool = False) -> object:
    """Registers a function of a workload's name, which gives the names of those of its tensors that are inputs of tasks
    (`SearchTask(task_inputs=...)`), by tensor. Without one they are those of the tensors. RuntimeError where the name is taken."""
    return _register(TASK_INPUT_CHECK_FUNC_REGISTRY, func_name, f, override)


def _register(registry: dict[str, Any], named: object, f: object, override: bool) -> object:
    """Adds a function under a name, or that of the function, to a registry, or gives what does so."""
    name = get_func_name(named) if callable(named) else str(named)

    def register(function: object) -> object:
        if name in registry and not override:
            raise RuntimeError(f"{name} has been registered already")
        registry[name] = function
        return function

    given = named if callable(named) else f
    return register if given is None else register(given)


def input_names(workload_key: str, tensors: Sequence[Tensor]) -> Mapping[Tensor, str]:
    """The names by which tensors of a workload may be given."""
    check = TASK_INPUT_CHECK_FUNC_REGISTRY.get(decode_workload_key(workload_key)[0])
    return {t: t.name for t in tensors} if check is None else check(tensors)


def serialize_workload_registry_entry(workload_key: str) -> tuple[str, object]:
    """The name of a workload, and what is registered under it: a function as it is, tensors as JSON text. ValueError where it is
    not registered."""
    name = workload_key if workload_key in WORKLOAD_FUNC_REGISTRY else decode_workload_key(workload_key)[0]
    found = _workload(name)
    return name, found if callable(found) else save_json(found)


def deserialize_workload_registry_entry(data: tuple[str, object]) -> None:
    """Registers what `serialize_workload_registry_entry` gave, where its name is free. UsageError for text that holds no tensors."""
    name, value = data
    if name not in WORKLOAD_FUNC_REGISTRY:
        made = load_json(value) if isinstance(value, str) else value
        if not callable(made) and not isinstance(made, (list, tuple)):
            raise ValueError(f"a {type(made).__name__} is no workload: give a function, or the JSON text of tensors")
        WORKLOAD_FUNC_REGISTRY[name] = made


def _workload(name: str) -> Maker | Sequence[Tensor]:
    """What is registered under a name. ValueError where nothing is."""
    if name not in WORKLOAD_FUNC_REGISTRY:
        raise ValueError(f"{name} is not registered. Please register it with @auto_scheduler.register_workload")
    return WORKLOAD_FUNC_REGISTRY[name]


def register_workload_tensors(workload_key: str, tensors: Sequence[Tensor], override: bool = True) -> str:
    """Registers tensors under a key."""
    register_workload(workload_key, list(tensors), override)
    return workload_key


def make_workload_key(func: Callable[..., object] | str, args: Sequence[object]) -> str:
    """The key of a registered function and arguments. ValueError where it is not registered."""
    name = func if isinstance(func, str) else get_func_name(func)
    _workload(name)
    return json.dumps([name, *serialize_args(args)])


def decode_workload_key(workload_key: str) -> Workload:
    """The name or hash in a key, and its arguments; None where they are none."""

    def plain(x: object) -> object:
        return tuple(map(plain, x)) if isinstance(x, list) else x

    try:
        name, *args = json.loads(workload_key)
    except (ValueError, TypeError):
        return workload_key, None
    return name, tuple(map(plain, args))


def workload_key_to_tensors(workload_key: str) -> list[Tensor]:
    """The tensors of a key. ValueError where it is not registered."""
    name, args = decode_workload_key(workload_key)
    found = _workload(workload_key if workload_key in WORKLOAD_FUNC_REGISTRY else name)
    return list(found(*deserialize_args(args or ()))) if callable(found) else list(found)


class ComputeDAG:
    """The graph of tensors: `tensors` inputs and outputs, `ops` inputs first, `flop_ct` the operations that it does."""

    def __init__(self, compute_or_sche: str | Schedule | Iterable[Tensor]) -> None:
        if isinstance(compute_or_sche, str):
            self.tensors = workload_key_to_tensors(compute_or_sche)
        elif isinstance(compute_or_sche, Schedule):
            outputs = [t for op in compute_or_sche.outputs for t in op.outputs]
            inputs = [op.output(0) for op in post_order([t.op for t in outputs]) if isinstance(op, PlaceholderOp)]
            self.tensors = [*inputs, *outputs]
        else:
            self.tensors = list(compute_or_sche)
        read = {t for op in post_order([t.op for t in self.tensors]) for t in op.input_tensors}
        self.outputs = [t for t in self.tensors if t not in read and not isinstance(t.op, PlaceholderOp)]
        if not self.outputs:
            raise ValueError("the tensors of a compute graph include outputs")
        self.ops: list[Operation] = list(post_order([t.op for t in self.outputs]))
        try:
            self.flop_ct = compute_flop(State(self).schedule)
        except RuntimeError:
            self.flop_ct = 0.0

    @property
    def init_state(self) -> State:
        """The state without steps."""
        return self.get_init_state()

    def get_init_state(self) -> State:
        """The state without steps."""
        return State(self)

    def apply_steps_from_state(self, state: State | Steps, layout_rewrite: int = 0) -> tuple[Schedule, list[Tensor]]:
        """The schedule after the steps of a state, and the tensors. Layouts are left as they are."""
        made = State(self, state.transform_steps)
        return made.schedule, self.tensors

    def infer_bound_from_state(self, state: State) -> State:
        """The state with extents where they are known."""
        return state.copy()

    def print_python_code_from_state(self, state: State) -> str:
        """The steps as text."""
        return python_code(state)

    def workload_key(self) -> str:
        """A hash of the graph, its types and what it sums over, and the shapes of the tensors."""
        shapes = [[d for d in serialize_args(t.shape)] for t in self.tensors]
        kinds = [str(op.output(0).dtype) for op in self.ops]
        sums = [str([a.dom for a in op.reduce_axis]) for op in self.ops if isinstance(op, ComputeOp)]
        text = "\n".join([str(self), *kinds, *sums])
        return json.dumps([hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), *shapes])

    def __str__(self) -> str:
        lines = []
        for op in self.ops:
            shape = ", ".join(map(str, op.output(0).shape))
            if isinstance(op, ComputeOp):
                axes = ", ".join(a.name for a in op.axis)
                lines += [f"{op.name}({axes}) = {body}" for body in op.body]
            else:
                lines.append(f"{op.name} = {type(op).__name__.removesuffix('Op').upper()} [{shape}]")
        return "\n".join(lines) + "\n"


class LayoutRewriteOption:
    """Whether layouts of weights change: here they never do."""

    NO_REWRITE, INSERT_TRANSFORM_STAGE, REWRITE_FOR_PRE_TRANSFORMED = 0, 1, 2

    @staticmethod
    def get_target_default(target: object, in_relay_integration: bool = False) -> int:
        """What a target has by default."""
        kind = Target.of(target).kind.name
        return (2 if in_relay_integration else 1) if kind == "llvm" else 0


@dataclass
class HardwareParams:
    """What a machine has."""

    num_cores: int | None = None
    vector_unit_bytes: int | None = None
    cache_line_bytes: int | None = None
    max_shared_memory_per_block: int | None = None
    max_local_memory_per_block: int | None = None
    max_threads_per_block: int | None = None
    max_vthread_extent: int | None = None
    warp_size: int | None = None
    target: object = None
    target_host: object = None

    def numbers(self) -> list[int]:
        """The eight numbers, those of this machine where none are given."""
        usual = (num_threads(), 64, 64, 0, 0, 0, 0, 0)
        given = [getattr(self, f.name) for f in fields(self)[:8]]
        return [u if g is None else int(g) for g, u in zip(given, usual)]


class SearchTask:
    """A workload on a target."""

    def __init__(
        self, func: Callable[..., object] | str | None = None, args: Sequence[object] | None = None, compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None, target: object = None, target_host: object = None,
        hardware_params: HardwareParams | None = None, layout_rewrite_option: int | None = None,
        task_inputs: Mapping[str, object] | Sequence[str] | None = None,
        task_inputs_overwrite: bool = False, task_inputs_save_to_file: bool = False, desc: str = "",
    ) -> None:  # fmt: skip
        assert func is not None or workload_key is not None, (
            "Either a workload generation function or a workload key should be provided"
        )
        assert target is not None, "Must specify a target."
        self.workload_key = make_workload_key(func, args or ()) if func is not None else str(workload_key)
        self.compute_dag = compute_dag or ComputeDAG(self.workload_key)
        self.target, self.target_host = Target.of(target), target_host
        self.hardware_params = hardware_params or HardwareParams()
        option = layout_rewrite_option
        self.layout_rewrite_option = LayoutRewriteOption.get_target_default(self.target) if option is None else option
        self.task_input_names: list[str] = list(task_inputs or ())
        self.task_inputs = dict(task_inputs) if isinstance(task_inputs, Mapping) else {}
        self.desc = desc

    def tune(
        self, tuning_options: TuningOptions, search_policy: SketchPolicy | EmptyPolicy | None = None, adaptive_training: bool = False
    ) -> None:  # fmt: skip
        """Searches, by a policy of sketches where none is given."""
        from .policy import SketchPolicy, XGBModel

        policy = search_policy or SketchPolicy(self, XGBModel(), verbose=tuning_options.verbose)
        policy.search(tuning_options)

    def apply_best(
        self, log_file: str, include_compatible: bool = False, layout_rewrite_option: object = None
    ) -> tuple[Schedule, list[Tensor]]:
        """The best schedule of a file of records, and the tensors. RuntimeError where there is none."""
        return self.compute_dag.apply_steps_from_state(self._best(log_file, include_compatible))

    def _best(self, log_file: str, include_compatible: bool = False) -> State | Steps:
        from .record import load_best_record

        inp, _ = load_best_record(log_file, self.workload_key, self.target, include_compatible)
        if inp is None:
            raise RuntimeError(f"Cannot find any valid schedule for {self.workload_key} in file {log_file}")
        return inp.state

    def print_best(self, log_file: str, print_mode: str = "schedule") -> str:
        """The best schedule as text. ValueError for other modes than `schedule`."""
        if print_mode != "schedule":
            raise ValueError(f"Invalid print_mode: {print_mode}")
        return python_code(State(self.compute_dag, self._best(log_file).transform_steps))


def create_task(func: object, args: object, target: object, **options: object) -> NoReturn:
    """ValueError: `SearchTask` makes tasks."""
    raise ValueError('The API "auto_scheduler.create_task" is deprecated. Use "auto_scheduler.SearchTask" instead.')


def auto_schedule(*args: object, **options: object) -> NoReturn:
    """ValueError: `SearchTask.tune` searches."""
    raise ValueError('The API "auto_scheduler.auto_schedule" is deprecated. Use "SearchTask.tune" instead.')

"""Templates by name, tasks of them, and the contexts that say which configuration a template runs with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import overload

from compassc import te
from compassc.ir.exprs import Expr, FloatImm, IntImm, Var
from compassc.relay.tuned import Workload
from compassc.targets import Target
from compassc.te.schedule import Schedule
from compassc.te.tensor import Tensor

from .contexts import ApplyConfig, DispatchContext, get_workload
from .flops import compute_flop
from .space import ConfigSpace

Template = Callable[..., tuple[Schedule, list[Tensor]]]
"""What makes a schedule of arguments, and its tensors."""
Compute = Callable[..., Tensor | Sequence[Tensor]]
"""What makes tensors of a configuration and arguments."""
Scheduled = Callable[..., Schedule]
"""What makes a schedule of a configuration and tensors."""


class InstantiationError(ValueError):
    """A configuration of which a template makes no program."""


class _Template:
    """What is registered under a name: one function, or a computation and its schedule."""

    def __init__(self) -> None:
        self.whole: Template | None = None
        self.compute: Compute | None = None
        self.schedule: Scheduled | None = None

    def __call__(self, *args: object, **options: object) -> tuple[Schedule, list[Tensor]]:
        assert not options, "Do not support kwargs in template function call"
        if self.whole is not None:
            return self.whole(*args)
        if self.compute is None:
            raise RuntimeError("Attempting to invoke a missing task: it has no computation")
        out = self.compute(*args)
        outs = [out] if isinstance(out, Tensor) else list(out)
        schedule = self.schedule(outs) if self.schedule else te.create_schedule([t.op for t in outs])
        inputs = [a for a in _flat(args) if isinstance(a, Tensor)]
        return schedule, [*inputs, *outs]


TASK_TABLE: dict[str, _Template] = {}


def _entry(name: str, part: str, kind: str) -> _Template:
    found = TASK_TABLE.setdefault(name, _Template())
    if getattr(found, part) is not None:
        raise ValueError(f"{kind} is already registered in autoTVM task {name}")
    return found


@overload
def template(task_name: str, func: None = None) -> Callable[[Template], Template]: ...
@overload
def template(task_name: str, func: Template) -> Template: ...
def template(task_name: str, func: Template | None = None) -> object:
    """Registers a function that makes a schedule and its tensors. A call of it runs with the configuration that the current
    context has for it."""

    def register(f: Template) -> Template:
        _entry(task_name, "whole", "Customized func").whole = f

        @functools.wraps(f)
        def called(*args: object, **options: object) -> tuple[Schedule, list[Tensor]]:
            assert not options, "Do not support kwargs in template function call"
            with _chosen(args_to_workload(args, task_name)):
                return f(*args)

        return called

    return register if func is None else register(func)


def _chosen(workload: Workload) -> ApplyConfig:
    """The context of the configuration that the current one has for a workload."""
    current = DispatchContext.current
    return current if isinstance(current, ApplyConfig) else ApplyConfig(_configured(workload))


def _configured(workload: Workload | None) -> ConfigSpace:
    """The configuration that the current context has for a workload."""
    current = DispatchContext.current
    assert current is not None
    found = current.query(Target.current(), workload)
    assert found is not None, "the outermost context has one of its own"
    return found


@overload
def register_topi_compute(task_name: str, func: None = None) -> Callable[[Compute], Compute]: ...
@overload
def register_topi_compute(task_name: str, func: Compute) -> Compute: ...
def register_topi_compute(task_name: str, func: Compute | None = None) -> object:
    """Registers a computation `f(cfg, *args)`; what it gives knows its workload."""

    def register(f: Compute) -> Compute:
        @functools.wraps(f)
        def called(*args: object, **options: object) -> Tensor | Sequence[Tensor]:
            workload = args_to_workload(args, task_name)
            made = f(_configured(workload), *args)
            for tensor in [made] if isinstance(made, Tensor) else made:
                tensor.op.attrs = {**(tensor.op.attrs or {}), "workload": workload}
            return made

        _entry(task_name, "compute", "Compute").compute = called
        return called

    return register if func is None else register(func)


@overload
def register_topi_schedule(task_name: str, func: None = None) -> Callable[[Scheduled], Scheduled]: ...
@overload
def register_topi_schedule(task_name: str, func: Scheduled) -> Scheduled: ...
def register_topi_schedule(task_name: str, func: Scheduled | None = None) -> object:
    """Registers a schedule `f(cfg, outs, ...)` of what a registered computation gives."""

    def register(f: Scheduled) -> Scheduled:
        @functools.wraps(f)
        def called(outs: Tensor | Sequence[Tensor], *args: object, **options: object) -> Schedule:
            workload = get_workload(outs, task_name)
            if workload is None:
                raise RuntimeError(
                    f"Cannot find TOPI workload {task_name}. Is it registered with `register_topi_compute`?"
                )
            return f(_configured(workload), outs, *args, **options)

        _entry(task_name, "schedule", "Schedule").schedule = called
        return called

    return register if func is None else register(func)


def _flat(args: Iterable[object]) -> list[object]:
    return [x for a in args for x in (_flat(a) if isinstance(a, (list, tuple)) else [a])]


def serialize_args(args: Sequence[object]) -> Workload:
    """Arguments as plain values: tensors by shape and type, lists as tuples. RuntimeError for others."""

    def plain(x: object) -> object:
        if isinstance(x, Tensor):
            return "TENSOR", tuple(map(plain, x.shape)), str(x.dtype)
        if isinstance(x, (list, tuple)):
            return tuple(map(plain, x))
        if x is None or isinstance(x, (str, int, float)):
            return x
        if isinstance(x, (IntImm, FloatImm)):
            return x.value
        if isinstance(x, Var):
            return x.name
        if isinstance(x, Expr):
            return str(x)
        raise RuntimeError(
            f"Do not support type '{type(x)}' in argument. Consider to use primitive types or te.Var only"
        )

    return tuple(map(plain, args))


def deserialize_args(args: Sequence[object]) -> list[object]:
    """Arguments of which those that were tensors are placeholders."""
    return [
        te.placeholder(x[1], str(x[2])) if isinstance(x, (list, tuple)) and x and x[0] == "TENSOR" else x for x in args
    ]


def args_to_workload(args: Sequence[object], task_name: str | None = None) -> Workload:
    """The workload of arguments, with the name of the task before them."""
    plain = serialize_args(args)
    return plain if task_name is None else (task_name, *plain)


class Task:
    """A template for some arguments, and the space of its configurations."""

    def __init__(self, name: str, args: Sequence[object]) -> None:
        self.name, self.args, self.kwargs = name, tuple(args), dict[str, object]()
        self.config_space = ConfigSpace()
        self.flop: float | None = None
        self.target: Target | None = None
        self.target_host: object = None

    @property
    def func(self) -> Template:
        """The template. RuntimeError where it is not registered in this process."""
        if self.name not in TASK_TABLE:
            raise RuntimeError(f"Attempting to invoke a missing task {self.name}. Is its template registered?")
        return TASK_TABLE[self.name]

    @property
    def workload(self) -> Workload:
        return args_to_workload(self.args, self.name)

    def instantiate(self, config: ConfigSpace) -> tuple[Schedule, list[Tensor]]:
        """The schedule of a configuration, and its tensors. InstantiationError where it is none."""
        config.flop, config.errors = 0.0, []
        with ApplyConfig(config), Target.of(self.target):
            schedule, tensors = self.func(*deserialize_args(self.args))
        if not self.flop:
            self.flop = config.flop or compute_flop(schedule)
        if not config.valid():
            raise InstantiationError(config.errors)
        return schedule, tensors

    # what strategies of `compassc.tuning` need of a task
    @property
    def space(self) -> ConfigSpace:
        return self.config_space

    default = None

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={self.kwargs}, workload={self.workload})"


def create(task_name: str, args: Sequence[object], target: object, target_host: object = None) -> Task:
    """The task of a template: it runs once, with the first value of each knob."""
    task = Task(task_name, serialize_args(args))
    task.target, task.target_host = Target.of(target), target_host
    with ApplyConfig(task.config_space), task.target:
        schedule, _ = task.func(*deserialize_args(task.args))
    task.flop = task.config_space.flop or compute_flop(schedule)
    return task


def get_config() -> ConfigSpace:
    """The configuration of the current context."""
    return _configured(None)

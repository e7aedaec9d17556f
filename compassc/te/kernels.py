"""Functions that make a schedule, decorated so that commands take them like kernels: `compassc build file.py:name`."""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from compass_core.errors import CompassError, Span
from compass_core.namedtuple import NamedTuple
from compassc import services
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.stmts import IRModule, PrimFunc
from compassc.language.kernel import Kernel
from compassc.pass_manager import PassOptions, standing
from compassc.te.errors import LowerError
from compassc.te.lowering import lower
from compassc.te.schedule.schedule import Schedule
from compassc.te.tensor import Tensor


class Lowered(NamedTuple):
    """A kernel for a target, and the steps of its schedule as texts by the suffixes of their files: as JSON, which can be
    replayed, and as Python."""

    module: IRModule
    traces: Mapping[str, str]


def _tensors(given: object) -> list[Tensor] | None:
    """What was given, where that are tensors alone."""
    if isinstance(given, (list, tuple)) and given and all(isinstance(t, Tensor) for t in given):
        return list(given)
    return None


class TEKernel(Kernel):
    """A function that gives a schedule and the arguments of its kernel: `(schedule, [A, B, C])`; or one of blocks.

    Called, it gives what the function gives. `schedule` is for a target: a function whose first parameter is called
    `target` gets it. A function that gives the arguments alone has the default schedule of `compassc.topi`. One of blocks
    gives a schedule of these, a function or a module (`compassc.tir`).
    """

    for_all_targets = True

    def __init__(self, function: Callable[..., object]) -> None:
        self.function, self.__name__, self.__doc__ = function, function.__name__, function.__doc__
        required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        if any(p.name != "target" for p in required):
            raise ExpressionError(
                f"the parameters of '{self.__name__}' need defaults",
                f"commands call it without arguments: write `def {self.__name__}({required[0].name}=...)`",
            )

    @property
    def span(self) -> Span:
        """Where the function stands."""
        code = self.function.__code__
        return Span(code.co_filename, code.co_firstlineno)

    def __call__(self, *args: object, **options: object) -> Any:
        return self.function(*args, **options)

    def schedule(self, target: str) -> tuple[Schedule, list[object]]:
        """The schedule for a target, and the arguments. ExpressionTypeError when the function gives something else."""
        return self._scheduled(self._made_for(target), target)

    def _scheduled(self, given: object, target: str) -> tuple[Schedule, list[object]]:
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Schedule):
            schedule, args = given
            return schedule, list(args)
        tensors = _tensors(given)
        if tensors is not None:
            return self._default(tensors, target), list[object](tensors)
        with self._here():
            raise ExpressionTypeError(
                f"'{self.__name__}' gives {type(given).__name__}",
                "return (schedule, [A, B, C]), [A, B, C], or a schedule of blocks",
            )

    def _made_for(self, target: str) -> object:
        takes = "target" in inspect.signature(self.function).parameters
        return self._made(**({"target": target} if takes else {}))

    def given(self, target: str, sizes: Mapping[str, object]) -> list[Tensor] | None:
        """The arguments of a function that gives these alone; None for one that gives a schedule. `sizes`: values of its
        parameters; ExpressionTypeError for others."""
        known = inspect.signature(self.function).parameters
        other = [name for name in sizes if name not in known]
        if other:
            raise ExpressionTypeError(f"'{self.__name__}' has no parameter '{other[0]}'", f"it has {', '.join(known)}")
        return _tensors(self._made(**{**sizes, **({"target": target} if "target" in known else {})}))

    def _made(self, **given: object) -> object:
        """What the function gives. ExpressionError where it fails."""
        try:
            return self.function(**given)
        except CompassError:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == self.span.file] or [where]
            failed = ExpressionError(f"'{self.__name__}' failed: {type(error).__name__}: {error}")
            failed.span = Span(own[-1].filename, own[-1].lineno or 0)
            raise failed from error

    @contextmanager
    def _here(self) -> Iterator[None]:
        """Errors of what is done with the function's schedule are about the function."""
        try:
            yield
        except (ExpressionTypeError, LowerError) as error:
            error.span = self.span
            raise

    def _default(self, args: Sequence[Tensor], target: str) -> Schedule:
        read = {t for a in args for t in a.op.input_tensors}
        made: Schedule = services.default_schedule([t for t in args if t.op.input_tensors and t not in read], target)
        return made

    def lower(self, target: str, options: PassOptions | None = None, simple_mode: bool = False) -> Lowered:
        """The kernel for a target, under the function's name. `simple_mode`: functions of blocks stay what they are, and
        schedules of stages become plain loops over scalars."""
        given = self._made_for(target)
        made = getattr(given, "mod", given)  # of a schedule
        module = made.module() if isinstance(made, PrimFunc) else made
        if isinstance(module, IRModule):
            trace = getattr(given, "trace", None)
            traces = {} if trace is None else {".trace.json": json.dumps(trace.as_json()), ".trace.py": f"{trace}\n"}
            module = self._named(module.replace(target=target))
            with self._here(), standing(options or PassOptions()):
                return Lowered(module if simple_mode else services.lower_blocks(module, target), traces)
        schedule, args = self._scheduled(given, target)
        with self._here(), standing(options or PassOptions()):
            module = lower(schedule, args, self.__name__, target, simple_mode)
        trace = schedule.trace
        return Lowered(self._named(module), {".trace.json": trace.to_json(), ".trace.py": trace.as_python()})

    def _named(self, module: IRModule) -> IRModule:
        """The module with this function's name and place for its entry."""
        entry = module.entry
        known = module.map_functions(lambda f: f.replace(name=self.__name__, span=self.span) if f.name == entry else f)
        return known.replace(entry=self.__name__)


def kernel(function: Callable[..., object]) -> TEKernel:
    """Decorates a function that gives `(schedule, [A, B, C])`, or `[A, B, C]` for a default schedule."""
    if not inspect.isfunction(function):
        raise ExpressionTypeError(f"te.kernel decorates a function, got {type(function).__name__}")
    return TEKernel(function)

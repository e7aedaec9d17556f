"""Functions that make a schedule, decorated so that commands take them like kernels: `compassc build file.py:name`."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError, Span
from compassc import services
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.language.kernel import Kernel
from compassc.te.errors import LowerError
from compassc.te.lowering import lower
from compassc.te.schedule.schedule import Schedule
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.ir.stmts import IRModule


class TEKernel(Kernel):
    """A function that gives a schedule and the arguments of its kernel: `(schedule, [A, B, C])`.

    Called, it gives what the function gives. `schedule` is for a target: a function whose first parameter is called
    `target` gets it. A function that gives the arguments alone has the default schedule of `compassc.topi`.
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

    def schedule(self, target: str) -> tuple[Schedule, list[Any]]:
        """The schedule for a target, and the arguments. ExpressionTypeError when the function gives something else."""
        takes = "target" in inspect.signature(self.function).parameters
        given = self._made(**({"target": target} if takes else {}))
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Schedule):
            return given[0], list(given[1])
        if isinstance(given, (list, tuple)) and given and all(isinstance(t, Tensor) for t in given):
            return self._default(list(given), target), list(given)
        with self._here():
            raise ExpressionTypeError(
                f"'{self.__name__}' gives {type(given).__name__}", "return (schedule, [A, B, C]), or [A, B, C]"
            )

    def given(self, target: str, sizes: Mapping[str, object]) -> list[Tensor] | None:
        """The arguments of a function that gives these alone; None for one that gives a schedule. `sizes`: values of its
        parameters; ExpressionTypeError for others."""
        known = inspect.signature(self.function).parameters
        other = [name for name in sizes if name not in known]
        if other:
            raise ExpressionTypeError(f"'{self.__name__}' has no parameter '{other[0]}'", f"it has {', '.join(known)}")
        made = self._made(**{**sizes, **({"target": target} if "target" in known else {})})
        tensors = isinstance(made, (list, tuple)) and made and all(isinstance(t, Tensor) for t in made)
        return list(made) if tensors else None

    def _made(self, **given: object) -> Any:
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

    def lower(self, target: str, simple_mode: bool = False) -> tuple[IRModule, Schedule]:
        """The kernel for a target, under the function's name, and its schedule."""
        made, args = self.schedule(target)
        with self._here():
            module = lower(made, args, self.__name__, target, simple_mode)
        return module.map_functions(lambda f: f.replace(span=self.span) if f.name == module.entry else f), made


def kernel(function: Callable[..., object]) -> TEKernel:
    """Decorates a function that gives `(schedule, [A, B, C])`, or `[A, B, C]` for a default schedule."""
    if not inspect.isfunction(function):
        raise ExpressionTypeError(f"te.kernel decorates a function, got {type(function).__name__}")
    return TEKernel(function)

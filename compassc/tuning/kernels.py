"""Kernels with constants to choose: `S.autotune` on a function that takes them and gives a kernel."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import switches
from compass_core.arrays import Array
from compass_core.errors import CompassError, Span, UsageError
from compassc.dsl.build_manager import BuildManager
from compassc.ir import print_module
from compassc.language.functions import PyPrimFunc
from compassc.language.kernel import Kernel
from compassc.language.source import function_span
from compassc.tuning.history import database_file, history
from compassc.tuning.space import Candidate, ListSpace, ParameterSpace, Space, is_plain, key_of
from compassc.tuning.task import Infeasible, Program, Tolerance, Workload
from compassc.tuning.tune import TuneOptions, check, tune

if TYPE_CHECKING:
    from compassc.tuning.tune import Search

Sizes = Mapping[str, Any]
"""Scalar parameters by name with their values, array parameters with their shapes."""
_PLACES = re.compile(r"\s*#@.*$", re.MULTILINE)


def autotune(
    configs: Sequence[Mapping[str, object]] | None = None,
    *,
    space: Mapping[str, Sequence[object]] | None = None,
    key: Sequence[str] = (),
    sizes: Sequence[Sizes] = (),
    inputs: Callable[..., Mapping[str, object]] | None = None,
    reference: Callable[..., object] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Callable[[Callable[..., object]], Autotuned]:
    """Decorator of a function that takes constants and gives a kernel (ours: the vendor's language has none).

    `configs`: the constants to choose from, the first one is used without tuning; or `space`: values of each constant,
    of which the first ones are. `key`: parameters of the kernel (scalars, or arrays for their shapes) for each of whose
    values the best is looked for on its own. For `compassc tune`: `sizes` to tune for; `inputs(rng, **sizes)`, which
    gives arguments by name, where random ones will not do; `reference(**arguments)`, which gives the outputs (one array,
    or several by name), where those of the first configuration will not do; `rtol`, `atol`: how near is right.
    """
    if (configs is None) == (space is None):
        raise _wrong("S.autotune takes either configs or space", 'write @S.autotune(space={"TILE": [64, 128]})')

    def decorate(factory: Callable[..., object]) -> Autotuned:
        made: Space = ParameterSpace(space) if space is not None else _listed(configs or ())
        first = dict(configs[0]) if configs else {name: values[0] for name, values in (space or {}).items()}
        tolerance = None if rtol is None and atol is None else Tolerance(rtol or 0.0, atol or 0.0)
        return Autotuned(factory, made, first, tuple(key), tuple(sizes), inputs, reference, tolerance)

    return decorate


def _listed(configs: Sequence[Mapping[str, object]]) -> Space:
    for config in configs:
        if not isinstance(config, Mapping) or not all(map(is_plain, config.values())):
            raise _wrong(
                f"S.autotune: {config!r:.80} is no configuration", 'a configuration is like {"TILE": 64, "UNROLL": 2}'
            )
    return ListSpace([dict(config) for config in configs])


def _wrong(message: str, help: str, span: Span | None = None) -> UsageError:
    return UsageError(message, span, code="autotune", help=help)


class Autotuned(Kernel):
    """A kernel with constants to choose. Called, it runs in PySim; `BuildManager` builds it. Both take the configuration
    that is best on record, else the first one."""

    __name__: str

    def __init__(
        self,
        factory: Callable[..., object],
        space: Space,
        default: Candidate,
        key: tuple[str, ...],
        sizes: tuple[Sizes, ...],
        inputs: Callable[..., Mapping[str, object]] | None,
        reference: Callable[..., object] | None,
        tolerance: Tolerance | None,
    ) -> None:
        """UsageError where the factory does not take what configurations have, or the kernel has no parameter of `key`."""
        self.__name__, self.__doc__ = factory.__name__, factory.__doc__
        self.factory, self.space, self.default, self.key = factory, space, default, key
        self.sizes, self.inputs, self.reference, self.tolerance = sizes, inputs, reference, tolerance
        self._kernels: dict[str, PyPrimFunc] = {}
        self._structures: dict[str, str] = {}
        self._target = ""
        self._check_constants()
        params = [p.name for p in self.configured(**default).params]
        if unknown := [name for name in key if name not in params]:
            raise _wrong(
                f"key names '{unknown[0]}', which is no parameter of the kernel",
                f"its parameters are {', '.join(params)}",
                self.span,
            )

    def __repr__(self) -> str:
        return f"<autotuned {self.__name__}>"

    @property
    def span(self) -> Span:
        """Where the factory stands."""
        return function_span(self.factory)

    def _check_constants(self) -> None:
        try:
            inspect.signature(self.factory).bind(**self.default)
        except TypeError as error:
            raise _wrong(
                f"{self.__name__} does not take the constants {', '.join(self.default) or 'of no configuration'}: {error}",
                "the parameters of the decorated function are the constants",
                self.span,
            ) from None

    def configured(self, **constants: object) -> PyPrimFunc:
        """The kernel with these constants. UsageError when the factory gives none; what it raises itself comes through."""
        which = key_of(constants)
        if which not in self._kernels:
            made = self.factory(**constants)
            if not isinstance(made, PyPrimFunc):
                raise _wrong(
                    f"{self.__name__} gives {type(made).__name__}, not a kernel",
                    "define a kernel with @S.prim_func in it and return it",
                    self.span,
                )
            self._kernels[which] = made
        return self._kernels[which]

    # Choosing

    def kernel_for(self, target: str, sizes: Sizes | None = None) -> PyPrimFunc:
        """The kernel to use on a target; see `config_for`."""
        self._target = target
        return self.configured(**self.config_for(target, sizes))

    def config_for(self, target: str, sizes: Sizes | None = None) -> dict[str, object]:
        """The constants to use on a target: the best on record for these sizes; where they are not known or not on record,
        those that are best for most sizes on record; without records the first ones."""
        known = history()
        if not known:
            return dict(self.default)
        workload = self.workload(target, sizes or {})
        found = known.best(workload, self.space)
        chosen = found.candidate if found is not None else known.usual(workload, self.space)
        return dict(self.default if chosen is None else chosen)

    def workload(self, target: str, sizes: Sizes) -> Workload:
        """What records of these sizes are about; of sizes that are not given, nothing is said."""
        shapes = tuple(_shape(sizes[name]) for name in self.key if name in sizes and not _is_number(sizes[name]))
        values = {name: _plain(sizes[name]) for name in self.key if name in sizes and _is_number(sizes[name])}
        dtypes = tuple(str(p.type) for p in self.configured(**self.default).params)
        return Workload(self.__name__, self.structure(target), shapes, dtypes, target, values)

    def structure(self, target: str) -> str:
        """A hash of what the kernel is: its IR with one and the same configuration, without places."""
        if target not in self._structures:
            first = min(self.space.grid(), key=key_of)
            try:
                module = BuildManager(target).parse(self.configured(**first))
            except Infeasible:
                module = BuildManager(target).parse(self.configured(**self.default))
            text = _PLACES.sub("", print_module(module))
            self._structures[target] = "kernel:" + hashlib.sha256(text.encode()).hexdigest()[:24]
        return self._structures[target]

    def __call__(self, *args: Array | int) -> Any:
        """Runs in PySim; within another kernel, a call of the kernel."""
        names = [p.name for p in self.configured(**self.default).params]
        given = {n: a.shape if isinstance(a, np.ndarray) else a for n, a in zip(names, args, strict=False)}
        target = self._target or switches.TARGET.get()
        kernel = self.kernel_for(target, {n: v for n, v in given.items() if v is not None})
        kernel.target = kernel.target or target
        return kernel(*args)

    # Tuning

    def tune(self, *args: object, target: str = "", trials: int = 100, **options: Any) -> Search:
        """Searches the best configuration for arguments like these; outputs are not changed. `options`: fields of
        `TuneOptions`. The result goes into the folder COMPASS_TUNING where there is one.

        CompassError when no configuration gives a right result.
        """
        from compassc.tuning.kernel_task import KernelTask

        task = KernelTask.of_arguments(self, target or self._target or switches.TARGET.get(), args)
        search = tune(task, TuneOptions(trials=trials, **options), database_file())
        check(search)
        return search

    def program(self, candidate: Candidate) -> Program:
        """The kernel of a configuration. Infeasible where the factory says so, by raising it or ValueError."""
        try:
            return Program(self.configured(**candidate))
        except CompassError:
            raise
        except ValueError as error:
            raise Infeasible(str(error)) from None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating, np.bool_))


def _plain(value: object) -> Any:
    return value.item() if hasattr(value, "item") else value


def _shape(value: Any) -> tuple[int, ...]:
    found: Iterable[Any] = getattr(value, "shape", value)
    return tuple(int(n) for n in found)

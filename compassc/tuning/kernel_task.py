"""Tasks of kernels with `S.autotune`: arguments to run them with, and what is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError
from compass_runtime.program import numpy_dtype
from compassc.dsl.build_manager import BuildManager
from compassc.tuning.kernels import Autotuned, Sizes
from compassc.tuning.space import Candidate, Space
from compassc.tuning.task import Program, Tolerance, Workload

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import ParamFields
    from compassc.dsl.executor import Executor

_EPSILONS = {"float32": 1e-5, "float16": 1e-2, "bfloat16": 2e-2}
"""By dtype: how far results may be from each other, relative to the largest, when sums are added in another order."""
_MOST = 100
"""Random integers go from -100 to 100, where the type has them; floats are whole numbers from -4 to 4."""
_MOST_FLOAT = 4


@dataclass(frozen=True)
class KernelTask:
    """A kernel with constants to choose, for certain arguments; see `of_sizes` and `of_arguments`."""

    kernel: Autotuned
    workload: Workload
    given: tuple[Any, ...]
    right: Mapping[int, Array]
    tolerance: Tolerance

    @property
    def name(self) -> str:
        about = [f"{n}={v}" for n, v in self.workload.values.items()]
        about += ["x".join(map(str, shape)) for shape in self.workload.shapes]
        return " ".join([self.kernel.__name__, *about])

    @property
    def space(self) -> Space:
        return self.kernel.space

    @property
    def default(self) -> Candidate:
        return self.kernel.default

    def program(self, candidate: Candidate) -> Program:
        return self.kernel.program(candidate)

    def arguments(self) -> Sequence[Any]:
        return self.given

    def expected(self) -> Mapping[int, Array]:
        return self.right

    @classmethod
    def of_arguments(cls, kernel: Autotuned, target: str, args: Sequence[object]) -> KernelTask:
        """The task of calls like this one. CompassError where the first configuration does not build or run."""
        return cls._of(kernel, target, args, _built(kernel, target))

    @classmethod
    def of_sizes(cls, kernel: Autotuned, target: str, sizes: Sizes, seed: int = 0) -> KernelTask:
        """The task for sizes: `inputs` of the kernel gives the arguments, else they are random. CompassError where a size
        that is needed is not known, or the first configuration does not build or run."""
        built = _built(kernel, target)
        names = [p["name"] for p in built.params]
        if unknown := [name for name in sizes if name not in names]:
            raise UsageError(
                f"{kernel.__name__} has no parameter '{unknown[0]}'",
                code="no-parameter",
                help=f"its parameters are {', '.join(names)}",
            )
        rng = np.random.default_rng(seed)
        if kernel.inputs is not None:
            arguments = dict(kernel.inputs(rng, **sizes))
            if missing := [name for name in names if name not in arguments]:
                raise UsageError(
                    f"the inputs of {kernel.__name__} lack '{missing[0]}'",
                    kernel.span,
                    code="autotune",
                    help="inputs(rng, **sizes) gives every argument by name, outputs too",
                )
        else:
            arguments = _random_arguments(built, sizes, rng)
        return cls._of(kernel, target, [arguments[name] for name in names], built)

    @classmethod
    def _of(cls, kernel: Autotuned, target: str, args: Sequence[object], built: Executor) -> KernelTask:
        given = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
        outputs = {i: p["name"] for i, p in enumerate(built.params) if p["role"] == "output"}
        if kernel.reference is not None:
            right = _by_reference(kernel, given, built.params, outputs)
        else:
            after = [a.copy() if isinstance(a, np.ndarray) else a for a in given]
            built(*after)
            right = {i: cast(Array, after[i]) for i in outputs if after[i] is not None}
        names = [p["name"] for p in built.params]
        sizes = {n: a for n, a in zip(names, given, strict=True) if a is not None}
        return cls(kernel, kernel.workload(target, sizes), given, right, kernel.tolerance or _tolerance(right.values()))


def _built(kernel: Autotuned, target: str) -> Executor:
    return BuildManager(target).build(kernel.configured(**kernel.default))


def _tolerance(arrays: Any) -> Tolerance:
    """What sums in another order need, relative to the largest element."""
    rtol = atol = 0.0
    for array in arrays:
        epsilon = _EPSILONS.get(array.dtype.name, 0.0)
        rtol = max(rtol, epsilon)
        finite = np.abs(array.astype(np.float64))
        atol = max(atol, epsilon * float(finite[np.isfinite(finite)].max(initial=0.0)))
    return Tolerance(rtol, atol)


def _by_reference(
    kernel: Autotuned, given: Sequence[Any], params: Sequence[ParamFields], outputs: Mapping[int, str]
) -> dict[int, Array]:
    assert kernel.reference is not None
    names = [p["name"] for p in params]
    made = kernel.reference(**{n: a.copy() if isinstance(a, np.ndarray) else a for n, a in zip(names, given)})
    if not isinstance(made, Mapping):
        made = {next(iter(outputs.values()), ""): made}
    if made.keys() != set(outputs.values()):
        raise UsageError(
            f"the reference of {kernel.__name__} gives {', '.join(made) or 'nothing'}, the kernel writes "
            f"{', '.join(outputs.values())}",
            kernel.span,
            code="autotune",
            help="give the one output, or all of them by name",
        )
    return {i: np.asarray(made[name]).astype(given[i].dtype) for i, name in outputs.items()}


def _random_arguments(built: Executor, sizes: Sizes, rng: np.random.Generator) -> dict[str, object]:
    """An argument for each parameter of a built kernel."""
    values = {p["name"]: sizes.get(p["name"], p["value"]) for p in built.params if p["role"] == "attr"}
    if open_ := [name for name, value in values.items() if value is None]:
        raise UsageError(
            f"the value of '{open_[0]}' is not known",
            code="autotune-sizes",
            help=f"give it with --set {open_[0]}=VALUE, or sizes=[...] to S.autotune",
        )
    shapes = _shapes(built, values, {n: v for n, v in sizes.items() if n not in values})
    found: dict[str, Any] = dict(values)
    for param in built.params:
        if param["role"] in ("input", "output", "const"):
            kind, shape = numpy_dtype(param["dtype"].partition("x")[0]), shapes[param["name"]]
            reads = param["role"] != "output" or param["read"]
            found[param["name"]] = _random(kind, shape, rng) if reads else np.zeros(shape, kind)
    if other := [p["name"] for p in built.params if p["name"] not in found]:
        raise CompassError(
            f"arguments for '{other[0]}' cannot be made at random",
            code="autotune-sizes",
            help="give inputs to S.autotune",
        )
    return found


def _shapes(built: Executor, values: Mapping[str, int], given: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor: those given, those that the kernel tells."""
    known = {name: tuple(shape) for name, shape in given.items()}
    consts = [p["name"] for p in built.params if p["role"] == "const"]
    if unknown := [name for name in consts if name not in known]:
        raise UsageError(
            f"the shape of the constant '{unknown[0]}' is not known",
            code="autotune-sizes",
            help=f"give it with --shape {unknown[0]}=SIZExSIZE",
        )
    if consts:
        return known
    shapes, _, room = built.program.resolve(known, values, known)
    return {
        name: (room.get(name, 0),) if not any(shape) and room.get(name) else shape for name, shape in shapes.items()
    }


def _random(kind: NumpyDType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return rng.integers(max(-_MOST, limits.min), min(_MOST, limits.max), shape, endpoint=True).astype(kind)
    return rng.integers(-_MOST_FLOAT, _MOST_FLOAT, shape, endpoint=True).astype(kind)


def tasks_of_kernel(kernel: Autotuned, target: str, sizes: Sizes) -> list[KernelTask]:
    """The tasks of the sizes that the kernel names, with those given in their place; one of the given sizes where it names
    none."""
    wanted: list[Sizes] = []
    for own in kernel.sizes or ({},):
        if {**own, **sizes} not in wanted:
            wanted.append({**own, **sizes})
    return [KernelTask.of_sizes(kernel, target, one) for one in wanted]

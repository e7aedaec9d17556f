"""`tvm.testing`: targets that tests run on, parameters, what tests need, and comparisons."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from compass_core.errors import UsageError
from compass_core.hostcc import host
from compass_runtime import Device, device

from ..ir import IRModule, PrimFunc, assert_structural_equal
from ..ir.exprs import Expr
from ..te.analyzer import Analyzer
from .framework import enabled
from .tvmscript import ir_module, prim_func

if TYPE_CHECKING:
    import pytest
    from _pytest.mark import MarkDecorator, ParameterSet


def main() -> None:
    """Run the tests of the file that is the program, as pytest does."""
    import pytest

    sys.exit(pytest.main(["-p", "tvm.testing.plugin", sys.modules["__main__"].__file__ or "", *sys.argv[1:]]))


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets that tests of the framework run on, each with its device: those of the environment variable TVM_TEST_TARGETS,
    by default `llvm` and `cuda`, of which something here runs; `llvm` where none is left."""
    named = [t.strip() for t in os.environ.get("TVM_TEST_TARGETS", "").split(";") if t.strip()] or ["llvm", "cuda"]
    return [(name, device(name.split()[0], 0)) for name in [n for n in named if enabled(n)] or ["llvm"]]


Test = Callable[..., object]
"""A test, a fixture's function, or a class of tests."""
Decorated = Callable[[Test], Test]


def parametrize_targets(*targets: object) -> Test | MarkDecorator:
    """A test for each of the targets (by default all that are enabled), with the arguments `target` and `dev`."""
    import pytest

    test = targets[0] if len(targets) == 1 and callable(targets[0]) else None
    mark = pytest.mark.parametrize(("target", "dev"), target_cases(targets if test is None else ()))
    return mark if test is None else mark(test)


def target_cases(targets: Sequence[object] = ()) -> list[ParameterSet]:
    """Targets with their devices as parameters of tests; those that nothing here runs are skipped."""
    import pytest
    from _pytest.mark import ParameterSet

    made = []
    for given in targets or [name for name, _ in enabled_targets()]:
        name, marks = (str(given.values[0]), given.marks) if isinstance(given, ParameterSet) else (str(given), ())
        if not enabled(name):
            made.append(pytest.param(name, None, id=name, marks=(*marks, _skip(name))))
        else:
            made.append(pytest.param(name, device(name.split()[0], 0), id=name, marks=marks))
    return made


def _skip(name: str) -> MarkDecorator:
    import pytest

    return pytest.mark.skip(reason=f"nothing here runs {name}")


Ids = Sequence[str] | Callable[[Any], object] | None
"""How cases are named: by texts, or by a function of their values."""


def parameter(*values: object, ids: Ids = None, by_dict: Mapping[str, object] | None = None) -> object:
    """A fixture with these values, one test for each."""
    import pytest

    if by_dict:
        ids, values = list(by_dict), tuple(by_dict.values())

    @pytest.fixture(params=values, ids=ids)
    def as_fixture(*_self: object, request: pytest.FixtureRequest) -> object:
        return request.param

    return as_fixture


def parameters(*rows: Sequence[object], ids: Ids = None) -> list[object]:
    """Fixtures that take their values together: `a, b = parameters((1, 2), (3, 4))` is a test with 1 and 2, and one with
    3 and 4."""
    import inspect

    import pytest

    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise UsageError("parameters takes rows of values, all of one length", code="input")
    scope = sys._getframe(1).f_globals
    shared = f"_parameters_{sum(name.startswith('_parameters_') for name in scope)}"
    scope[shared] = parameter(*rows, ids=ids)

    def made(place: int) -> object:
        def as_fixture(*_self: object, **row: Sequence[object]) -> object:
            return row[shared][place]

        given = [
            inspect.Parameter("_self", inspect.Parameter.VAR_POSITIONAL),
            inspect.Parameter(shared, inspect.Parameter.KEYWORD_ONLY),
        ]
        as_fixture.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
        return pytest.fixture(as_fixture)

    return [made(i) for i in range(len(rows[0]))]


def fixture(func: Test | None = None, *, cache_return_value: bool = False) -> object:
    """A fixture of pytest. `cache_return_value`: it is made once for the same parameters, and tests get copies."""
    import functools
    import pickle
    from copy import deepcopy

    import pytest

    if func is None:
        return partial(fixture, cache_return_value=cache_return_value)
    if not cache_return_value:
        return pytest.fixture(func)
    known: dict[bytes, object] = {}

    @functools.wraps(func)
    def kept(*args: object, **options: object) -> object:
        key = pickle.dumps((args, sorted(options.items())))
        if key not in known:
            known[key] = func(*args, **options)
        return deepcopy(known[key])

    return pytest.fixture(kept)


def device_enabled(target: str) -> bool:
    """Whether tests run on this target. AssertionError for what is no text."""
    assert isinstance(target, str), "a target is named by its text"
    return enabled(target)


def assert_prim_expr_equal(lhs: Expr, rhs: Expr) -> None:
    """ValueError unless two expressions can be shown to be equal."""
    if not Analyzer().can_prove(lhs == rhs):
        raise ValueError(f"{lhs} and {rhs} are not equal")


def _known_by(target: str) -> Callable[[], bool]:
    return lambda: enabled(target)


def _package(name: str) -> Callable[[], bool]:
    from importlib.util import find_spec

    return lambda: find_spec(name) is not None


def _processor(*features: str) -> Callable[[], bool]:
    def known() -> bool:
        return set(features) <= set(host.current().features.split(","))

    return known


def _x86() -> bool:
    from platform import machine

    return machine() in ("x86_64", "AMD64")


def _never() -> bool:
    return False


FEATURES: Mapping[str, Callable[[], bool]] = {
    "llvm": _known_by("llvm"),
    "cuda": _known_by("cuda"),
    "gpu": _known_by("cuda"),
    "x86": _x86,
    "x86_avx512": _processor("+avx512f", "+avx512bw"),
    "x86_vnni": _processor("+avx512vnni"),
    "rpc": lambda: True,
    **dict.fromkeys(
        """tensorcore matrixcore cudnn cublas nvptx cudagraph opencl openclml rocm metal vulkan micro cutlass ethosn ethosu
        libtorch hexagon cmsisnn corstone300 vitis_ai arm_dot x86_amx""".split(),
        _never,
    ),
}
"""What tests may need, and whether it is here."""


class _Requirement:
    """Skips tests where something is not here: `@requires_x`, `@requires_x()`, or marks of a parameter (`marks()`)."""

    def __init__(self, name: str, present: Callable[[], bool]) -> None:
        self.__doc__ = f"Skips a test where there is no {name}."
        self._name, self._present = name, present

    def marks(self, support_required: str = "compile-and-run") -> list[MarkDecorator]:
        """The marks of pytest."""
        import pytest

        present = support_required == "optional" or self._present()
        return [pytest.mark.skipif(not present, reason=f"nothing here runs {self._name}")]

    def __call__(
        self, func: Test | None = None, *, support_required: str = "compile-and-run"
    ) -> Test | list[MarkDecorator]:
        if func is None and support_required == "compile-and-run":
            return self.marks()
        if func is None:
            return partial(self, support_required=support_required)
        for mark in self.marks(support_required):
            func = mark(func)
        return func


def requires_package(*names: str) -> _Requirement:
    """Skips a test where one of these packages is not installed."""
    return _Requirement(", ".join(names), lambda: all(_package(name)() for name in names))


def uses_gpu(func: Test) -> Test:
    """A mark that says that a test may use a GPU, and changes nothing."""
    return func


def _kinds(mark: str, kinds: Sequence[str]) -> Decorated:
    def noted(func: Test) -> Test:
        setattr(func, mark, kinds)
        return func

    return noted


def exclude_targets(*kinds: str) -> Decorated:
    """A test is not run on targets of these kinds (`tvm.testing.plugin`)."""
    return _kinds("excluded_targets", kinds)


def known_failing_targets(*kinds: str) -> Decorated:
    """A test is expected to fail on targets of these kinds (`tvm.testing.plugin`)."""
    return _kinds("failing_targets", kinds)


def requires_nvcc_version(major: int, minor: int = 0, release: int = 0) -> _Requirement:
    """Skips a test: there is no nvcc here."""
    return _Requirement("nvcc", _never)


requires_cuda_compute_version = requires_nvcc_version


class CompareBeforeAfter:
    """A base of tests of passes. `transform` is a pass, or a method that gives one; `before` (or `Before`) and `expected` (or
    `Expected`) are functions or modules, the text of one without `self`, methods that give one, or for `expected` the class of
    an error. All three may be fixtures. AssertionError where a side is there in both spellings."""

    def __init_subclass__(cls) -> None:
        for name in ("before", "expected"):
            given = [n for n in (name, name.capitalize()) if n in vars(cls)]
            assert len(given) < 2, f"{cls.__name__} has both {' and '.join(given)}"
            if given and not _is_fixture(vars(cls)[given[0]]):
                setattr(cls, name, _fixture(partial(_side, vars(cls)[given[0]])))
        made = vars(cls).get("transform")
        if made is not None and not _is_fixture(made):
            cls.transform = _fixture(made if _takes_self(made) else lambda self: made)

    transform: object

    def test_compare(
        self, before: IRModule | PrimFunc, expected: IRModule | PrimFunc | type[BaseException], transform: Callable[[IRModule], IRModule]
    ) -> None:  # fmt: skip
        """What the pass makes of the one is the other."""
        import pytest

        if isinstance(expected, type) and issubclass(expected, BaseException):
            with pytest.raises(expected):
                transform(_module(before))
            return
        after = transform(_module(before))
        try:
            assert_structural_equal(_module(after), _module(expected))
        except ValueError as error:
            texts = [str(x) for x in (_module(before), _module(expected), after)]
            raise ValueError("\n\n".join([str(error), *texts])) from None


def _is_fixture(given: object) -> bool:
    return hasattr(given, "_pytestfixturefunction") or type(given).__name__ == "FixtureFunctionDefinition"


def _fixture(get: Callable[[object], object]) -> object:
    import pytest

    def found(self: object) -> object:
        return get(self)

    return pytest.fixture(found)


def _side(given: Any, test: object) -> object:
    """The function, module or error that one side of a comparison is."""
    if isinstance(given, (IRModule, PrimFunc)) or (isinstance(given, type) and issubclass(given, BaseException)):
        return given
    if _takes_self(given):
        return given(test)
    return ir_module(given) if isinstance(given, type) else prim_func(given)


def _takes_self(given: object) -> bool:
    import inspect

    return inspect.isfunction(given) and "self" in inspect.signature(given).parameters


def _module(given: IRModule | PrimFunc) -> IRModule:
    """A module of it; a function alone is its `main`."""
    if isinstance(given, IRModule) and len(given.functions) != 1:
        return given
    (function,) = given.functions if isinstance(given, IRModule) else (given,)
    return IRModule((function.replace(name="main"),), "main", "")


globals().update({f"requires_{name}": _Requirement(name, present) for name, present in FEATURES.items()})

"""Kernels, sub-functions and macros: Python functions with the types of their parameters, and what a call of one means.

Only the annotations are checked here; the source is parsed when the kernel is built.
"""

from __future__ import annotations
import __future__

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

from compass_core.errors import CompassError, Span, together

from ..ir.dtypes import VOID, DataType, PointerType, pointer_type
from .dispatch import LOCAL
from .kernel import Kernel
from .python_errors import hide_package
from .source import definition, file_of, function_span, node_span

if TYPE_CHECKING:
    from compassc.language.specs import DTypeName, PtrType

    from .info import CompassInfo, ParamInfo

Runner = Callable[[Any, tuple[object, ...], dict[str, object]], object]
"""The handler of calls outside of the parser: called with the function or macro and its arguments."""


def annotation_type(annotation: DTypeName | PtrType) -> DataType | PointerType | None:
    """The type an annotation stands for: an `S` dtype name or `S.ptr(...)`; None for anything else."""
    kind = getattr(annotation, "dtype", None)
    if not isinstance(kind, DataType):
        return None
    scope = getattr(annotation, "scope", None)
    return pointer_type(kind, scope) if scope is not None else kind


class SignatureError(CompassError, AssertionError):
    """A function cannot be a kernel as it is declared."""


class Param:
    """A parameter: name, type, whether it is promised >= 0, and the default value (`Param.empty` when required)."""

    __slots__ = ("default", "name", "nonneg", "type")
    empty = inspect.Parameter.empty

    def __init__(self, name: str, kind: DataType | PointerType, nonneg: bool, default: object) -> None:
        self.name, self.type, self.nonneg, self.default = name, kind, nonneg, default

    @property
    def required(self) -> bool:
        return self.default is self.empty

    def __iter__(self) -> Iterator[object]:
        return iter((self.name, self.type, self.default))


class PyPrimFunc(Kernel):
    """A kernel or sub-function: call it to run PySim, give it to BuildManager to compile it.

    `target`, `param_infos` and `output_dir` are the target, the parameters and the folder of the last build of this
    kernel, None before. PySim runs as many TECs as that target has. `run` is PySim.
    """

    __name__: str

    def __init__(self, py_func: Callable[..., object], run: Runner, is_inline: bool | None = None) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = cast(FunctionType, py_func)
        self._run = run
        self.is_inline = is_inline
        self.target: str | None = None
        self.param_infos: Sequence[ParamInfo] | None = None
        self.output_dir: Path | None = None
        self._folder: object = None  # what keeps a temporary `output_dir` alive
        self.params: list[Param] = []
        self.ret_type: DataType | PointerType = VOID
        self._read_signature()

    def __repr__(self) -> str:
        return f"<prim_func {self.__name__}>"

    @property
    def attrs(self) -> dict[str, bool]:
        """The arguments of the decorator."""
        return {} if self.is_inline is None else {"is_inline": self.is_inline}

    @property
    def cps_info(self) -> CompassInfo | None:
        """The configuration of the target."""
        from .info import CompassInfo

        return None if self.target is None else CompassInfo.get(self.target)

    def built(self, target: str, params: Sequence[ParamInfo], folder: Path, keep: object) -> None:
        """Remember a build. `keep` is what a temporary folder lives by."""
        self.target, self.param_infos, self.output_dir, self._folder = target, params, folder, keep

    @property
    def span(self) -> Span:
        """Where the function is defined."""
        return function_span(self.py_func)

    def place_of(self, part: str) -> Span:
        """Where the parameter called `part`, or the return annotation, is written."""
        node = definition(self.py_func)
        args = node.args
        named = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
        found = node.returns if part == "return" else next((a for a in named if a.arg == part), None)
        return node_span(found, file_of(self.py_func)) if found is not None else self.span

    def _error(self, message: str, part: str, help: str = "") -> CompassError:
        """An error in the signature, at `part`."""
        return SignatureError(message, self.place_of(part), code="signature", help=help)

    def _read_signature(self) -> None:
        """Set `params` and `ret_type`. All mistakes of the signature are reported at once."""
        self._check_annotations_are_values()
        parameters = inspect.signature(self.py_func).parameters.values()
        parts: list[Callable[[], None]] = [*(functools.partial(self._parameter, p) for p in parameters), self._result]
        errors = []
        for part in parts:
            try:
                part()
            except CompassError as e:
                errors.append(e)
        if errors:
            raise together(errors)

    def _check_annotations_are_values(self) -> None:
        """Refuse all annotations at once where Python keeps only their texts."""
        postponed = inspect.unwrap(self.py_func).__code__.co_flags & __future__.annotations.compiler_flag
        if postponed and self.py_func.__annotations__:
            raise self._error(
                f"the types of {self.__name__} are strings: its file has `from __future__ import annotations`",
                next(iter(self.py_func.__annotations__)),
                "delete that import: it keeps annotations as text, and a kernel needs the types themselves",
            )

    def _parameter(self, p: inspect.Parameter) -> None:
        if p.kind is not p.POSITIONAL_OR_KEYWORD:
            raise self._error(
                f"parameter {p.name!r} of {self.__name__}: only plain parameters are supported",
                p.name,
                "write one parameter per value",
            )
        if p.annotation is p.empty:
            raise self._error(
                f"parameter {p.name!r} of {self.__name__} needs a type annotation",
                p.name,
                'write e.g. `a: S.ptr("int32", "global")` or `n: S.i32`',
            )
        kind = annotation_type(p.annotation)
        if kind is None:
            raise self._error(
                f"the annotation {_shown(p.annotation)} of parameter {p.name!r} of {self.__name__} is not a kernel type",
                p.name,
                "use an S dtype name or S.ptr(...); string annotations are not supported",
            )
        self.params.append(Param(p.name, kind, bool(getattr(p.annotation, "size", False)), p.default))

    def _result(self) -> None:
        annotation = inspect.signature(self.py_func).return_annotation
        if annotation in (inspect.Signature.empty, None):
            return
        kind = annotation_type(annotation)
        if kind is None:
            raise self._error(
                f"the annotation {_shown(annotation)} of the return value of {self.__name__} is not a kernel type",
                "return",
                "use an S dtype name or S.ptr(...); leave it out when nothing is returned",
            )
        self.ret_type = kind

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Inside a kernel that is being compiled: a call expression. Otherwise run in Python (PySim)."""
        if LOCAL.parser is not None:
            return LOCAL.parser.function(self, args, kwargs)
        __tracebackhide__ = True  # of pytest and IPython
        try:
            return self._run(self, args, kwargs)
        except CompassError as error:
            if LOCAL.tec is None:
                hide_package(error)
            raise


def chosen(kernel: object, target: str, sizes: Mapping[str, object] | None = None) -> Any:
    """The kernel that an object stands for on a target: kernels with constants to choose (`S.autotune`) stand for one of
    several, by the sizes that are known."""
    choose = getattr(kernel, "kernel_for", None)
    return kernel if choose is None else choose(target, sizes)


def _shown(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else repr(annotation)


class Macro:
    """A function whose body is inlined where it is called. Hygienic macros see only names captured at decoration."""

    __name__: str

    def __init__(self, py_func: Callable[..., object], run: Runner, hygienic: bool) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = cast(FunctionType, py_func)
        self._run = run
        self.hygienic = hygienic
        self.captured = captured_names(self.py_func) if hygienic else {}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if LOCAL.parser is not None:
            LOCAL.parser.macro(self, args, kwargs)
            return None
        return self._run(self, args, kwargs)


def mentioned_names(func: FunctionType) -> tuple[str, ...]:
    """The names in a function's own text that it does not define."""
    return (*func.__code__.co_names, *func.__code__.co_freevars)


def captured_names(func: FunctionType) -> dict[str, object]:
    """The names visible to a function from outside: its module's globals, overridden by its closure."""
    names = dict(func.__globals__)
    code = func.__code__
    for name, cell in zip(code.co_freevars, func.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # the enclosing function has not bound it yet
            continue
    return names


def captured(func: FunctionType, name: str) -> object:
    """What a name stands for outside of a function, now; None where that is nothing."""
    if name in func.__code__.co_freevars:
        assert func.__closure__ is not None
        return getattr(func.__closure__[func.__code__.co_freevars.index(name)], "cell_contents", None)
    return func.__globals__.get(name)

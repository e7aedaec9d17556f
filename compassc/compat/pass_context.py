"""Passes under the framework's names: contexts of a build, sequences, and passes of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from compass_core.errors import UsageError

from ..ir import IRModule, PrimFunc
from ..passes import DISABLED, KERNELS

Transform = Callable[[IRModule], IRModule]
_ADDED = "tir.add_lower_pass"
_ABOUT_SPEED = frozenset(
    f"tir.{name}"
    for name in """disable_vectorize debug_keep_trivial_loop LoopPartition UnrollLoop noalias disable_storage_rewrite
    Simplify HoistIfThenElse use_async_copy merge_static_smem""".split()
)
"""Settings that change what is made of a program, never what it computes: they have no effect here."""
_current: ContextVar[tuple[PassContext, ...]] = ContextVar("pass contexts", default=())


class PassContext:
    """`with PassContext(disabled_pass=[...], config={...}):` around calls of `lower` and `build`.

    `disabled_pass`: passes to leave out, by their names here or the framework's. `config`: `tir.add_lower_pass` is a list of
    (phase, pass), passes to run on what a schedule is lowered to, in the order of phases; settings about speed have no
    effect. `opt_level`: passes of the same level or below belong to a `Sequential`. UsageError for other settings.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        if instruments:
            raise UsageError("passes are not watched by instruments", code="compat-name", help="leave them out")
        self.opt_level = opt_level
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())
        self.config = dict(config or {})
        for key in self.config:
            if key != _ADDED and key not in _ABOUT_SPEED:
                raise UsageError(
                    f"there is no setting '{key}' of passes", code="compat-name", help=f"{_ADDED}, or leave it out"
                )
        from ..passes import pass_name

        left_out = {name.rpartition(".")[2] for name in self.disabled_pass}
        self._disabled = frozenset(pass_name(n) for n in left_out if KERNELS.key(n) not in KERNELS.ignored)
        self._tokens: list[Any] = []

    def __enter__(self) -> PassContext:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        self._tokens.append((_current.set((*_current.get(), self)), DISABLED.set(DISABLED.get() | self._disabled)))
        return self

    def __exit__(self, *error: object) -> None:
        own, left_out = self._tokens.pop()
        _current.reset(own)
        DISABLED.reset(left_out)

    @staticmethod
    def current() -> PassContext:
        """The innermost one, or one without settings."""
        return (_current.get() or (PassContext(),))[-1]


def lowered(module: IRModule) -> IRModule:
    """A module after the passes that the current context adds to lowering."""
    for _, added in sorted(PassContext.current().config.get(_ADDED, ()), key=lambda pair: int(pair[0])):
        module = added(module)
    return module


class Pass:
    """A function from module to module with a name: `opt_level` says from which level on a `Sequential` runs it."""

    def __init__(self, run: Transform, name: str, opt_level: int = 0) -> None:
        self.run, self.name, self.opt_level = run, name, opt_level

    @property
    def info(self) -> Pass:
        """Name and level."""
        return self

    def __call__(self, module: IRModule) -> IRModule:
        return self.run(module)


class Sequential(Pass):
    """Passes one after another: those whose level is that of the current context or below, and that it does not leave
    out."""

    def __init__(self, passes: Sequence[Transform], opt_level: int = 0, name: str = "sequential") -> None:
        super().__init__(self._all, name, opt_level)
        self.passes = list(passes)

    def _all(self, module: IRModule) -> IRModule:
        context = PassContext.current()
        for one in self.passes:
            name = getattr(one, "name", "")
            wanted = name in context.required_pass or getattr(one, "opt_level", 0) <= context.opt_level
            if wanted and name not in context.disabled_pass:
                module = one(module)
        return module


def _decorator(make: Callable[[Callable[..., Any]], Transform]) -> Callable[..., Any]:
    def decorator(
        pass_func: Callable[..., Any] | None = None,
        opt_level: int = 0,
        name: str | None = None,
        required: Sequence[str] | None = None,
    ) -> Any:
        def made(function: Callable[..., Any]) -> Pass:
            return Pass(make(function), name or function.__name__, opt_level)

        return made if pass_func is None else made(pass_func)

    return decorator


def _on_functions(function: Callable[..., PrimFunc]) -> Transform:
    return lambda module: module.map_functions(lambda f: function(f, module, PassContext.current()))


prim_func_pass = _decorator(_on_functions)
prim_func_pass.__doc__ = "Decorates a function of (function, module, context) as a pass."
module_pass = _decorator(lambda function: lambda module: function(module, PassContext.current()))
module_pass.__doc__ = "Decorates a function of (module, context) as a pass."


def Apply(ftransform: Callable[[PrimFunc], PrimFunc]) -> Pass:
    """The pass that calls a function with each function of a module."""
    return Pass(lambda module: module.map_functions(ftransform), "Apply")

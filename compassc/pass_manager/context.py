"""Contexts of passes, passes as objects, and sequences of them: the same for kernels and for Relay programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.pass_manager import AROUND, DISABLED, KERNELS, load_pass, pass_name, run_pipeline
from compassc.pass_manager.instruments import METHODS, PassInstrument, around

M = TypeVar("M")
Transform = Callable[[Any], Any]
"""From module to module, of kernels or of Relay functions."""
_OTHERS = ("compassc.relay.passes",)
"""Packages with the passes of other programs than kernels: each has a `FOLDER`, and `make(name)` gives a `Pass`."""
_ADDED = "tir.add_lower_pass"
KEEP_RECORD = "te.keep_schedule_record"
"""The setting of schedules that keep their states (`compassc.te.schedule.record`)."""
FALLBACK_DEVICE = "relay.fallback_device_type"
"""The setting of the device (its code) of what no annotation puts elsewhere; -1 for none."""
CONFIGS: dict[str, tuple[type, object]] = {
    "relay.FuseOps.link_params": (bool, False),
    "relay.FuseOps.max_depth": (int, 256),
    FALLBACK_DEVICE: (int, -1),
    "relay.ToMixedPrecision.keep_orig_output_dtype": (bool, False),
    "relay.backend.tir_converter": (str, "default"),
    "relay.backend.use_auto_scheduler": (bool, False),
    "relay.backend.use_meta_schedule": (bool, False),
    "relay.backend.use_meta_schedule_dispatch": (int, 0),
    "relay.ext.compass.options": (dict, {}),
    "relay.frontend.fill_span": (bool, False),
    "relay.remove_standalone_reshapes.enable": (bool, False),
    _ADDED: (list, []),
    KEEP_RECORD: (bool, False),
    "tir.HoistIfThenElse": (dict, {}),
    "tir.LoopPartition": (dict, {}),
    "tir.Simplify": (dict, {}),
    "tir.UnrollLoop": (dict, {}),
    "tir.debug_keep_trivial_loop": (bool, False),
    "tir.disable_storage_rewrite": (bool, False),
    "tir.disable_vectorize": (bool, False),
    "tir.merge_static_smem": (bool, False),
    "tir.noalias": (bool, True),
    "tir.use_async_copy": (bool, False),
}
"""Settings with their types and defaults. Those of `tir` but the list of passes, and of `relay.backend`, `relay.frontend` and
`remove_standalone_reshapes`, change what is made of a program, never what it computes: they have no effect here."""
_current: ContextVar[tuple[PassContext, ...]] = ContextVar("pass contexts", default=())
_own: dict[str, Pass] = {}
"""The passes that programs made, by name; of one name the last."""


class _NoSetting(UsageError, AttributeError):
    """There is no such setting of passes."""


class WrongSetting(UsageError, TypeError):
    """A setting of passes has a value of a type that it does not take."""


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass: `required` are passes of a `Sequential` that run before it."""

    name: str
    opt_level: int = 0
    required: tuple[str, ...] = ()


class PassContext:
    """`with PassContext(disabled_pass=[...], config={...}):` around calls of `lower` and `build`.

    `disabled_pass`: passes to leave out, by their names here or the framework's, or one's own. `config`: `tir.add_lower_pass`
    is a list of (phase, pass), passes to run on what a schedule is lowered to, in the order of phases; settings about speed
    have no effect. `opt_level`: passes of the same level or below belong to a `Sequential`, and those of `required_pass`.
    `instruments`: what watches passes (`tvm.ir.instrument`). UsageError for other settings, and values of other types.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[PassInstrument] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass, self.disabled_pass = list(required_pass or ()), list(disabled_pass or ())
        self.instruments = list(instruments or ())
        self.config = dict(config or {})
        for i in self.instruments:
            if not all(hasattr(i, name) for name in METHODS):
                raise WrongSetting(
                    f"a {type(i).__name__} is no instrument of passes",
                    code="compat-name",
                    help="decorate its class with tvm.ir.instrument.pass_instrument",
                )
        for key, value in self.config.items():
            _check_setting(key, value)
        left_out = {name.rpartition(".")[2] for name in self.disabled_pass} - _own.keys()
        self._disabled = frozenset(
            pass_name(n) for n in left_out if not _is_absent(n) and (_elsewhere(n) is None or _is_kernels(n))
        )
        self._tokens: list[Any] = []

    @staticmethod
    def list_configs() -> dict[str, dict[str, object]]:
        """The settings with their types and defaults."""
        return {name: {"type": kind.__name__, "default": value} for name, (kind, value) in CONFIGS.items()}

    def __enter__(self) -> PassContext:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        for i in self.instruments:
            i.enter_pass_ctx()
        tokens = (
            (_current, _current.set((*_current.get(), self))),
            (DISABLED, DISABLED.set(DISABLED.get() | self._disabled)),
            (AROUND, AROUND.set(self._watched if self.instruments else None)),
        )
        self._tokens.append(tokens)
        return self

    def __exit__(self, *error: object) -> None:
        for variable, token in self._tokens.pop():
            variable.reset(token)
        for i in self.instruments:
            i.exit_pass_ctx()

    def _watched(self, name: str, module: M, run: Callable[[M], M]) -> M:
        return around(self.instruments, PassInfo(name), module, run)

    @staticmethod
    def current() -> PassContext:
        """The innermost one, or one without settings."""
        return (_current.get() or (PassContext(),))[-1]


def _check_setting(key: str, value: object) -> None:
    """UsageError for a setting that does not exist, or a value that it does not take."""
    if key not in CONFIGS:
        raise _NoSetting(
            f"there is no setting '{key}' of passes", code="compat-name", help=help_for(key, list(CONFIGS), "settings")
        )
    kind = CONFIGS[key][0]
    given: dict[type, tuple[type, ...]] = {list: (list, tuple), bool: (bool, int), int: (int,), str: (str,)}
    if not isinstance(value, given.get(kind, (Mapping,))):
        raise WrongSetting(
            f"the setting '{key}' is a {kind.__name__}, got a {type(value).__name__}",
            code="compat-name",
            help="a list of (phase, pass)" if key == _ADDED else "",
        )


def lowered(module: M) -> M:
    """A module after the passes that the current context adds to lowering."""
    for _, added in sorted(PassContext.current().config.get(_ADDED, ()), key=lambda pair: int(pair[0])):
        module = added(module)
    return module


class Pass:
    """A function from module to module with a name: `opt_level` says from which level on a `Sequential` runs it. Others may
    require it by its name, unless it is `built_in`."""

    built_in = False

    def __init__(self, run: Transform, name: str, opt_level: int = 0, required: Sequence[str] | None = None) -> None:
        self.run, self.info = run, PassInfo(name, opt_level, tuple(required or ()))
        if not self.built_in:
            _own[name] = self

    def __call__(self, module: M) -> M:
        check_module(module, self.info.name)
        return around(PassContext.current().instruments, self.info, module, self.run)


def check_module(given: object, name: str) -> None:
    """UsageError if what a pass is given is no module."""
    if not hasattr(given, "functions"):
        raise WrongSetting(
            f"the pass {name} takes a module, got a {type(given).__name__}",
            code="compat-name",
            help="give it tvm.IRModule({'main': function}), and take ['main'] of what it returns",
        )


class Sequential(Pass):
    """Passes one after another: those whose level is that of the current context or below, or that it requires, and that it
    does not leave out; each behind those that it requires itself."""

    def __init__(
        self,
        passes: Sequence[Transform],
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool | None = None,
    ) -> None:
        super().__init__(self._all, name, opt_level, required)
        self.passes = list(passes)

    def _all(self, module: M) -> M:
        context = PassContext.current()
        for one in self.passes:
            info = one.info if isinstance(one, Pass) else PassInfo("")
            wanted = info.name in context.required_pass or info.opt_level <= context.opt_level
            if wanted and info.name not in context.disabled_pass:
                for name in info.required:
                    module = _named(name)(module)
                module = one(module)
        return module


def _named(name: str) -> Transform:
    """A pass that another one requires. UsageError where there is none of that name."""
    if name in _own:
        return _own[name]
    last = name.rpartition(".")[2]
    elsewhere = _elsewhere(last)
    if elsewhere is not None:
        made: Transform = elsewhere.make(last)
        return made
    found = pass_name(last)
    return lambda module: run_pipeline((found,), module)


def _is_absent(name: str) -> bool:
    """Whether a pass of that name is known not to exist here, for any programs."""
    folders = (KERNELS, *(import_module(package).FOLDER for package in _OTHERS))
    return any(folder.key(name) in folder.ignored for folder in folders)


def _elsewhere(name: str) -> ModuleType | None:
    """The package of passes on other programs that has a pass of that name, if one has."""
    for package in map(import_module, _OTHERS):
        with suppress(UsageError):
            load_pass(name, package.FOLDER)
            return package
    return None


def _is_kernels(name: str) -> bool:
    with suppress(UsageError):
        return bool(pass_name(name))
    return False


def decorator(make: Callable[[Callable[..., Any]], Transform], method: str) -> Callable[..., Any]:
    """What decorates functions as passes, and classes whose objects have `method`; `make` gives what a function does with a
    module."""

    def decorate(
        pass_func: Callable[..., object] | None = None,
        opt_level: int = 0,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool | None = None,
    ) -> object:
        def made(function: Callable[..., object]) -> object:
            called = name or function.__name__
            if isinstance(function, type):  # its objects are passes
                return lambda *args, **options: Pass(
                    make(getattr(function(*args, **options), method)), called, opt_level, required
                )
            return Pass(make(function), called, opt_level, required)

        return made if pass_func is None else made(pass_func)

    return decorate

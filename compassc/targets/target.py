"""A target: a kind with options, from text, JSON, a table or a name."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from compass_core import targets as configurations
from compass_core.errors import Note, UsageError
from compassc.targets.kind import Kind, Option, TargetError, kind, kinds

if TYPE_CHECKING:
    from compassc.te.machine import Machine

__all__ = ["Target", "TargetError"]

NPU = "compass"
_current: ContextVar[tuple[Target, ...]] = ContextVar("targets", default=())
_WORDS = {"1": True, "true": True, "0": False, "false": False}


class Target:
    """A kind with options.

    `Target("llvm -mcpu=haswell")`, `Target('{"kind": "cuda", "arch": "sm_86"}')`, `Target({"kind": "c"})`, or the name of an
    NPU configuration: `Target("X3P_1304")` is `compass -mcpu=X3P_1304`. As a context it is the current one. `host`: the
    target of the code that calls it. TargetError for unknown kinds and options, and for other types.
    """

    packed_object = True
    """Functions by name take targets."""

    def __init__(self, target: object, host: object = None) -> None:
        given = _given(target)
        own_host = given.pop("host", None)
        host = own_host if host is None else host
        self.kind: Kind = kind(str(given.pop("kind")))
        self.tag = str(given.pop("tag", ""))
        keys = given.pop("keys", None)
        self._keys = keys.split(",") if isinstance(keys, str) else list(keys or self.kind.keys)
        self.attrs: dict[str, Any] = _options(self.kind, given)
        if self.kind.name == NPU:
            self.attrs["mcpu"] = configurations.load(self.attrs["mcpu"]).name
        self.host: Target | None = None if host is None else Target.of(host)
        self._contexts: list[contextlib.ExitStack] = []

    @staticmethod
    def of(target: Any = None) -> Target:
        """The target that an argument means: itself, a description of it, or None for the current one, or else for the
        NPU of the switch COMPASS_TARGET."""
        if target is None:
            target = Target.current() or _default()
        return target if isinstance(target, Target) else Target(target)

    @property
    def keys(self) -> list[str]:
        """Words by which schedules can be chosen."""
        return list(dict.fromkeys([*filter(None, (str(self.attrs.get("device", "")),)), *self._keys]))

    @property
    def mcpu(self) -> str:
        """The processor; empty where the kind has none."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def model(self) -> str:
        """The device that costs are about; `unknown` where it is not said."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def libs(self) -> list[str]:
        """The libraries that operators may call."""
        return [*filter(None, str(self.attrs.get("libs", "")).split(","))]

    @property
    def arch(self) -> str:
        return str(self.attrs.get("arch", ""))

    @property
    def max_num_threads(self) -> int:
        """How many threads (TECs of an NPU) compute a block together; 1 where there are no blocks."""
        return int(self.attrs.get("max_num_threads", getattr(self.machine(), "tecs", 1)))

    def machine(self) -> Machine:
        """What schedules are lowered for."""
        return self.kind.machine(self)

    def with_host(self, host: object) -> Target:
        """The target with another host."""
        return Target(self, host)

    def get_target_device_type(self) -> int:
        """The code of the kind of device that runs what is built for it."""
        from compass_runtime.devices import KINDS

        return KINDS[self.kind.device]

    def export(self) -> dict[str, object]:
        """The target as a table, which `Target` takes."""
        made: dict[str, Any] = {"kind": self.kind.name, "tag": self.tag, "keys": self.keys, **self.attrs}
        return made if self.host is None else {**made, "host": self.host.export()}

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of all kinds."""
        return kinds()

    def __str__(self) -> str:
        words = [self.kind.name]
        for name, value in self.attrs.items():
            option = self.kind.option(name)
            if option is None or value != option.default or (self.kind.name == NPU and name == "mcpu"):
                words.append(f"-{name}={shlex.quote(str(value))}")
        return " ".join(words)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and (other.kind.name, other.attrs) == (self.kind.name, self.attrs)

    def __hash__(self) -> int:
        return hash((self.kind.name, *map(str, self.attrs.values())))

    def __enter__(self) -> Target:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        stack = contextlib.ExitStack()
        token = _current.set((*_current.get(), self))
        stack.callback(_current.reset, token)
        if self.kind.name == NPU:
            from compassc.language.info import current_target

            stack.enter_context(current_target(self.mcpu))
        self._contexts.append(stack)
        return self

    def __exit__(self, *error: object) -> None:
        self._contexts.pop().close()

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """The target of the innermost `with Target(...)`, or that a kernel is being built for."""
        stack = _current.get()
        if stack and stack[-1].kind.name != NPU:
            return stack[-1]
        from compassc.language.info import CompassInfo

        info = CompassInfo.current(allow_none)
        return None if info is None else Target(info.name)


def machine_of(target: object = None) -> Machine:
    """What schedules are lowered for, for a target (None: the current one, or that of the switch COMPASS_TARGET)."""
    return Target.of(target).machine()


def _default() -> str:
    from compassc.settings.options import canonical_target

    return f"{NPU} -mcpu={canonical_target(None)}"


def _given(target: object) -> dict[str, Any]:
    """Kind and options, as they are written."""
    if isinstance(target, Target):
        return {key: value for key, value in target.export().items() if key != "keys"}
    if isinstance(target, Mapping):
        if not isinstance(target.get("kind"), str):
            raise TargetError("a table that describes a target needs its 'kind'", code="target-type")
        return dict(target)
    if not isinstance(target, str):
        raise TargetError(f"a target is text, a table or a Target, not {type(target).__name__}", code="target-type")
    if target.lstrip().startswith("{"):
        try:
            return _given(json.loads(target))
        except json.JSONDecodeError as error:
            raise TargetError(f"the target is no JSON: {error}", code="target-type") from None
    words = shlex.split(target)
    if not words or words[0] == NPU or (words[0] not in kinds() and not words[0].startswith("-")):
        return _npu(target)
    return {"kind": words[0], **_written(words[1:])}


def _npu(text: str) -> dict[str, str]:
    """A target by the name of its configuration. TargetError that lists kinds, too, where it is neither."""
    from compassc.settings.options import canonical_target

    words = shlex.split(text)
    name = canonical_target(text)
    options = _written(words[1:]) if words[:1] == [NPU] else {}
    try:
        mcpu = configurations.load(name).name
    except UsageError as error:
        error.notes = (*error.notes, Note(f"kinds: {', '.join(kinds())}"))
        raise
    return {"kind": NPU, **options, "mcpu": mcpu}


def _written(words: list[str]) -> dict[str, str]:
    """Options from words: `-name=value`, `-name value`, and `-name` alone, which is true."""
    found: dict[str, Any] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-"):
            raise TargetError(f"'{word}' is no option of a target", code="target-option", help="write -name=value")
        name, equals, value = word.lstrip("-").partition("=")
        takes = not equals and left and not left[0].startswith("-")
        found[name] = value if equals else left.pop(0) if takes else True
    return found


def _options(declared: Kind, given: Mapping[str, object]) -> dict[str, Any]:
    """The options of a kind with their values."""
    options = {name: declared.option(name) for name in given}
    for name, option in options.items():
        if option is None:
            known = ", ".join(declared.options) or "none"
            raise TargetError(
                f"'{declared.name}' has no option '{name}'", code="target-option", help=f"its options: {known}"
            )
    defaults = {name: option.default for name, option in declared.options.items() if option.default is not None}
    values = {n: _value(declared, n, option, given[n]) for n, option in options.items() if option is not None}
    return {**defaults, **values}


def _value(declared: Kind, name: str, option: Option, value: object) -> Any:
    if isinstance(value, str) and option.type is bool and value.lower() in _WORDS:
        value = _WORDS[value.lower()]
    elif isinstance(value, str) and option.type is int and value.lstrip("-").isdecimal():
        value = int(value)
    kind = option.type.__name__
    if isinstance(value, option.type) and (option.type is not int or not isinstance(value, bool)):
        if option.allows(value):
            return value
        if isinstance(option.allowed, range):
            kind = f"number from {option.allowed.start} to {option.allowed[-1]}"
        else:
            kind = f"text of the form {option.allowed}"
    raise TargetError(
        f"option '{name}' of '{declared.name}' is a {kind}, got {value!r}", code="target-option", help=option.help
    )

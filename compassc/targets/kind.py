"""Kinds of targets: what each declares, and the registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule
    from compassc.targets.target import Target
    from compassc.te.machine import Machine


class TargetError(UsageError, ValueError):
    """There is no such target, kind or option."""


@dataclass(frozen=True)
class Option:
    """One option of a kind: `type` is str, int or bool; `default` None where it has none. `allowed`: the numbers that it may
    be, or a pattern of the whole text."""

    type: type
    default: Any
    help: str
    allowed: range | str | None = None

    def allows(self, value: Any) -> bool:
        if isinstance(self.allowed, str):
            return re.fullmatch(self.allowed, value) is not None
        return self.allowed is None or value in self.allowed


COMMON: Mapping[str, Option] = {
    "device": Option(str, None, "what schedules are chosen by, first of all keys"),
    "model": Option(str, None, "the device that costs are about"),
    "libs": Option(str, None, "libraries that operators may call"),
    "from_device": Option(int, None, "the device whose attributes are those of the target"),
}
"""Options of all kinds, which change nothing of what is built."""


@dataclass(frozen=True)
class Kind:
    """One kind of target.

    `device`: the kind of device whose arrays its modules take. `machine`: the machine of a target, for which schedules are
    lowered. `generate`: the code of a lowered module, as a runtime module.
    """

    name: str
    device: str
    help: str
    machine: Callable[[Target], Machine]
    generate: Callable[[IRModule, Target], Module]
    keys: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)

    def option(self, name: str) -> Option | None:
        """The declaration of an option; None where it has none of that name."""
        return self.options.get(name) or COMMON.get(name)


_HOMES = {
    "compass": "compassc.targets.npu",
    "c": "compassc.targets.host",
    "llvm": "compassc.targets.host",
    "cuda": "compassc.targets.cuda",
    **dict.fromkeys(
        "opencl rocm vulkan metal webgpu nvptx sdaccel aocl hexagon ext_dev stackvm hybrid".split(),
        "compassc.targets.devices",
    ),
}
"""The kinds that come with this package, and the modules that register them when they are imported."""
_KINDS: dict[str, Kind] = {}


def register_kind(declared: Kind) -> Kind:
    """Makes a kind known, or replaces the one of its name. Its generator is found as `target.build.NAME`, too, unless
    another one has that name."""
    from compass_runtime.codegens import PREFIX, register_code_generator
    from compass_runtime.packed import get_global_func

    def generate(module: IRModule, target: Target | None = None) -> Module:
        from compassc.targets.target import Target

        return kind(declared.name).generate(module, Target.of(declared.name if target is None else target))

    _KINDS[declared.name] = declared
    if get_global_func(PREFIX + declared.name, allow_missing=True) is None:
        register_code_generator(declared.name, generate)
    return declared


def kinds() -> list[str]:
    """The names of all kinds."""
    return sorted({*_HOMES, *_KINDS})


def kind(name: str) -> Kind:
    """The kind of that name. TargetError with the known ones when there is none."""
    if name not in _KINDS and name in _HOMES:
        import_module(_HOMES[name])
    if name not in _KINDS:
        raise TargetError(
            f"there is no kind of target '{name}'", code="unknown-target", help=help_for(name, kinds(), "kinds")
        )
    return _KINDS[name]

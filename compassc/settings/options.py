"""Options of the Python API from the environment: `CPS_DSL`, options separated by `;`, and the target override.

    CPS_DSL="debug;random_seed=7" python test_kernel.py

They are read when they are needed. An unknown option is a ValueError that lists the options.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any

from compass_core import switches
from compass_core.dataclass import dataclass
from compass_core.errors import ArgumentError, UsageError

from .logger import logger

VARIABLE = "CPS_DSL"
TARGET_VARIABLE = "CPS_TVM_GBUILDER_TARGET"
DUMP_VARIABLE = "CPS_TVM_RUNTIME_DUMP"
_OPTIONS = {
    "debug": ("d dbg debug", "compile with -O0 -g; write inputs and outputs to files"),
    "emu": ("e emu emulate emulator emulater", "write inputs and outputs to files"),
    "profile": ("p prf profile profiler profilor", "profile every run"),
    "random_pause": ("rp random_pause random-pause randompause", "PySim pauses at random"),
    "asm": ("a asm assembly", "write the assembly text beside the object"),
    "random_seed": ("rs random_seed random-seed randomseed", "seed of testing.rand: random_seed=NUMBER"),
    "rpc": ("r rpc", "run remotely: rpc or rpc=KEY"),
}
_NO_REMOTE = "kernels run on the simulator of this machine"
WITHOUT_EFFECT = {
    "CPS_TVM_DEVICE_COMPILER": _NO_REMOTE,
    "CPS_TVM_DISABLE_PASS_FILE": "testing.run_op_case is not available",
    "CPS_TVM_RPC_KEY": _NO_REMOTE,
    "CPS_TVM_RPC_PRIORITY": _NO_REMOTE,
    "CPS_TVM_RPC_SERVER_NOT_DOWN": _NO_REMOTE,
    "CPS_TVM_RPC_TRACKER_IP": _NO_REMOTE,
    "CPS_TVM_RPC_TRACKER_PORT": _NO_REMOTE,
    "CPS_TVM_RUNTIME_SPM": "it sets the memory of the vendor's simulator in its performance mode",
    "CPS_TVM_VALID_RPC_KEYS": _NO_REMOTE,
}
"""Variables of the vendor's packages that change nothing here, and why."""
_BY_SPELLING = {spelling: name for name, (spellings, _) in _OPTIONS.items() for spelling in spellings.split()}


class OptionError(UsageError, ValueError):
    """`CPS_DSL` has an option that does not exist, or one whose value is missing or wrong."""


@dataclass(frozen=True)
class ControlOptions:
    """The options in force."""

    is_debug: bool = False
    is_emu: bool = False
    is_profile: bool = False
    is_random_pause: bool = False
    is_asm: bool = False
    is_rpc: bool = False
    random_seed: int | None = None
    rpc_key: str | None = None

    @property
    def random_seed_is_set(self) -> bool:
        return self.random_seed is not None

    @property
    def dumps(self) -> bool:
        """Whether inputs and outputs are written to files."""
        return self.is_debug or self.is_emu


def control_options() -> ControlOptions:
    """The options in `CPS_DSL` as it is set now."""
    text = os.environ.get(VARIABLE)
    return _options_in(text) if text else _NO_OPTIONS


_NO_OPTIONS = ControlOptions()


def _options_in(text: str) -> ControlOptions:
    values: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        spelling, equals, value = item.partition("=")
        name = _BY_SPELLING.get(spelling.strip().lower())
        if name is None or (equals and name not in ("random_seed", "rpc")):
            raise OptionError(f"{VARIABLE}: unknown option '{item}'", code="bad-option", notes=_help())
        if name == "random_seed":
            if not value.strip().isdecimal():
                raise OptionError(
                    f"{VARIABLE}: '{item}' needs a number: random_seed=7", code="bad-option", notes=_help()
                )
            values["random_seed"] = int(value)
            continue
        values[f"is_{name}"] = True
        if name == "rpc":
            values["rpc_key"] = value or os.environ.get("CPS_TVM_RPC_KEY")
    return ControlOptions(**values)


def dumps_tensors() -> bool:
    """Whether the variable CPS_TVM_RUNTIME_DUMP asks for the tensors of every run."""
    return os.environ.get(DUMP_VARIABLE, "").lower() in ("1", "true", "on", "yes")


def announce() -> None:
    """Tell, once for each setting of the environment, which options are in force and which variables do nothing."""
    _announce(control_options(), tuple(name for name in WITHOUT_EFFECT if name in os.environ))


@functools.cache
def _announce(options: ControlOptions, idle: tuple[str, ...]) -> None:
    values = {
        name: value for name, value in dataclasses.asdict(options).items() if value is not None and value is not False
    }
    if values:
        told = (name.removeprefix("is_") if value is True else f"{name}={value}" for name, value in values.items())
        logger.info("%s: %s", VARIABLE, "; ".join(told))
    for name in idle:
        logger.warning("%s has no effect: %s", name, WITHOUT_EFFECT[name])


def __getattr__(name: str) -> object:
    """`control_option`, under which the vendor's programs import what the environment says."""
    if name == "control_option":
        return control_options()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _help() -> tuple[str, ...]:
    return tuple(f"{' | '.join(spellings.split())}: {what}" for spellings, what in _OPTIONS.values())


def canonical_target(target: object) -> str:
    """The configuration's name that a target argument means.

    `X2_1204`, `compass -mcpu=X2_1204`, `compass`, or an object with `mcpu`, `name` or text of that form; the variable
    CPS_TVM_GBUILDER_TARGET and an RPC key's second field override it. None and a bare `compass` are the default target, the switch COMPASS_TARGET.
    UsageError for other types.
    """
    override = os.environ.get(TARGET_VARIABLE)
    key = control_options().rpc_key
    if override or (key and "," in key):
        return override or str(key).split(",")[1].strip()
    if target is None:
        return switches.TARGET.get()
    if isinstance(target, str):
        text = target
    elif isinstance(name := getattr(target, "mcpu", None) or getattr(target, "name", None), str):
        text = name
    else:
        raise ArgumentError(f"a target is text or a target object, not {type(target).__name__}", code="target-type")
    words = text.split()
    if words[:1] != ["compass"]:
        return text
    given = [word.removeprefix("-mcpu=") for word in words if word.startswith("-mcpu=")]
    return given[-1] if given else switches.TARGET.get()

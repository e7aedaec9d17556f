"""Every switch of the toolchain, declared once: name, default, parser, meaning.

A switch is read live, never at import, in one order: the command-line flag, the environment variable `COMPASS_NAME`,
the config file, the default. The config file has lines `name = value` (the name without prefix, in lower case) and
`#` comments; it is `$COMPASS_CONFIG`, else `$XDG_CONFIG_HOME/compass/config`, else `~/.config/compass/config`. An
unknown name or a malformed value is an error wherever it comes from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from compass_core.dataclass import dataclass
from compass_core.errors import Span, UsageError
from compass_core.errors.suggest import help_for

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
PREFIX = "COMPASS_"


@dataclass(frozen=True)
class Setting(Generic[T_co]):
    """The value of a switch now and the place it comes from (`flag`, `environment`, `FILE:LINE` or `default`)."""

    value: T_co
    origin: str
    text: str


@dataclass(frozen=True)
class Switch(Generic[T_co]):
    """One switch. `parse` turns its text into a value and raises ValueError saying what is expected."""

    name: str
    default: str
    parse: Callable[[str], T_co]
    help: str

    @property
    def variable(self) -> str:
        """The name of its environment variable."""
        return PREFIX + self.name

    def get(self, flag: str | None = None) -> T_co:
        """The value now; `flag` is the text given on the command line, None when there was none."""
        return self.setting(flag).value

    def setting(self, flag: str | None = None) -> Setting[T_co]:
        """The value now with its origin; UsageError when the text in force is malformed."""
        if flag is not None:
            return self._parsed(flag, "flag", f"option --{self.name.lower().replace('_', '-')}", None)
        if (text := os.environ.get(self.variable)) is not None:
            return self._parsed(text, "environment", f"environment variable {self.variable}", None)
        if (entry := _config_entries().get(self.name)) is not None:
            text, span = entry
            return self._parsed(text, str(span), self.name.lower(), span)
        return self._parsed(self.default, "default", self.variable, None)

    def _parsed(self, text: str, origin: str, what: str, span: Span | None) -> Setting[T_co]:
        try:
            return Setting(self.parse(text), origin, text)
        except ValueError as error:
            raise UsageError(
                f"bad value '{text}' for {what}: {error}", span, code="bad-switch", help=self.help
            ) from None


def _words(words: Mapping[str, T]) -> Callable[[str], T]:
    """A parser of one word out of a fixed set, letter case apart."""

    def parse(text: str) -> T:
        if text.casefold() not in words:
            raise ValueError(f"expected one of {', '.join(words)}")
        return words[text.casefold()]

    return parse


def _boolean(text: str) -> bool:
    spelled = {"1": True, "on": True, "true": True, "yes": True, "0": False, "off": False, "false": False, "no": False}
    return _words(spelled)(text)


def _path(text: str) -> Path | None:
    """A path with `~` expanded; empty text means that no path is given."""
    return Path(text).expanduser() if text else None


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise ValueError("expected a number of seconds above 0")
    return value


def _limit(text: str) -> float:
    return 0.0 if text.strip() == "0" else _seconds(text)


def _megabytes(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expected a whole number of megabytes")
    return int(text)


PYSIM_CHECKS = ("warn", "uninit", "partial", "race", "overflow", "division")


def _checks(text: str) -> frozenset[str]:
    """Names separated by commas; `all` and `none`."""
    groups = {"all": PYSIM_CHECKS, "none": ()} | {name: (name,) for name in PYSIM_CHECKS}
    found: set[str] = set()
    for word in filter(None, (w.strip().casefold() for w in text.split(","))):
        if word not in groups:
            raise ValueError(f"expected names of {', '.join(groups)}")
        found.update(groups[word])
    return frozenset(found)


def _times(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise ValueError("expected a whole number from 1 to 1000000")
    return int(text)


def _assumptions(text: str) -> frozenset[str]:
    """Names of readings of AIFF registers, separated by commas."""
    names = frozenset(filter(None, (word.strip().casefold() for word in text.split(","))))
    if not names:
        return names
    from compass_core.aiff.rules import ASSUMPTIONS

    if wrong := names - ASSUMPTIONS.keys():
        raise ValueError(f"there is no {min(wrong)}; expected names of {', '.join(ASSUMPTIONS)}")
    return names


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expected a whole number")
    return int(text)


def _threads(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expected a whole number of threads")
    return int(text)


def _target(text: str) -> str:
    if not text:
        raise ValueError("expected the name of a target")
    return text


HOST_CPUS = ("native", "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")

CLANG = Switch("CLANG", "", _path, "the clang program that compiles kernels; empty: look for one")
VENDOR_TOOLS = Switch(
    "VENDOR_TOOLS", "", _path, "folder of the vendor's aipuocc and aipugb (`--toolchain vendor`); empty: look on PATH"
)
CACHE_DIR = Switch("CACHE_DIR", "", _path, "folder of the compile cache; empty: the user's cache folder")
HOST_CPU = Switch(
    "HOST_CPU",
    "native",
    _words({name: name for name in HOST_CPUS}),
    f"the processor that code for this machine may be compiled for: {', '.join(HOST_CPUS)}",
)
STATE_DIR = Switch(
    "STATE_DIR", "", _path, "folder of what tells own builds from foreign files; empty: the user's folder for state"
)
CACHE = Switch("CACHE", "1", _boolean, "whether compiled kernels are reused (1) or always compiled anew (0)")
CACHE_LIMIT = Switch("CACHE_LIMIT", "512", _megabytes, "megabytes to which `compassc cache prune` shrinks the cache")
TARGET = Switch("TARGET", "X2_1204", _target, "NPU configuration when none is given (`compassc targets` lists them)")
COLOR = Switch(
    "COLOR", "auto", _words({"auto": "auto", "always": "always", "never": "never"}), "colours: auto, always or never"
)
ERROR_FORMAT = Switch(
    "ERROR_FORMAT", "text", _words({"text": "text", "json": "json"}), "errors as text, or as JSON objects, one a line"
)
TRACEBACK = Switch("TRACEBACK", "0", _boolean, "whether an error also shows the Python traceback")
TIMEOUT = Switch("TIMEOUT", "60", _seconds, "time limit of one simulated run, in seconds")
AIFF_ASSUME = Switch(
    "AIFF_ASSUME",
    "",
    _assumptions,
    "readings of AIFF registers that no program has confirmed and runs may rely on, separated by commas",
)
TENSOR_MEMORY = Switch(
    "TENSOR_MEMORY", "1024", _megabytes, "megabytes that the tensors of an aipu.bin may take when it is run"
)
BUDGET = Switch("BUDGET", "1", _times, "how many times the usual bytes, operations and nodes reading a file may cost")
TUNING = Switch("TUNING", "", _path, "folder of tuning records that builds take the best programs from; empty: none")
THREADS = Switch("THREADS", "0", _threads, "threads of parallel loops on the host; 0: one for each processor")
EMBED_SOURCE = Switch(
    "EMBED_SOURCE", "1", _boolean, "whether objects keep their C text (1), which checks, profiles and debuggers need"
)
PYSIM_CHECK = Switch(
    "PYSIM_CHECK", "warn", _checks, f"what PySim looks for: names of {', '.join(PYSIM_CHECKS)}, or all or none"
)
PYSIM_SINGLE_THREAD = Switch(
    "PYSIM_SINGLE_THREAD", "0", _boolean, "whether PySim runs the TECs one after another in the calling thread"
)
PYSIM_PAUSE = Switch(
    "PYSIM_PAUSE", "0", _seed, "seed of random pauses of PySim's TECs, which bring races to light; 0: no pauses"
)
PYSIM_TIMEOUT = Switch("PYSIM_TIMEOUT", "0", _limit, "time limit of one PySim run, in seconds; 0: none")
RPC_TOKENS = Switch(
    "RPC_TOKENS", "", _path, "file of the token for remote sessions; empty: the one in the user's folder for state"
)
RPC_CA = Switch("RPC_CA", "", _path, "file of certificates that remote servers are known by; empty: loopback alone")

SWITCHES: tuple[Switch[object], ...] = (
    CLANG,
    VENDOR_TOOLS,
    HOST_CPU,
    CACHE_DIR,
    STATE_DIR,
    CACHE,
    CACHE_LIMIT,
    TARGET,
    COLOR,
    ERROR_FORMAT,
    TRACEBACK,
    TIMEOUT,
    AIFF_ASSUME,
    TENSOR_MEMORY,
    BUDGET,
    THREADS,
    EMBED_SOURCE,
    PYSIM_CHECK,
    PYSIM_SINGLE_THREAD,
    PYSIM_PAUSE,
    PYSIM_TIMEOUT,
    TUNING,
    RPC_TOKENS,
    RPC_CA,
)
_CONFIG_VARIABLE = PREFIX + "CONFIG"


def config_path() -> Path:
    """The config file in force; it need not exist."""
    return Path(_config_file())


def _config_file() -> str:
    """The same as text: every switch that is read asks, and every start of a job reads two."""
    named = os.environ.get(_CONFIG_VARIABLE)
    return os.path.expanduser(named or (os.environ.get("XDG_CONFIG_HOME") or "~/.config") + "/compass/config")


def _config_entries() -> dict[str, tuple[str, Span]]:
    """Switch name -> (text, position) of the config file; empty when there is none."""
    path = _config_file()
    try:
        os.stat(path)  # most have none, and opening a file that is not there takes longer
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the config file '{path}': {error}", code="bad-config") from None
    entries: dict[str, tuple[str, Span]] = {}
    for number, line in enumerate(lines, 1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        key, equals, value = content.partition("=")
        span = Span(path, number)
        if not equals:
            raise UsageError("expected 'name = value'", span, code="bad-config")
        entries[_known(key.strip().upper(), key.strip(), [s.name.lower() for s in SWITCHES], span)] = (
            value.strip(),
            span,
        )
    return entries


def _known(name: str, spelled: str, names: list[str], span: Span | None) -> str:
    """`name` when a switch has it; else a UsageError about the word the user wrote, with the nearest of `names`."""
    if any(switch.name == name for switch in SWITCHES):
        return name
    raise UsageError(
        f"unknown switch '{spelled}'", span, code="unknown-switch", help=help_for(spelled, names, "switches")
    )


def check() -> None:
    """UsageError when the environment misspells a switch, the config file names one that does not exist, or either gives
    it a bad value. Other variables that begin as ours do are those of other programs."""
    names = [switch.variable for switch in SWITCHES] + [_CONFIG_VARIABLE]
    for variable in os.environ:
        if variable.startswith(PREFIX) and variable not in names:
            _refuse_misspelt(variable, names)
    for _ in settings():
        continue


def _refuse_misspelt(variable: str, names: list[str]) -> None:
    """UsageError when a variable that is no switch is nearly one."""
    import difflib

    name = variable.removeprefix(PREFIX)
    if difflib.get_close_matches(name, [known.removeprefix(PREFIX) for known in names], 1, 0.8):
        _known(name, variable, names, None)


def settings() -> Iterator[tuple[Switch[object], Setting[object]]]:
    """Every switch with its value and origin, in the order of declaration."""
    for switch in SWITCHES:
        yield switch, switch.setting()

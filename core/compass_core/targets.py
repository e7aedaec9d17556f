"""The NPU configurations: one YAML file each in the folder `configurations`, and the loader.

The files are flat (`name: value` lines and `#` comments), so that reading one needs no YAML package on the hot path;
they are YAML all the same. Sizes are in bytes.
"""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, UsageError
from compass_core.errors.suggest import nearest


@dataclass(frozen=True)
class Target:
    """One NPU configuration. The field names are the keys of its file."""

    name: str
    version: str
    """Generation: the part of the name before `_`."""
    isa: int
    """ISA number of aipu.bin's device word: 5 X2, 6 X3."""
    device_word: int
    """The 32-bit device word of aipu.bin; the same for all multi-core variants."""
    define: str
    """The macro that makes `compass/dsl.h` choose this generation."""
    events: int
    """How many events a TEC can allocate."""
    vector_bits: int
    cores: int
    tecs: int
    """TECs of one core; each runs the kernel once."""
    lsram_bytes: int
    """Local SRAM of one TEC."""
    gsram_bytes: int
    """SRAM that the TECs of a core share."""
    dma_max_width: int
    """Limits of one DMA descriptor, in bytes."""
    dma_max_stride: int
    dma_max_transfer: int

    @property
    def mcpu(self) -> str:
        """The name without the multi-core suffix, as the vendor's C compiler wants it."""
        return self.name.partition("MP")[0]

    @property
    def vector_bytes(self) -> int:
        return self.vector_bits // 8


_LINE = re.compile(r"(?P<key>\w+): +(?P<value>[^#]+?) *(?:#.*)?")
_UNSUPPORTED_GENERATIONS = ("X1", "Z1", "Z2", "Z3")


@cache
def folder() -> Path:
    """Where the target files lie: beside this module, so that a program runs without the compiler."""
    return Path(__file__).with_name("configurations")


def names() -> list[str]:
    """The names of all targets, sorted."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def load(name: str) -> Target:
    """The target called `name`. UsageError that lists the valid names when there is none."""
    return _in(folder(), name)


@lru_cache(maxsize=32)
def _in(place: Path, name: str) -> Target:
    path = place / f"{name}.yaml"
    if re.fullmatch(r"\w+", name) is None or not path.is_file():
        raise _unknown(name)
    return read(path)


class NoSuchGeneration(UsageError, AssertionError):
    """A target of a generation that the language does not have."""


def _unknown(name: str) -> UsageError:
    valid = names()
    listed = f"valid targets: {', '.join(valid)}"
    generation = name.partition("_")[0].upper()
    if generation in _UNSUPPORTED_GENERATIONS:
        message = f"target '{name}' is not supported: the language has no generation {generation}"
        return NoSuchGeneration(message, code="unknown-target", notes=(listed,), help="choose an X2 or X3 target")
    near = nearest(name, valid)
    help = f"did you mean '{near}'?" if near else "`compassc targets` describes them"
    return UsageError(f"unknown target '{name}'", code="unknown-target", notes=(listed,), help=help)


@lru_cache(maxsize=32)
def read(path: Path) -> Target:
    """The target described by a file; CompassError at the line that is wrong."""
    types = {field.name: field.type for field in fields(Target)}
    values: dict[str, str | int] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        span = Span(str(path), number)
        match = _LINE.fullmatch(line)
        if match is None or match["key"] not in types:
            raise CompassError("expected 'key: value' with a key that targets have", span, code="bad-target-file")
        values[match["key"]] = _value(match["value"], types[match["key"]] == "int", span)
    if missing := sorted(types.keys() - values.keys()):
        raise CompassError(f"keys are missing: {', '.join(missing)}", Span(str(path), 1), code="bad-target-file")
    return Target(**values)  # type: ignore[arg-type]


def _value(text: str, is_int: bool, span: Span) -> str | int:
    if not is_int:
        return text
    try:
        return int(text, 0)
    except ValueError:
        raise CompassError(f"expected a whole number, got '{text}'", span, code="bad-target-file") from None

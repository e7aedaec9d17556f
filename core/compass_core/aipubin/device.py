"""Target names (`X2_1204`, `X3P_1304MP2`) and their device words in aipu.bin."""

from __future__ import annotations

import re

from compass_core.aipubin.fields import AipuBinError

TARGETS = frozenset(
    "Z1_0904 Z1_1002 Z1_0701 Z1_0701_P Z2_1104 Z2_0901 Z2_1002 Z2_1004 Z3_1204 Z3_1104 Z3_1002 Z3_0901 X1_1204 X2_1204 "
    "Z5_0901 X3_1304 X3_1302 X3_1202 X3_1204 X3P_1304 X3P_1302 X3P_1202 X3P_1204 X3S_1304".split()
)
"""Names a driver accepts, without the multi-core suffix."""

_NAME = re.compile(r"([XZ])([1-6])([PS]?)_(\d{4})(MP[1-9]\d*)?$")
_REVISIONS = {"": 0, "P": 1, "S": 2}


def base_name(target: str) -> str:
    """The target without its multi-core suffix: `X2_1204MP3` -> `X2_1204`."""
    return re.sub(r"MP\d+$", "", target)


def device_word(target: str) -> int:
    """The device word of a target name; AipuBinError when no driver would accept the name."""
    match = _NAME.match(target)
    if not match or base_name(target) not in TARGETS:
        raise AipuBinError(
            f"unknown target '{target}'",
            code="target-not-found",
            help="known: " + ", ".join(sorted(t for t in TARGETS if t[0] == "X")),
        )
    family, number, revision, config, _ = match.groups()
    isa = int(number) + (3 if family == "X" else 0)
    return _REVISIONS[revision] << 28 | isa << 16 | int(config)


def target_name(word: int) -> str:
    """The target name that a device word encodes, whether or not it is a known target."""
    isa, config = word >> 16 & 0xF, word & 0xFFFF
    if isa > 3:
        suffix = {1: "P", 2: "S"}.get(word >> 28, "")
        return f"X{isa - 3}{suffix}_{config:04d}"
    return f"Z{isa}_{config:04d}"


def detailed_target(word: int, comment: str) -> str:
    """The target of a file: the device word's name, refined (multi-core) by `target:NAME;` in the comment."""
    name = target_name(word)
    text, end, _ = comment.partition("target:")[2].partition(";")
    return text if end and name in text else name


def is_x3(target: str) -> bool:
    """Whether the target's control blocks have the X3 form."""
    return target.startswith("X3")


def core_count(target: str) -> int:
    """Cores of a (detailed) target name."""
    match = re.search(r"MP(\d+)$", target)
    return int(match.group(1)) if match else 1

"""The machine that kernels are compiled for and simulated on: its triple and the CPU features code may use."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from functools import lru_cache

from compass_core import switches
from compass_core.dataclass import dataclass
from compass_core.elf.elf64 import section
from compass_core.errors import UsageError

_X86 = frozenset(
    "sse4_1 sse4_2 popcnt avx avx2 fma f16c abm bmi1 bmi2 movbe aes vaes pclmulqdq vpclmulqdq gfni sha_ni adx "
    "avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg "
    "avx512_vpopcntdq avx512_bf16 avx512_fp16 avx_vnni".split()
)
_RELEVANT = _X86 | frozenset("fp asimd fphp asimdhp asimdrdm asimddp atomics crc32 sve sve2 i8mm bf16".split())
"""Features, as the kernel names them in /proc/cpuinfo, that `-march=native` may turn into instructions."""
_V2 = frozenset(("sse4_1", "sse4_2", "popcnt"))
_V3 = _V2 | frozenset(("avx", "avx2", "fma", "f16c", "abm", "bmi1", "bmi2", "movbe"))
_LEVELS = {
    "x86-64": frozenset[str](),
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V3 | frozenset(("avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl")),
}
"""The relevant features of the levels that compilers know."""
_NAMES = {"sse4_1": "sse4.1", "sse4_2": "sse4.2", "abm": "lzcnt", "bmi1": "bmi", "pclmulqdq": "pclmul", "sha_ni": "sha"}
"""clang's names of features that have others there, not only without `_`."""

STAMP_SECTION = ".compass.host"


def triple() -> str:
    """The triple of this machine as clang spells it, for instance `x86_64-unknown-linux-gnu`."""
    return f"{platform.machine()}-unknown-{platform.system().lower()}-gnu"


def is_x86() -> bool:
    """Whether this machine has x86-64 code."""
    return platform.machine() in ("x86_64", "AMD64")


def num_threads() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


@lru_cache(maxsize=1)
def cpu_features() -> tuple[str, ...]:
    """The relevant features of this CPU, sorted; empty where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            for line in lines:  # the first CPU speaks for all of them
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return tuple(sorted(_RELEVANT.intersection(value.split())))
    except OSError:
        return ()
    return ()


def march() -> str:
    """What clang is told about the processor (`-march`), as the switch HOST_CPU says. UsageError for one that this
    machine is not: what is compiled runs here."""
    level = switches.HOST_CPU.get()
    if level == "native":
        return level
    if not is_x86():
        raise UsageError(
            f"this machine, {platform.machine()}, is no '{level}' (COMPASS_HOST_CPU)",
            code="bad-switch",
            help="say native",
        )
    if missing := missing_features(" ".join(_LEVELS[level])):
        raise UsageError(
            f"this machine is no '{level}' (COMPASS_HOST_CPU): it lacks {', '.join(missing)}",
            code="bad-switch",
            help="say native, or a lower level",
        )
    return level


def options() -> list[str]:
    """What clang is told about the processor, for kernels. This one's features are named as a level and what it has
    beyond that: each function notes its features, and what `native` stands for is a hundred of them."""
    level, features = march(), _X86.intersection(cpu_features())
    if level != "native" or not features or not is_x86():
        return [f"-march={level}"]
    level, known = max(
        ((name, has) for name, has in _LEVELS.items() if has <= features), key=lambda found: len(found[1])
    )
    more = (_NAMES.get(feature, feature.replace("_", "")) for feature in sorted(features - known))
    return [f"-march={level}", "-mtune=native", *(f"-m{name}" for name in more)]


def code_features() -> tuple[str, ...]:
    """The relevant features that code compiled now may use, sorted: this CPU's, or those of the level in force."""
    level = march()
    return cpu_features() if level == "native" else tuple(sorted(_LEVELS[level]))


def missing_features(needed: str) -> list[str]:
    """The features of the feature string `needed` (names separated by blanks) that this CPU lacks."""
    return sorted(set(needed.split()).difference(cpu_features()))


@dataclass(frozen=True)
class HostStamp:
    """The host that an object was compiled for: triple, and CPU features separated by blanks."""

    triple: str
    features: str


def current() -> HostStamp:
    """The stamp of objects that are compiled now on this machine, for this machine."""
    return HostStamp(triple(), " ".join(code_features()))


def stamp_source() -> list[str]:
    """Lines of C that put the stamp of this machine into the object, in a section that is not loaded."""
    stamp = current()
    return [
        f'__asm__(".pushsection {STAMP_SECTION},\\"\\",@progbits\\n"',
        f'        ".asciz \\"{stamp.triple}\\"\\n.asciz \\"{stamp.features}\\"\\n.popsection\\n");',
    ]


def read_stamp(elf: bytes) -> HostStamp | None:
    """The stamp inside an ELF64 object; None when the object has none or is not such an object."""
    content = section(elf, STAMP_SECTION)
    parts = (content or b"").decode("ascii", "replace").split("\0")
    return HostStamp(parts[0], parts[1]) if len(parts) > 1 else None


def features_of(objects: Iterable[bytes]) -> str:
    """The CPU features, separated by blanks, that any of the objects may use, as their stamps say; an object without a
    stamp counts as compiled now."""
    stamps = [read_stamp(elf) or current() for elf in objects]
    return " ".join(sorted({feature for stamp in stamps for feature in stamp.features.split()}))

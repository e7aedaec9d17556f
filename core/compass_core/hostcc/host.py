"""The machine that kernels are compiled for and simulated on: its triple and the CPU features code may use."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import lru_cache

from compass_core.elf.elf64 import section

_RELEVANT = frozenset(
    "sse4_1 sse4_2 popcnt avx avx2 fma f16c abm bmi1 bmi2 movbe aes vaes pclmulqdq vpclmulqdq gfni sha_ni adx "
    "avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg "
    "avx512_vpopcntdq avx512_bf16 avx512_fp16 avx_vnni "
    "fp asimd fphp asimdhp asimdrdm asimddp atomics crc32 sve sve2 i8mm bf16".split()
)
"""Features, as the kernel names them in /proc/cpuinfo, that `-march=native` may turn into instructions."""

STAMP_SECTION = ".compass.host"


def triple() -> str:
    """The triple of this machine as clang spells it, for instance `x86_64-unknown-linux-gnu`."""
    return f"{platform.machine()}-unknown-{platform.system().lower()}-gnu"


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


def missing_features(needed: str) -> list[str]:
    """The features of the feature string `needed` (names separated by blanks) that this CPU lacks."""
    return sorted(set(needed.split()).difference(cpu_features()))


@dataclass(frozen=True)
class HostStamp:
    """The host that an object was compiled for: triple, and CPU features separated by blanks."""

    triple: str
    features: str


def current() -> HostStamp:
    """The stamp of objects that are compiled on this machine for this machine."""
    return HostStamp(triple(), " ".join(cpu_features()))


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

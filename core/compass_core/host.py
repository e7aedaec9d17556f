"""The machine that kernels are compiled for and simulated on: its triple and the CPU features code may use."""

from __future__ import annotations

import platform
from functools import lru_cache

_RELEVANT = frozenset(
    "sse4_1 sse4_2 popcnt avx avx2 fma f16c abm bmi1 bmi2 movbe aes vaes pclmulqdq vpclmulqdq gfni sha_ni adx "
    "avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg "
    "avx512_vpopcntdq avx512_bf16 avx512_fp16 avx_vnni "
    "fp asimd fphp asimdhp asimdrdm asimddp atomics crc32 sve sve2 i8mm bf16".split()
)
"""Features, as the kernel names them in /proc/cpuinfo, that `-march=native` may turn into instructions."""


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

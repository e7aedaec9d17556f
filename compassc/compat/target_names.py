"""Targets under the names of functions that make them: each is a kind with a device by which schedules are chosen."""

from __future__ import annotations

from collections.abc import Callable

from ..targets import Target

_KINDS = {
    "rocm": "rocm",
    "mali": "opencl -device=mali",
    "bifrost": "opencl -device=bifrost",
    "intel_graphics": "opencl -device=intel_graphics",
    "adreno": "opencl -device=adreno",
    "vta": "ext_dev -device=vta",
    "arm_cpu": "llvm -keys=arm_cpu,cpu -device=arm_cpu",
    "rasp": "llvm -keys=arm_cpu,cpu -device=arm_cpu",
    "riscv_cpu": "llvm -keys=riscv_cpu,cpu -device=riscv_cpu",
    "stm32": "c -keys=arm_cpu,cpu -device=arm_cpu",
    "micro": "c -keys=arm_cpu,cpu -device=arm_cpu",
    "hexagon": "hexagon",
}


def create(target: object) -> Target:
    """The target that an argument means."""
    return Target.of(target)


def _maker(text: str) -> Callable[..., Target]:
    def make(model: str = "unknown", options: str | list[str] | None = None) -> Target:
        written = options if isinstance(options, str) else " ".join(options or ())
        said = "" if model == "unknown" else f"-model={model}"
        return Target(" ".join(filter(None, (text, said, written))))

    make.__doc__ = f"The target `{text}`; `model` says for which device costs are known."
    return make


def __getattr__(name: str) -> Callable[..., Target]:
    if name not in _KINDS:
        raise AttributeError(name)
    return _maker(_KINDS[name])


__all__ = ["create"]
__all__.extend(_KINDS)

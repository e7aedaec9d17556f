"""PTX from CUDA C by NVRTC, where it is installed: the wheel `nvidia-cuda-nvrtc-cu12`, or a CUDA toolkit's library."""

from __future__ import annotations

import ctypes
import importlib.util
from functools import lru_cache
from pathlib import Path

from compass_core.errors import ToolchainError

HOW_TO_GET = "pip install nvidia-cuda-nvrtc-cu12"


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """The library; None where there is none."""
    found: list[str] = []
    spec = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cuda_nvrtc")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        found += map(str, sorted(Path(folder, "lib").glob("libnvrtc.so*")))
    for name in (*found, "libnvrtc.so.12", "libnvrtc.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def ptx(text: str, name: str, arch: str) -> str:
    """The PTX of a CUDA C text for an architecture (`sm_75`); empty where there is no NVRTC. ToolchainError with what it
    says when it refuses the text."""
    nvrtc = library()
    if nvrtc is None:
        return ""
    program = ctypes.c_void_p()
    _check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), f"{name}.cu".encode(), 0, None, None))
    try:
        options = [f"--gpu-architecture={arch.replace('sm_', 'compute_')}".encode(), b"--std=c++17"]
        status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        if status:
            log = _text(nvrtc, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")
            raise ToolchainError(
                f"NVRTC refuses the CUDA C of '{name}' for {arch}", code="nvrtc", notes=tuple(log.splitlines()[:20])
            )
        return _text(nvrtc, program, "nvrtcGetPTXSize", "nvrtcGetPTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, size_of: str, content_of: str) -> str:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, size_of)(program, ctypes.byref(size)))
    content = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, content_of)(program, content))
    return content.value.decode(errors="replace")


def _check(nvrtc: ctypes.CDLL, status: int) -> None:
    if status:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        said = (nvrtc.nvrtcGetErrorString(status) or b"").decode(errors="replace")
        raise ToolchainError(f"NVRTC fails: {said or status}", code="nvrtc", help=HOW_TO_GET)

"""`tvm.contrib.nvcc` and `tvm.contrib.tar`: what CUDA versions can do, and archives of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from compass_core import files

from ..targets import Target


def find_cuda_path() -> str:
    """RuntimeError: no nvcc is looked for, NVRTC makes PTX where it is installed."""
    raise RuntimeError("Cannot find cuda path: text of CUDA is compiled by NVRTC, where it is installed")


def get_cuda_version(cuda_path: object = None) -> tuple[int, ...]:
    """RuntimeError, as `find_cuda_path`."""
    find_cuda_path()
    return ()


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """`(8, 0)` of `"8.0"`."""
    major, _, minor = compute_version.partition(".")
    return int(major), int(minor or 0)


def get_target_compute_version(target: object = None) -> str:
    """`"8.6"` of a target with `-arch=sm_86`, else of the device. ValueError where neither says it."""
    chosen = Target.of(target) if target is not None else Target.current()
    digits = "".join(c for c in (chosen.arch if chosen is not None else "") if c.isdigit())
    if len(digits) < 2:
        raise ValueError(
            "No CUDA architecture was specified or GPU detected. Try specifying it by adding '-arch=sm_xx' to your target."
        )
    return f"{digits[:-1]}.{digits[-1]}"


def have_fp16(compute_version: str) -> bool:
    """Whether devices of a version compute with 16-bit floats."""
    return parse_compute_version(compute_version) == (5, 3) or parse_compute_version(compute_version) >= (6, 0)


def have_int8(compute_version: str) -> bool:
    """Whether they have products of bytes."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version: str | None = None, target: object = None) -> bool:
    """Whether they have tensor cores."""
    return parse_compute_version(compute_version or get_target_compute_version(target)) >= (7, 0)


def have_bf16(compute_version: str) -> bool:
    """Whether they compute with bfloat16."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_fp8(compute_version: str) -> bool:
    """Whether they compute with 8-bit floats."""
    return parse_compute_version(compute_version) >= (8, 9)


def have_cudagraph() -> bool:
    """Whether launches are recorded: they are not."""
    return False


def tar(output: str | os.PathLike[str], files_: Sequence[str | os.PathLike[str]]) -> None:
    """Writes an archive of files, by their names alone."""
    import io
    import tarfile

    stream = io.BytesIO()
    listed = [files_] if isinstance(files_, (str, os.PathLike)) else list(files_)
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path in listed:
            content = files.read(Path(path))
            info = tarfile.TarInfo(Path(path).name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    files.write(Path(output), stream.getvalue())


def untar(tar_file: str | os.PathLike[str], directory: str | os.PathLike[str]) -> None:
    """Writes the files of an archive into a folder; nothing of it lands elsewhere."""
    import tarfile

    with tarfile.open(tar_file) as archive:
        for member in archive:
            found = archive.extractfile(member) if member.isreg() else None
            if found is not None:
                files.write(Path(directory, Path(member.name).name), found.read())

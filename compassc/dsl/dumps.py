"""The files that the options debug and emu ask for: a run's inputs, constants and outputs, and how to run it again."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..driver.files import write_text

if TYPE_CHECKING:
    from .info import ParamInfo

_BY_ROLE = {"input": "input{}.bin", "const": "weight{}.bin"}


def _bytes(array: Any) -> bytes:
    return b"" if array is None or isinstance(array, int) else array.tobytes()


def write_inputs(folder: Path, params: Sequence[Mapping[str, Any]], args: Sequence[Any], target: str) -> None:
    """Writes input<i>.bin, weight<i>.bin and a script with the vendor's command for the same run."""
    names: list[str] = []
    for role, pattern in _BY_ROLE.items():
        given = [arg for param, arg in zip(params, args, strict=True) if param["role"] == role]
        for i, arg in enumerate(given):
            (folder / pattern.format(i)).write_bytes(_bytes(arg))
            names += [pattern.format(i)] if role == "input" else []
    line = f"aipurun compass_ir.txt -w compass_ir.bin -i {','.join(names)} -o aipurun_output.bin --target {target}"
    script = write_text(folder / "run_aipurun.sh", f"#!/bin/sh\n{line}\n")
    os.chmod(script, 0o755)


def write_outputs(folder: Path, params: Sequence[Mapping[str, Any]], args: Sequence[Any]) -> None:
    """Writes npu_output.bin, npu_output.bin1, ..."""
    outputs = [arg for param, arg in zip(params, args, strict=True) if param["role"] == "output"]
    for i, arg in enumerate(outputs):
        (folder / f"npu_output.bin{i or ''}").write_bytes(_bytes(arg))


def write_pysim_outputs(
    name: str, folder: Path | None, params: Sequence[ParamInfo] | None, args: Sequence[Any]
) -> None:
    """Writes gbuilder/pysim_output.bin, pysim_output.bin1, ... in the folder of the kernel's last build."""
    if folder is None or params is None:
        logging.getLogger("Compass").warning("%s was not built: PySim's outputs have no folder to go to", name)
        return
    target = folder / "gbuilder"
    target.mkdir(parents=True, exist_ok=True)
    for param, arg in zip(params, args, strict=True):
        if param.is_output_tensor:
            (target / f"pysim_output.bin{param.tensor_idx or ''}").write_bytes(_bytes(arg))

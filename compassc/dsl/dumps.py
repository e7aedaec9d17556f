"""The files of a run's inputs, constants and outputs that the environment asks for, and how to run it again."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import files

from ..settings.options import control_options, dumps_tensors

if TYPE_CHECKING:
    from ..language.info import ParamInfo

_FILES = {"input": "input{}.bin", "const": "weight{}.bin"}
_TENSOR_FILE = "{role}{i}_{dtype}.bin"


def _bytes(array: Any) -> bytes:
    return b"" if array is None or isinstance(array, int) else array.tobytes()


def _given(params: Sequence[Mapping[str, object]], args: Sequence[object], role: str) -> list[Any]:
    return [arg for param, arg in zip(params, args, strict=True) if param["role"] == role]


def write_inputs(folder: Path, params: Sequence[Mapping[str, object]], args: Sequence[object], target: str) -> None:
    """Writes input<i>.bin, weight<i>.bin and a script with the vendor's command for the same run."""
    _write_tensors(folder, "input", _given(params, args, "input"))
    if not control_options().dumps:
        return
    for role, pattern in _FILES.items():
        for i, arg in enumerate(_given(params, args, role)):
            files.write(folder / pattern.format(i), _bytes(arg))
    names = ",".join(_FILES["input"].format(i) for i in range(len(_given(params, args, "input"))))
    line = f"aipurun compass_ir.txt -w compass_ir.bin -i {names} -o aipurun_output.bin --target {target}"
    files.write(folder / "run_aipurun.sh", f"#!/bin/sh\n{line}\n", 0o777)


def write_outputs(folder: Path, params: Sequence[Mapping[str, object]], args: Sequence[object]) -> None:
    """Writes npu_output.bin, npu_output.bin1, ..."""
    outputs = _given(params, args, "output")
    _write_tensors(folder, "output", outputs)
    if control_options().dumps:
        for i, arg in enumerate(outputs):
            files.write(folder / f"npu_output.bin{i or ''}", _bytes(arg))


def _write_tensors(folder: Path, role: str, args: Sequence[object]) -> None:
    """The files that CPS_TVM_RUNTIME_DUMP asks for; their names contain the data type."""
    if dumps_tensors():
        for i, arg in enumerate(args):
            name = _TENSOR_FILE.format(role=role, i=i, dtype=getattr(arg, "dtype", "null"))
            files.write(folder / name, _bytes(arg))


def write_pysim_outputs(
    name: str, folder: Path | None, params: Sequence[ParamInfo] | None, args: Sequence[object]
) -> None:
    """Writes gbuilder/pysim_output.bin, pysim_output.bin1, ... in the folder of the kernel's last build."""
    if folder is None or params is None:
        logging.getLogger("Compass").warning("%s was not built: PySim's outputs have no folder to go to", name)
        return
    target = folder / "gbuilder"
    for param, arg in zip(params, args, strict=True):
        if param.is_output_tensor and isinstance(arg, np.ndarray):
            files.write(target / f"pysim_output.bin{param.tensor_idx or ''}", _bytes(arg))

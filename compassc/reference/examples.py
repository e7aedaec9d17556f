"""The examples of the operations, run: the memory they leave in PySim, and the C they become."""

from __future__ import annotations

import contextlib
import io
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from compass_core.arrays import Array

from ..codegen import generate
from ..dsl import BuildManager
from ..language.kernel_files import load_kernels
from ..ops import Op, core

TARGET = "X2_1204"
END_OF_KERNEL = "  barrier(CLK_LOCAL_MEM_FENCE);"


@cache
def kernels() -> dict[str, Any]:
    """The kernel of each example, by operation; they are defined once, in a file of their own."""
    examples = {op.name: op.example for op in core.load().values() if op.example is not None}
    text = "from compassc.dsl import script as S\n\n\n" + "\n\n".join(
        example.source(name, f"use_{name}") for name, example in examples.items()
    )
    folder = Path(tempfile.mkdtemp(prefix="compassc-examples-"))
    path = folder / "examples.py"
    path.write_text(text)
    found = load_kernels(path).kernels
    return {name: found[f"use_{name}"] for name in examples}


def run_in_pysim(op: Op) -> tuple[dict[str, Array], str]:
    """The memory that the example of an operation leaves in PySim, inputs included, and what it prints."""
    assert op.example is not None
    arrays = op.example.memory()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        kernels()[op.name](*arrays.values())
    return arrays, printed.getvalue()


def c_text(op: Op) -> str:
    """The C that the example of an operation becomes."""
    return generate(BuildManager(TARGET).lower(kernels()[op.name])).text


def c_body(op: Op) -> str:
    """The kernel function of an example in C, without prototypes and the final barrier."""
    text = c_text(op)
    lines = text[text.rindex("__kernel") :].rstrip().splitlines()
    return "\n".join(line for line in lines if line != END_OF_KERNEL)


def shown(values: Any) -> str:
    """An array in one line; of many lanes the first sixteen."""
    import numpy as np

    text = np.array2string(values[:16], separator=", ", max_line_width=1000, floatmode="maxprec")
    return text.replace("]", f", ...] ({values.size} lanes)") if values.size > 16 else text


def section(op: Op) -> list[str]:
    """The lines of an operation's page about its example, for which the compiler and PySim run."""
    if op.example is None:
        return []
    lines = ["## Example", "", "```python", op.example.source(op.name, "example").rstrip(), "```", ""]
    if op.example.runs:
        arrays, printed = run_in_pysim(op)
        memory = [f"{name:3} = {shown(values)}" for name, values in arrays.items()]
        lines += ["prints" if printed else "leaves", "", "```", *(printed.splitlines() or memory), "```", ""]
    else:
        lines += ["PySim cannot run it.", ""]
    return [*lines, f"and is this C on {TARGET}:", "", "```c", c_body(op), "```", ""]

"""A failing program as a file that stands alone: the kernel, its inputs, and a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from .run import HEADER, arguments
from .tree import Program

_IMPORTS = """\
import ml_dtypes  # noqa: F401  (makes "bfloat16" a NumPy type)
import numpy as np

from compassc.dsl import BuildManager
"""

_MAIN = """\
def inputs():
    return {{
{items}
    }}


if __name__ == "__main__":
    kernel, python, compiled = {name}, inputs(), inputs()
    BuildManager("{target}").build(kernel)(*compiled.values())
    kernel.target = "{target}"
    kernel(*python.values())
    for key, a in python.items():
        b = compiled[key]
        if isinstance(a, np.ndarray):
            wrong = [i for i in range(a.size) if a[i].tobytes() != b[i].tobytes()]
            for i in wrong[:8]:
                print(f"{{key}}[{{i}}]: PySim {{a[i]}}, compiled {{b[i]}}")
"""


def value_text(value: Any) -> str:
    """An input as Python text."""
    if isinstance(value, np.ndarray):
        if not value.view(np.uint8).any():
            return f'np.zeros({value.size}, "{value.dtype}")'
        return f'np.frombuffer(bytes.fromhex("{value.tobytes().hex()}"), "{value.dtype}").copy()'
    return f'np.dtype("{value.dtype}").type({value.item()!r})'.replace("(nan)", '("nan")').replace("inf)", '"inf")')


def kernel_file(program: Program) -> str:
    """The text of `kernel.py` for a program."""
    items = "\n".join(f'        "{name}": {value_text(value)},' for name, value in arguments(program).items())
    main = _MAIN.format(items=items, name=program.entry.name, target=program.target)
    return f"{_IMPORTS}{HEADER}{program.text()}\n\n{main}"

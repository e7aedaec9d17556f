"""The operator library: Compass IR layers written as kernels in the DSL, one module per family under `families/`.

A family declares which layer types it takes with `@operator`; the function looks at one layer and chooses a kernel and
its arguments. Kernels take shapes as scalars, so layers that differ in shape alone share one compiled object.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compassc.gbuilder.plugin_host import Plugin


def library(work_dir: Path, target: str) -> list[Plugin]:
    """A builder plugin per layer type of the library; kernels that are chosen are compiled in `work_dir`."""
    from compassc.oplib.plugin import plugins

    return plugins(work_dir, target)

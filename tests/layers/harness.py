"""Running kernels of layers against their references.

What a test says with `expect` is done at its end: its kernels are compiled together then, several by one clang, which saves a
quarter of the time that clang takes for each of them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compass_core import files
from compassc.driver.build import Build, Request, new_build, run_stage
from compassc.driver.stages import stage_named
from compassc.dsl import BuildManager
from compassc.dsl.executor import Executor
from compassc.graph import Layer
from compassc.graph.dtypes import numpy_dtype
from compassc.ir.stmts import PrimFunc
from compassc.language.info import current_target
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import program_of
from compassc.toolchain import cc
from compassc.tuning.artifact import without_shared

Array = np.ndarray[Any, Any]
TOGETHER = 8
"""Kernels of one translation unit."""
_APART = ("#define", "__local ")
"""What a kernel has in its text whose translation unit is its own: a macro would hold for others, too, and arrays of a core
together be more than it has room for."""
_built: dict[tuple[str, str], Executor] = {}


class Expected(NamedTuple):
    """A run that is still to be made, and what looks at its outputs."""

    kernel: Kernel
    layer: Layer
    inputs: list[Array]
    folder: Path
    target: str
    compare: Callable[[list[Array]], None]


_expected: list[Expected] | None = None
"""Runs of the test that goes on; None: none is going on, and runs are made at once."""


@contextmanager
def expecting() -> Iterator[None]:
    """What is expected inside is run at its end."""
    global _expected
    before, _expected = _expected, []
    try:
        yield
        _run_expected(_expected)
    finally:
        _expected = before


def expect(
    kernel: Kernel,
    layer: Layer,
    inputs: list[Array],
    folder: Path,
    compare: Callable[[list[Array]], None],
    target: str = "X2_1204",
) -> None:
    """`compare` takes what the kernel gives on the simulator for `inputs` as they are now."""
    made = Expected(kernel, layer, [a.copy() for a in inputs], folder, target, compare)
    if _expected is None:
        _run_expected([made])
    else:
        _expected.append(made)


def _run_expected(expected: Sequence[Expected]) -> None:
    for target in dict.fromkeys(e.target for e in expected):
        build([e.kernel for e in expected if e.target == target], expected[0].folder, target)
    for kernel, layer, inputs, folder, target, compare in expected:
        compare(run(kernel, layer, inputs, folder, target))


def build(kernels: Sequence[Kernel], folder: Path, target: str = "X2_1204") -> None:
    """Has kernels that are about to be run compiled together, of several those that were not run before."""
    new = list({k.text: k for k in kernels if (k.text, target) not in _built}.values())
    for first in range(0, len(new) if len(new) > 1 else 0, TOGETHER):
        part = new[first : first + TOGETHER]
        _build_together(part, folder / f"{target}-{part[0].name}", target)


def _build_together(kernels: Sequence[Kernel], folder: Path, target: str) -> None:
    """Builds kernels, those that may be together as one object."""
    builds = {kernel.text: _generated(kernel, folder, target) for kernel in kernels}
    texts = {text: build.generated.text for text, build in builds.items() if build.generated is not None}
    together = [text for text in texts if not any(word in texts[text] for word in _APART)]
    if len(together) > 1:
        joined = "\n".join(without_shared([texts[text] for text in together]))
        source, made = files.write(folder / "kernels.cl", joined), folder / "kernels.o"
        cc.compile_file(source, made, cc.CcOptions(builds[together[0]].target))
        for text in together:
            files.write(builds[text].file(".o"), made.read_bytes())
    for text, build in builds.items():
        for stage in ("gbuild",) if build.file(".o").exists() else ("cc", "gbuild"):
            run_stage(build, stage_named(stage))
        _built[text, target] = Executor(build)


def _generated(kernel: Kernel, folder: Path, target: str) -> Build:
    """A build that has its C text: what `BuildManager.build` does up to there."""
    place = folder / kernel.name
    request = Request(target=target, output=place / "aipu.bin", folder=place, fix_shapes=False, texts=False)
    build = new_build(request)
    build.module = BuildManager(target).parse(_function(kernel, folder), kernel.name)
    build.name = build.module.entry
    with current_target(target):
        for stage in ("lower", "legalize", "codegen"):
            run_stage(build, stage_named(stage))
    return build


def _function(kernel: Kernel, folder: Path) -> PrimFunc:
    return program_of(kernel, files.write(folder / f"{kernel.name}.py", kernel.text))


def run(kernel: Kernel, layer: Layer, inputs: list[Array], folder: Path, target: str = "X2_1204") -> list[Array]:
    """What the kernel gives on the simulator."""
    key = (kernel.text, target)
    if key not in _built:
        _built[key] = BuildManager(target).build(_function(kernel, folder))
    args, outputs = arguments(kernel, layer, inputs)
    _built[key](*args)
    return outputs


def arguments(kernel: Kernel, layer: Layer, inputs: list[Array]) -> tuple[list[Any], list[Array]]:
    """(the call's arguments, the outputs among them)."""
    outputs = {t.name: np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.outputs}
    known = outputs | {t.name: a for t, a in zip(layer.inputs, inputs, strict=True)}
    flat = {name: a.reshape(-1).view("uint8" if a.dtype == bool else a.dtype) for name, a in known.items()}
    return kernel.call(flat), [outputs[t.name] for t in layer.outputs]

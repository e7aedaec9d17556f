"""Which file each tensor of a run comes from and goes to, as `compass-run` is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compass_core.errors import CompassError, UsageError
from compass_runtime.files import check_outputs, expanded, read_array, split_items, split_named

if TYPE_CHECKING:
    from compass_runtime.program import Program, TensorInfo


def input_files(program: Program, texts: Sequence[str]) -> dict[str, Path]:
    """Which file each tensor comes from. States need none. Outputs that the kernel also reads may be given by name, or all in order."""
    order = {name: i for i, name in enumerate(p.name for p in program.params)}
    infos = sorted((*program.inputs, *program.outputs), key=lambda info: order.get(info.name, len(order)))
    positional, named = split_named(split_items(texts), [info.name for info in infos], "--inputs")
    states = {state.input for state in program.states}
    inputs = [info.name for info in program.inputs if info.name not in states]
    readable = [info.name for info in infos if info.role == "input" or info.in_out]
    positional, archived = expanded(positional, readable)
    named = archived | named
    if positional and named:
        raise UsageError("--inputs: give all files in order, or all as NAME=FILE", code="inputs-mixed")
    if positional and len(positional) not in (len(inputs), len(readable)):
        wanted = f"{len(inputs)} ({', '.join(inputs) or 'none'})"
        more = f", or {len(readable)} ({', '.join(readable)})" if len(readable) != len(inputs) else ""
        raise CompassError(f"{len(positional)} input files, but the kernel takes {wanted}{more}", code="input-count")
    if positional:
        names = inputs if len(positional) == len(inputs) else readable
        named = dict(zip(names, positional, strict=True))
    missing = [name for name in inputs if name not in named]
    if missing:
        raise CompassError(
            f"no file for the input{'s' if len(missing) > 1 else ''} {', '.join(missing)}",
            code="input-count",
            help="--inputs " + ",".join(f"{n}.npy" for n in inputs),
        )
    return {name: Path(file) for name, file in named.items()}


def _by_output(program: Program, texts: Sequence[str], option: str) -> dict[str, str]:
    names = [info.name for info in program.outputs]
    positional, named = split_named(split_items(texts), names, option)
    if len(positional) > len(names):
        raise CompassError(
            f"{option}: {len(positional)} files, but the kernel has {len(names)} "
            f"output{'' if len(names) == 1 else 's'} ({', '.join(names)})",
            code="output-count",
        )
    return dict(zip(names, positional, strict=False)) | named


def output_files(program: Program, texts: Sequence[str], outputs_dir: Path | None, raw: bool) -> dict[str, Path]:
    """The file of each output."""
    given = _by_output(program, texts, "--output")
    folder = outputs_dir or Path()
    files = {
        info.name: Path(given[info.name]) if info.name in given else folder / f"output{info.index}.npy"
        for info in program.outputs
    }
    check_outputs(files, raw)
    return files


def expected_arrays(program: Program, texts: Sequence[str], raw: bool) -> dict[str, tuple[Path, Array]]:
    """The arrays that outputs are compared with."""
    infos: dict[str, TensorInfo] = {info.name: info for info in program.outputs}
    names = [info.name for info in program.outputs]
    items, archived = expanded(split_items(texts), names)
    given = archived | _by_output(program, items, "--expect")
    return {
        name: (Path(file), read_array(Path(file), infos[name], any_dtype=True, raw=raw)) for name, file in given.items()
    }

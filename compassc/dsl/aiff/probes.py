"""`python -m compassc.dsl.aiff.probes [NAME ...] -o DIR`: programs by which a board can confirm an assumption of the model.

Each is an aipu.bin (in the vendor's layout, with the C text for other compilers) whose result differs between the readings of a field. Beside it lie its inputs and, for each reading, the
result that it would have; the reading `assumed` is the model's own.
"""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from compass_core import files
from compass_core.aiff.rules import ASSUMPTIONS
from compass_core.aiff.weights import pack
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.dsl import BuildManager
from compassc.dsl import script as S

from ..descriptors import expand
from . import Aiff, programs

BOARD = "X2_1204"


@dataclass(frozen=True)
class Probe:
    """A configuration, the array that it writes, and what is in it by each reading; `assumed` is among them."""

    aiff: Aiff
    output: Array
    readings: Mapping[str, Array]


def _scaled(biases: Array, factor: int, shift: int) -> tuple[Aiff, Array, Array]:
    """A convolution of zeros, whose results are scaled biases: configuration, output, and the products before the shift."""
    data = np.zeros((1, 1, 1, 32), np.int8)
    stream = np.frombuffer(pack(np.zeros((32, 8), np.int8)), np.uint8).copy()
    output = np.zeros((1, 1, 16), np.int8)
    aiff = Aiff(BOARD)
    halves = biases[:8].copy(), biases[8:].copy()
    outputs = output[:, :, :8], output[:, :, 8:]
    programs.configure_convolutions(aiff, data, (stream, stream), halves, outputs, factor, shift)
    return aiff, output, biases.astype(np.int64) * factor


def half_up() -> Probe:
    """Odd multiples of a half: 0.5, -0.5, 1.5, -1.5, ..."""
    numbers = np.arange(-8, 8) * 2 + 1
    aiff, output, _ = _scaled(numbers.astype(np.int16), 1, 1)
    halves = numbers / 2
    readings = {
        "assumed": np.floor(halves + 0.5),
        "to-even": np.rint(halves),
        "away-from-zero": np.trunc(halves + np.sign(halves) / 2),
        "down": np.floor(halves),
    }
    return Probe(aiff, output, readings)


def clamp() -> Probe:
    """Results from -320 to 280 in steps of 40."""
    numbers = np.arange(-8, 8) * 40
    aiff, output, _ = _scaled((numbers * 2).astype(np.int16), 1, 1)
    return Probe(aiff, output, {"assumed": numbers.clip(-128, 127), "wraps": numbers.astype(np.int8)})


def relu() -> Probe:
    """Results from -80 to 70 in steps of 10."""
    numbers = np.arange(-8, 8) * 10
    aiff, output, _ = _scaled((numbers * 2).astype(np.int16), 1, 1)
    for u in (0, 1):
        aiff.itp[u].m0_ccfg.relu_byp = 0
    return Probe(aiff, output, {"assumed": numbers.clip(0), "no-effect": numbers})


def signed_pool() -> Probe:
    """Pairs of a negative and a positive number."""
    image = np.array([[-1, 1], [2, -2]], np.int8).reshape(2, 2, 1) * np.arange(1, 33).astype(np.int8)
    data, output = programs.planes(image), np.zeros((1, 1, 1, 32), np.int8)
    aiff = Aiff(BOARD)
    programs.configure_pool(aiff, data, output, (2, 2, 32))
    unsigned = image.view(np.uint8).max(axis=(0, 1)).view(np.int8)
    return Probe(aiff, output, {"assumed": image.max(axis=(0, 1)), "unsigned": unsigned})


def partial_channels() -> Probe:
    """Twenty channels of 32; the rest of the output stays as it is, or is written as well."""
    image = np.arange(2 * 2 * 32).reshape(2, 2, 32).astype(np.uint8)
    data, output = programs.planes(image), np.zeros((1, 1, 1, 32), np.uint8)
    aiff = Aiff(BOARD)
    programs.configure_pool(aiff, data, output, (2, 2, 20))
    whole = image.max(axis=(0, 1))
    return Probe(aiff, output, {"assumed": np.where(np.arange(32) < 20, whole, 0), "whole-surface": whole})


def interpolate() -> Probe:
    """Bytes times 192: three quarters of an entry each."""
    data = np.arange(2 * 64, dtype=np.uint8).reshape(2, 1, 1, 2, 32)
    table = (np.arange(257) * 37 % 251 - 125).astype(np.int16)
    output = np.zeros((2, 1, 1, 2, 32), np.int8)
    aiff = Aiff(BOARD)
    programs.configure_tables(aiff, list(data), table, list(output), factor=192)
    v = data.astype(np.int64) * 192
    low, part = table[v >> 8].astype(np.int64), v & 255
    step = table[(v >> 8) + 1] - low
    readings = {
        "assumed": low + (step * part >> 8),
        "to-nearest": low + (step * part + 128 >> 8),
        "towards-zero": low + np.trunc(step * part / 256).astype(np.int64),
        "entry-below": low,
    }
    return Probe(aiff, output, readings)


def _weights(bits: int) -> Probe:
    """Each input channel is a one in an image of its own, so that its weights are the result."""
    rng = np.random.default_rng(bits)
    weights = [(rng.integers(-128, 128, (32, 8)) >> rng.integers(0, 6, (32, 8))).astype(np.int8) for _ in range(2)]
    data = programs.planes(np.eye(32, dtype=np.int8).reshape(1, 32, 32))
    padded = (np.hstack([w, np.zeros((32, 24), np.int8)]) for w in weights)
    raw = bits == 0
    streams = [p.tobytes() for p in padded] if raw else [pack(w, bits) for w in weights]
    output = np.zeros((1, 32, 16), np.int8)
    aiff = Aiff(BOARD)
    parts = [np.frombuffer(s, np.uint8).copy() for s in streams]
    outputs = output[:, :, :8], output[:, :, 8:]
    none = [np.zeros(8, np.int16) for _ in range(2)]
    programs.configure_convolutions(aiff, data, parts, none, outputs, 2, 1)
    for u in (0, 1):
        aiff.mtp[u].wt_compress.compression_format = bits
        aiff.mtp[u].weight_sparse.weight_sparse = 0 if raw else 2
    return Probe(aiff, output, {"assumed": np.concatenate(weights, axis=1)})


def repeat() -> Probe:
    """The same pooling on two images: one control descriptor that asks for a repetition."""
    images = np.arange(2 * 4 * 32).reshape(2, 2, 2, 32).astype(np.uint8)
    output = np.zeros((2, 1, 1, 1, 32), np.uint8)
    aiff = Aiff(BOARD)
    for k, image in enumerate(images):
        if k:
            aiff.add_new_register_config()
        programs.configure_pool(aiff, programs.planes(image), output[k], (2, 2, 32))
    found = images.max(axis=(1, 2))
    return Probe(aiff, output, {"assumed": found, "runs-once": np.stack([found[0], np.zeros_like(found[0])])})


PROBES: Mapping[str, Callable[[], Probe]] = {
    "repeat": repeat,
    "half-up": half_up,
    "clamp": clamp,
    "relu": relu,
    "signed-pool": signed_pool,
    "format5": lambda: _weights(5),
    "raw-weights": lambda: _weights(0),
    "interpolate": interpolate,
    "partial-channels": partial_channels,
}
"""A probe for each assumption."""


def kernel_of(probe: Probe) -> tuple[Any, Any]:
    """The kernel that starts a probe's chains, and the chains: its argument before the output."""
    chains = probe.aiff.gen_descriptor()
    param, act = chains[0].count_of_u32, chains[0].count_of_u32 + chains[1].count_of_u32

    @S.prim_func
    def starts_aiff(d: S.ptr("uint32", "global"), out: S.ptr(str(probe.output.dtype), "global")):  # type: ignore
        if S.get_local_id() == 0:
            S.aiff(d, d + param, d + act)

    return starts_aiff, chains


def write(name: str, folder: Path, target: str = BOARD) -> None:
    """Builds a probe into `folder`: gbuilder/aipu.bin, its inputs in their order, the result by each reading."""
    probe = PROBES[name]()
    kernel, chains = kernel_of(probe)
    executor = BuildManager(target, output_dir=folder).build(kernel)
    executor.program_for(chains, probe.output)
    call = expand(executor.name, executor.params, (chains, probe.output))
    passed = [param for param in call.params if param["role"] != "descriptor"]
    inputs = [array for param, array in zip(passed, call.args, strict=True) if param["role"] == "input"]
    for number, array in enumerate(inputs):
        _save(folder / f"input{number}.npy", array)
    for reading, values in probe.readings.items():
        _save(folder / f"output-{reading}.npy", expected(probe, values))


def expected(probe: Probe, values: Array) -> Array:
    """A reading as the output array has it."""
    return np.asarray(values).astype(probe.output.dtype).reshape(probe.output.shape)


def _save(path: Path, array: Array) -> None:
    content = io.BytesIO()
    np.lib.format.write_array(content, array)
    files.write(path, content.getvalue())


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PROBES)))
@click.option(
    "-o", "--output", default="aiff-probes", type=click.Path(path_type=Path), help="folder; default aiff-probes"
)
def main(names: tuple[str, ...], output: Path) -> None:
    """Write programs that confirm assumptions of the AIFF's model on a board; default: all."""
    for name in names or PROBES:
        write(name, output / name)
        print(f"{output / name}: {ASSUMPTIONS[name]}")


if __name__ == "__main__":
    main()

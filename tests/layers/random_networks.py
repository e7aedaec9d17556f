"""Random networks against chained references: `python -m tests.layers.random_networks --seed S --count N`.

A network is drawn from its seed: up to 30 layers of types that have kernels, on tensors of random shapes, types, scales
and zero points. It is written as a graph with weights, built with and without joined layers, and run on the simulator.
Integers must be equal; floats, in networks of layers without jumps, near.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compass_core.errors import CompassError
from compass_runtime import Program
from compassc.cluster import need, open_cluster
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.kernels import kernel_of
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.samples.elements import TABLED

TARGET = "X2_1204"
MOST = 30
"""Layers of a network."""
ELEMENTS = 6000
"""Of the largest tensor."""
TOLERANCE = 1e-3
"""Of floats, relative to the tensor's largest element."""
SMOOTH = (
    "Activation Sigmoid Tanh GELU Silu Softplus Softsign ELU RELU Clip LeakyRELU Abs Negative Eltwise Add Sub Mul "
    "Convolution DepthwiseConv FullyConnected MatMul Pooling GlobalPool Reshape Squeeze Flatten Transpose Permute Concat "
    "Split Slice Crop Tile Pad ChannelShuffle DepthToSpace SpaceToDepth Reduce Softmax Resize BasicLSTM GRUv1 GRUv3 RNN"
).split()
"""Types whose float results follow small errors without jumps."""
SHAPES = ((1, 6, 5, 8), (2, 4, 4, 3), (1, 3, 33), (2, 5, 12), (3, 40), (1, 7), (17,), (2, 3, 4, 5, 2))


class Network(NamedTuple):
    """Layers in order, and the tensors that nobody made."""

    layers: list[Layer]
    inputs: list[Tensor]

    @property
    def outputs(self) -> list[Tensor]:
        """What nobody uses."""
        used = {t.name for layer in self.layers for t in layer.inputs}
        return [t for layer in self.layers for t in layer.outputs if t.name not in used]


def network(seed: int, most: int = MOST) -> Network:
    """The network of a seed."""
    source = np.random.default_rng(seed)
    draw = Draw(source, "x")
    dtype = draw.choice(("int8", "int8", "uint8", "int16", "uint16", "int32", "float32"))
    tensors = [draw.tensor(draw.choice(SHAPES), dtype)]
    inputs, layers = [tensors[0]], []
    kinds = [k for k in (SMOOTH if dtype == "float32" else SAMPLES) for _ in range(1 if k in TABLED else 5)]
    for n in range(draw.integer(1, most) * 4):
        if len(layers) == most:
            break
        x = tensors[-1] if draw.integer(0, 2) else draw.choice(tensors)
        layer = drawn(Draw(source, f"l{n}", tensors), draw.choice(kinds), x)
        if layer is None or max(t.count for t in layer.outputs) > ELEMENTS or not _has_kernel(layer):
            continue
        real = any(not t.is_integer for t in layer.inputs)
        if real and (layer.type not in SMOOTH or any(t.is_integer for t in layer.outputs)):
            continue  # small errors of floats would grow to large ones
        layers.append(layer)
        known = {t.name for t in tensors}
        new = [t for t in layer.inputs if t.name not in known]
        inputs += new
        tensors += [*new, *layer.outputs]
    return Network(layers, inputs) if layers else network(seed + 1_000_003, most)


def _has_kernel(layer: Layer) -> bool:
    try:
        kernel_of([layer])
    except LayerError:
        return False
    return True


# -- as a graph


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_text(v) for v in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _top(tensors: list[Tensor]) -> list[str]:
    return [
        f"layer_top={_text([t.name for t in tensors])}",
        f"layer_top_shape={_text([t.shape for t in tensors])}",
        f"layer_top_type={_text([t.dtype for t in tensors])}",
        f"layer_top_scale={_text([t.scale for t in tensors])}",
        f"layer_top_zp={_text([t.zero for t in tensors])}",
        *([f"layer_top_range={_text([(t.low, t.high) for t in tensors])}"] if any(t.limits for t in tensors) else []),
    ]


def graph_text(net: Network) -> tuple[str, bytes]:
    """The network as a graph's text, and its weights."""
    weights = bytearray()
    blocks = [
        [
            f"layer_name=in_{t.name}",
            "layer_type=Input",
            "layer_bottom=[]",
            "layer_bottom_shape=[]",
            "layer_bottom_type=[]",
            *_top([t]),
        ]
        for t in net.inputs
    ]
    for layer in net.layers:
        lines = [
            f"layer_name={layer.name}",
            f"layer_type={layer.type}",
            f"layer_bottom={_text([t.name for t in layer.inputs])}",
            f"layer_bottom_shape={_text([t.shape for t in layer.inputs])}",
            f"layer_bottom_type={_text([t.dtype for t in layer.inputs])}",
            *_top(list(layer.outputs)),
        ]
        for key, array in layer.constants.items():
            weights += bytes(-len(weights) % 32)
            lines += [
                f"{key}_type={array.dtype.name}",
                f"{key}_offset={len(weights)}",
                f"{key}_size={array.nbytes}",
                f"{key}_shape={_text(array.shape)}",
            ]
            weights += array.tobytes()
        blocks.append([*lines, *(f"{key}={_text(value)}" for key, value in layer.attributes.items())])
    head = [
        "model_name=random",
        f"layer_number={len(blocks)}",
        f"input_tensors={_text([t.name for t in net.inputs])}",
        f"output_tensors={_text([t.name for t in net.outputs])}",
    ]
    listed = [[f"layer_id={i}", *lines] for i, lines in enumerate(blocks)]
    return "\n\n".join("\n".join(lines) for lines in [head, *listed]) + "\n", bytes(weights)


# -- run


def values_of(net: Network, source: np.random.Generator) -> dict[str, np.ndarray]:
    """Random values of the inputs, and what the references give for every tensor."""
    draw = Draw(source)
    values: dict[str, np.ndarray] = {}
    for t in net.inputs:
        low, high = (t.low, t.high) if t.is_integer else (None, None)
        values[t.name] = draw.array(t.dtype, *t.shape, low=low, high=high)
    for layer in net.layers:
        results = evaluate(layer, [values[t.name] for t in layer.inputs])
        values |= {t.name: r for t, r in zip(layer.outputs, results, strict=True)}
    return values


def differences(
    net: Network, folder: Path, fuse: bool, source: np.random.Generator, target: str = TARGET
) -> Iterator[str]:
    """What the built network gives otherwise than the references."""
    text, weights = graph_text(net)
    (folder / "net.txt").write_text(text)
    (folder / "net.bin").write_bytes(weights)
    options = GraphOptions(work_dir=folder / "kernels", fuse=fuse)
    build_model(folder / "net.txt", folder / "net.bin", folder / "aipu.bin", target, options)
    job = Program.load(folder / "aipu.bin").create_job()
    values = values_of(net, source)
    outputs = job.run({t.name: values[t.name] for t in net.inputs})
    for t in net.outputs:
        got, want = (np.asarray(v).reshape(-1).astype(np.float64) for v in (outputs[t.name], values[t.name]))
        limit = 0.0 if t.is_integer else TOLERANCE * max(1.0, np.abs(want[np.isfinite(want)]).max(initial=0))
        wrong = ~((np.abs(got - want) <= limit) | (got == want) | (np.isnan(got) & np.isnan(want)))
        if wrong.any():
            at = np.flatnonzero(wrong)
            yield f"{t.name}: {wrong.sum()} of {t.count} differ, at {at[0]}: {got[at[0]]:.10g} for {want[at[0]]:.10g}"


def check(seed: int, most: int = MOST) -> list[str]:
    """Faults of the network of a seed, joined and apart."""
    try:
        net = network(seed, most)
    except Exception:  # noqa: BLE001 (any failure is a finding)
        return [f"seed {seed}: {traceback.format_exc(limit=-3)}"]
    found = []
    for fuse in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            try:
                faults = list(differences(net, Path(folder), fuse, np.random.default_rng(seed)))
            except CompassError as error:
                faults = [f"refused: {error}"]
            except Exception:  # noqa: BLE001 (any failure is a finding)
                faults = [traceback.format_exc(limit=-3)]
        found += [f"seed {seed} {'joined' if fuse else 'apart'}, {len(net.layers)} layers: {f}" for f in faults]
    return found


def part(most: int, seed: int) -> list[str]:
    """`check`, as workers call it."""
    return check(seed, most)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.layers.random_networks", description="Random networks.")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first network; the next have the next seeds")
    parser.add_argument("--count", type=int, default=100, help="number of networks")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes that share the networks")
    parser.add_argument("--layers", type=int, default=MOST, help="most layers of a network")
    parser.add_argument("--scheduler", help="a Dask scheduler whose workers, in a checkout too, share the networks")
    given = parser.parse_args()
    from tests.layers.random_networks import part  # workers know it by this name, whatever was started here

    seeds = range(given.seed, given.seed + given.count)
    bad = 0
    with open_cluster(given.jobs, given.scheduler) as cluster:
        for number, outcome in cluster.run(part, given.layers, seeds):
            (faults,) = need([(number, outcome)])
            bad += bool(faults)
            for fault in faults:
                print(fault, flush=True)
    print(f"{given.count} networks from seed {given.seed}: {bad} fail", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""Layers on the AIFF: what goes there gives the bits of the layer's definition, everything else stays on the TECs."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_runtime import Program
from compassc import compile
from compassc.gbuilder.build import GraphOptions, build_in_memory
from compassc.graph import GraphBuilder, LayerError, Tensor
from compassc.graph.files import save
from compassc.layers.accelerated.rounding import Sums, scaling
from compassc.layers.arithmetic import requantise
from compassc.layers.declare import evaluate
from compassc.quantizer.settings import Settings

ALL = frozenset({"clamp", "half-up", "relu"})
ONE = {f"{name}_{axis}": 1 for name in ("kernel", "stride", "dilation") for axis in "xy"}
SCALED = {"scale_value": 32767, "scale_type": "uint16", "shift_value": 25, "shift_type": "int8"}
UNSCALED = {"scale_value": 1, "scale_type": "uint8", "shift_value": 0, "shift_type": "int8"}


def convolution(shape=(1, 5, 6, 64), outputs=80, out="int8", zero=0, limits=None, kernel=1, given="int8", **changes):
    """A graph of one convolution, the layer, and random input."""
    rng = np.random.default_rng(7)
    g = GraphBuilder("net")
    x = g.input("x", shape, given, scale=2.0)
    weights = rng.normal(0, 3, (outputs, kernel, kernel, shape[-1])).round().astype(np.int8)
    constants = {"weights": weights, "biases": rng.integers(-3000, 3000, outputs).astype(np.int32)}
    constants |= {name: value for name, value in changes.items() if isinstance(value, np.ndarray)}
    attributes = {**ONE, "kernel_x": kernel, "kernel_y": kernel, "num_output": outputs, "group": 1, **SCALED}
    attributes |= {name: value for name, value in changes.items() if name not in constants}
    attributes = {name: value for name, value in attributes.items() if value is not None and name not in constants}
    step = attributes["stride_x"]
    size = [-(-(n - kernel + 1 + attributes.get("pad_left", 0) * 2) // step) for n in shape[1:3]]
    y = Tensor("y", (shape[0], *size, outputs), out, 3.0, zero, limits)
    made = g.layer("Convolution", [x], name="conv", outputs=[y], attributes=attributes, constants=constants)
    return g, made, rng.integers(-100, 100, shape).astype(given)


def built(g, made, folder, target="X2_1204"):
    graph = g.finish(made)
    out = folder / "aipu.bin"
    return graph, build_in_memory(graph, folder, out, target, GraphOptions(work_dir=folder / "kernels", aiff=True))


def run(g, made, data, folder, target="X2_1204"):
    """Where the convolution went; the result is that of the layers' definitions, wherever it was computed."""
    graph, found = built(g, made, folder, target)
    (got,) = Program.load(found.path).create_job().run({"x": data}).values()
    want = data
    for layer in graph.computing():
        (want,) = evaluate(layer, [want])
    np.testing.assert_array_equal(got, want.astype(got.dtype))
    assert np.unique(got).size > 5
    (where,) = found.on_aiff
    return where


@pytest.mark.parametrize(
    ("shape", "outputs"), [((1, 5, 6, 64), 80), ((2, 16, 9, 32), 32), ((1, 7, 40, 288), 208), ((1, 1, 1, 32), 48)]
)
def test_a_proven_convolution_runs_on_the_aiff(tmp_path, shape, outputs):
    """Of one node and of several, of one chunk of weights and of two, in halves that are groups of 32 and that are not."""
    where = run(*convolution(shape, outputs), tmp_path)
    assert not where.reason
    assert where.nodes == -(-np.prod(shape[:3]) // 255)
    assert not where.assumed


def test_several_cores_and_layers_behind_it(tmp_path):
    g, (y,), data = convolution()
    made = g.layer("Abs", [y], name="abs", outputs=[Tensor("z", y.shape, "int8", 3.0)], attributes=UNSCALED)
    assert not run(g, made, data, tmp_path, "X2_1204MP3").reason


NOT_PROVEN = [
    ({"shift_value": 20}, "clamp", "clamp"),
    ({"with_activation": "RELU"}, "relu", "relu"),
    ({"with_activation": "RELU", "shift_value": 20}, "clamp,relu", "clamp,relu"),
]


@pytest.mark.parametrize(("changes", "named", "assumed"), NOT_PROVEN)
def test_what_rests_on_assumptions_is_allowed_by_name(monkeypatch, tmp_path, changes, named, assumed):
    where = run(*convolution(**changes), tmp_path)
    assert f"COMPASS_AIFF_ASSUME={named} " in where.reason
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", assumed)
    where = run(*convolution(**changes), tmp_path)
    assert (where.reason, ",".join(where.assumed)) == ("", assumed)


STAYS = {
    "input is uint8": {"given": "uint8"},
    "output is uint8": {"out": "uint8"},
    "zero point": {"zero": 3},
    "kernel": {"kernel": 3},
    "stride": {"stride_x": 2, "stride_y": 2},
    "pads": {side: 1 for side in ("pad_left", "pad_right", "pad_top", "pad_bottom")},
    "input channels": {"shape": (1, 5, 6, 48)},
    "output channels": {"outputs": 24},
    "biases": {"biases": np.arange(80, dtype=np.int32) * 1000},
    "no factor": {"scale_value": 65535},
    "scales of their own": {"scale": np.arange(20001, 20081).astype(np.uint16), "shift": np.full(80, 25, np.int8)},
    "rectifier": {"with_activation": "RELU6"},
    "the middle": {"scale_value": 1, "shift_value": 9},
    "it limits": {"limits": (-3, 3)},
}


@pytest.mark.parametrize("reason", sorted(STAYS))
def test_what_the_unit_is_not_known_to_do_stays_on_the_tecs(tmp_path, reason):
    g, made, data = convolution(**STAYS[reason])
    if reason == "scales of their own" or reason == "input is uint8":
        data = np.abs(data).astype(data.dtype)
    graph, found = built(g, made, tmp_path)
    (where,) = found.on_aiff
    assert reason in where.reason
    (got,) = Program.load(found.path).create_job().run({"x": data}).values()
    np.testing.assert_array_equal(got, evaluate(next(iter(graph.computing())), [data])[0])


def test_other_generations_stay_on_the_tecs(tmp_path):
    assert "X3P" in run(*convolution(), tmp_path, "X3P_1304").reason


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_scaling_is_the_layers_for_every_sum_or_refused(data):
    """What the unit computes from its registers under the readings that the scaling names, and from no other reading."""
    scale, shift = data.draw(st.integers(1, 70000)), data.draw(st.integers(-3, 24))
    low, high = sorted(data.draw(st.lists(st.integers(-3000, 3000), min_size=2, max_size=2)))
    limits = data.draw(st.sampled_from([(-128, 127), (-127, 127), (0, 127)]))
    rectified = data.draw(st.booleans())
    allowed = frozenset(data.draw(st.sets(st.sampled_from(sorted(ALL)))))
    sums = np.arange(low, high + 1)
    want = requantise(np.maximum(sums, 0) if rectified else sums, scale, shift, 0, *limits)
    try:
        found = scaling(scale, shift, Sums(low, high), limits, rectified, allowed)
    except LayerError as error:
        if "takes the even" in str(error):
            at = int(str(error).split()[2])
            assert low <= at <= high
            assert abs(at * scale * 2.0**-shift % 1) == 0.5
        return
    products = sums * found.factor
    half = 1 << (found.shift - 1)
    results = (products + half) >> found.shift
    assert found.assumed <= allowed
    assert found.factor < 1 << 15
    assert 1 <= found.shift <= 31
    if "half-up" not in found.assumed:
        assert not (products % (2 * half) == half).any()
    if rectified:
        assert "relu" in found.assumed
        results = np.maximum(results, 0)
    if "clamp" in found.assumed:
        results = results.clip(-128, 127)
    np.testing.assert_array_equal(results, want)


def test_a_quantised_network_on_the_aiff_is_the_one_on_the_tecs(monkeypatch, tmp_path):
    """With the settings that docs/aiff.md names; a run without the assumptions of its build is refused, and says so."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("base: int8\nper_channel: false\nforce_signed: true\nmultiplier_bits: 15\n")
    rng = np.random.default_rng(1)
    g = GraphBuilder("net")
    top = g.input("x", (1, 6, 5, 32), "float32")
    for name, outputs, activation in (("a", 96, "NONE"), ("b", 64, "RELU")):
        weights = rng.normal(0, top.shape[-1] ** -0.5, (outputs, 1, 1, top.shape[-1])).astype(np.float32)
        (top,) = g.layer(
            "Convolution",
            [top],
            name=name,
            outputs=[((*top.shape[:3], outputs), "float32")],
            attributes={**ONE, "group": 1, "num_output": outputs, "with_activation": activation},
            constants={"weights": weights, "biases": rng.normal(0, 0.1, outputs).astype(np.float32)},
        )
    data = rng.normal(0, 1, (4, 6, 5, 32)).astype(np.float32)
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "clamp,relu")
    how = {"calibrate": {"x": data}, "quantize": Settings.read(settings)}
    plain, accelerated = (compile(g.finish([top]), **how, aiff=aiff) for aiff in (False, True))
    np.testing.assert_array_equal(accelerated(data * 2), plain(data * 2))
    monkeypatch.delenv("COMPASS_AIFF_ASSUME")
    with pytest.raises(CompassError, match="COMPASS_AIFF_ASSUME="):
        accelerated(data * 2)


def test_the_command_says_where_layers_went(compassc, tmp_path):
    """With cycles of both forms; the reason of what stays."""
    g, (y,), _ = convolution()
    changes = {**ONE, "num_output": 24, "group": 1, **SCALED}
    constants = {"weights": np.ones((24, 1, 1, 80), np.int8), "biases": np.zeros(24, np.int32)}
    made = g.layer(
        "Convolution", [y], name="rest", outputs=[((1, 5, 6, 24), "int8")], attributes=changes, constants=constants
    )
    save(g.finish(made), tmp_path / "net.txt")
    done = compassc("gbuild", tmp_path / "net.txt", "--aiff", "-o", tmp_path / "aipu.bin")
    assert done.status == 0
    first, second = done.err.splitlines()[:2]
    told = re.fullmatch(r"'conv' runs on the AIFF: 1 node; at least ([0-9,]+) cycles, .* takes ([0-9,]+) .*", first)
    assert told is not None
    unit, kernel = (int(number.replace(",", "")) for number in told.groups())
    assert 0 < unit < kernel
    assert second == "'rest' runs on the TECs: it has 80 input channels, not a multiple of 32 up to 4064"
    g = GraphBuilder("net")
    x = g.input("x", (1, 8), "int8")
    made = g.layer("Abs", [x], name="abs", outputs=[((1, 8), "int8")], attributes=UNSCALED)
    save(g.finish(made), tmp_path / "other.txt")
    assert compassc("gbuild", tmp_path / "other.txt", "--aiff").err.startswith("no layer is a convolution")
    (tmp_path / "kernel.py").touch()
    assert "about models" in compassc("build", tmp_path / "kernel.py", "--aiff").err

"""Networks to try compilers on: their types, their parameters, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.backend.build import bind_main
from compassc.relay.backend.executors import create_executor
from compassc.relay.builders import build
from compassc.relay.testing import (
    create_workload,
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    resnet,
    squeezenet,
    synthetic,
    vgg,
)
from compassc.relay.visit import post_order
from tests.choosing import some
from tests.relay.relay_values import evaluate

SIZED = {
    "mlp": (lambda: mlp.get_workload(2), (2, 10), {"nn.dense": 3}),
    "dqn": (lambda: dqn.get_workload(1), (1, 18), {"nn.conv2d": 3, "nn.dense": 2}),
    "resnet-18": (lambda: resnet.get_workload(), (1, 1000), {"nn.conv2d": 21, "add": 8, "nn.max_pool2d": 1}),
    "resnet-50": (lambda: resnet.get_workload(num_layers=50, num_classes=9), (1, 9), {"nn.conv2d": 53, "add": 16}),
    "resnet-18 32": (lambda: resnet.get_workload(image_shape=(3, 32, 32)), (1, 1000), {"nn.conv2d": 21, "nn.max_pool2d": 0}),
    "resnet-164 28": (lambda: resnet.get_workload(2, 10, 164, (3, 28, 28)), (2, 10), {"nn.conv2d": 1 + 18 * 9 + 3}),
    "mobilenet": (lambda: mobilenet.get_workload(), (1, 1000), {"nn.conv2d": 27, "nn.batch_norm": 27}),
    "squeezenet 1.0": (lambda: squeezenet.get_workload(), (1, 1000), {"nn.conv2d": 26, "concatenate": 8}),
    "vgg": (lambda: vgg.get_workload(1, 7, (3, 32, 32), num_layers=16), (1, 7), {"nn.conv2d": 13, "nn.max_pool2d": 5}),
    "dcgan": (lambda: dcgan.get_workload(2, ngf=8), (2, 3, 64, 64), {"nn.conv2d_transpose": 4, "nn.batch_norm": 3}),
    "densenet": (lambda: densenet.get_workload(batch_size=1), (1, 1000), {"nn.conv2d": 120, "concatenate": 58}),
    "inception_v3": (lambda: inception_v3.get_workload(), (1, 1000), {"nn.conv2d": 94, "concatenate": 11}),
    "lstm": (lambda: lstm.get_workload(3, 4, 2), (2, 4), {"zeros": 1}),
    "synthetic": (lambda: synthetic.get_workload(), (1, 3, 24, 12), {"nn.dense": 2, "nn.conv2d": 2, "nn.softmax": 2}),
    "squeezenet 1.1": (lambda: squeezenet.get_workload(version="1.1"), (1, 1000), {"nn.conv2d": 26, "nn.max_pool2d": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZED)
def test_networks_have_types_and_parameters(name):
    make, shape, counts = SIZED[name]
    module, params = make()
    main = module["main"]
    assert main.ret_type == relay.TensorType(shape)
    ops = [getattr(e.op, "name", "") for e in post_order(main) if isinstance(e, relay.Call)]
    assert {n: ops.count(n) for n in counts} == counts
    assert main.params[0].name_hint == "data"
    assert list(params) == [v.name_hint for v in main.params][1:]
    for v in some(main.params[1:]):
        assert params[v.name_hint].shape == v.checked_type.concrete_shape


def small(name: str, layout: str = "NCHW"):
    shape = (lambda h: (3, h, h)) if layout == "NCHW" else (lambda h: (h, h, 3))
    return {
        "mlp": lambda: mlp.get_workload(1, 4, (1, 3, 3)),
        "dqn": lambda: dqn.get_workload(1, 4, (1, 36, 36)),
        "resnet": lambda: resnet.get_workload(1, 4, 8, shape(8), layout),
        "mobilenet": lambda: mobilenet.get_workload(1, 4, shape(32), layout=layout),
        "squeezenet": lambda: squeezenet.get_workload(1, 4, "1.1", (3, 35, 35)),
        "synthetic": lambda: synthetic.get_workload((1, 2, 6, 4)),
    }[name]()


@pytest.mark.parametrize("name", ["mlp", "dqn", "resnet", "synthetic"])  # the others take long to compile
def test_the_host_computes_what_references_do(name):
    module, params = small(name)
    x = np.random.default_rng(1).normal(0, 1, module["main"].params[0].checked_type.concrete_shape).astype("float32")
    bound = bind_main(module, params)
    (wanted,) = evaluate(bound, x)
    found = create_executor("graph", bound).evaluate()(x).numpy()
    assert found.shape == wanted.shape and np.ptp(found) > 0
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["resnet", "mobilenet"])
def test_layouts_compute_the_same(name):
    (one, params), (other, turned) = small(name), small(name, "NHWC")
    kinds = {v.name_hint: v.checked_type.concrete_shape for v in other["main"].params}
    moved = {}
    for n, value in some(params.items()):
        array = value.numpy()
        depthwise = "depthwise" in n
        moved[n] = array.transpose((2, 3, 0, 1) if depthwise else (2, 3, 1, 0)) if array.ndim == 4 else array
        assert moved[n].shape == kinds[n] == turned[n].shape
    x = np.random.default_rng(1).normal(0, 1, one["main"].params[0].checked_type.concrete_shape).astype("float32")
    (a,), (b,) = evaluate(bind_main(one, params), x), evaluate(bind_main(other, moved), x.transpose(0, 2, 3, 1))
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_parameters_by_their_names():
    x = relay.var("data", shape=(1, 4, 6, 6))
    conv = layers.conv2d(x, channels=8, kernel_size=(3, 3), name="c")
    net = build("nn.bias_add", layers.batch_norm_infer(conv, name="n"), relay.var("b_bias"))
    function = relay.Function(relay.analysis.free_vars(net), net)
    params = {n: v.numpy() for n, v in create_workload(function)[1].items()}
    limit = np.sqrt(3 / ((4 * 9 + 8 * 9) / 2))
    assert 0.9 * limit < np.abs(params["c_weight"]).max() <= limit
    for name, value in (("n_gamma", 1), ("n_beta", 0), ("n_moving_mean", 0), ("n_moving_var", 1), ("b_bias", 0)):
        np.testing.assert_array_equal(params[name], np.full(8, value))
    again, other = (create_workload(function, seed=s)[1]["c_weight"].numpy() for s in (0, 1))
    assert (again == params["c_weight"]).all() and (other != again).any()
    same = create_workload(function, init.Constant())[1]["c_weight"].numpy()
    np.testing.assert_allclose(same, 1 / same.size)
    scaled = create_workload(function, init.Xavier("gaussian", "in", 2))[1]["c_weight"].numpy()
    np.testing.assert_allclose(scaled.std(), np.sqrt(2 / 36), rtol=0.2)


def test_what_there_is_not_is_refused():
    odd = relay.var("odd", shape=(2,))
    with pytest.raises(ValueError, match="'odd' does not say what it is"):
        create_workload(relay.Function([odd], odd))
    flat = relay.var("a_weight", shape=(2,))
    with pytest.raises(CompassError, match="has no inputs and outputs"):
        create_workload(relay.Function([flat], flat))
    for wrong in (
        lambda: resnet.get_workload(num_layers=19), lambda: resnet.get_workload(num_layers=9, image_shape=(3, 8, 8)),
        lambda: squeezenet.get_workload(version="2"), lambda: layers.conv_kernel_layout("NCW"), lambda: init.Xavier("odd"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="no |not "):
            wrong()


def test_a_cell_is_what_its_equations_say():
    module, params = lstm.get_workload(2, 3)
    values = {
        n: np.random.default_rng(i).normal(0, 1, p.shape).astype("float32") for i, (n, p) in enumerate(params.items())
    }
    inputs = [np.ones((1, 3), "float32"), values["data_1_weight"]]
    found = create_executor("debug", bind_main(module, values)).evaluate()(inputs[0]).numpy()
    h = c = np.zeros((1, 3))
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    for i, x in enumerate(inputs):
        w = {n: values[f"lstm_{i}_{n}"] for n in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")}
        gates = x @ w["i2h_weight"].T + w["i2h_bias"] + h @ w["h2h_weight"].T + w["h2h_bias"]
        write, keep, new, show = np.split(gates, 4, axis=1)
        c = sigmoid(keep) * c + sigmoid(write) * np.tanh(new)
        h = sigmoid(show) * np.tanh(c)
    np.testing.assert_allclose(found, h, rtol=1e-5)

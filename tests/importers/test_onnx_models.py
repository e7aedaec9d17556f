"""Models as files: what is read, what is refused and how, control flow, shapes, and what is written."""

import re
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from compass_core.errors import CompassError, UsageError
from compassc.importers import import_model as import_file
from compassc.importers.onnx import import_model
from compassc.importers.refusals import RefusedModel
from tests.importers.networks import NETWORKS, Net


@pytest.fixture
def model_file(tmp_path):
    net = Net()
    x = net.conv(net.input("x", "batch", 3, "height", 8), 3, 4, act="Relu")
    path = tmp_path / "model.onnx"
    onnx.save(net.model(x), path)
    return path


def test_a_batch_that_is_open_is_one_and_other_sizes_are_given(model_file):
    with pytest.raises(CompassError, match="leaves dimensions of its inputs open") as caught:
        import_file(model_file)
    assert "--shape x=1x3xheightx8, or of a name: --shape height=1" in caught.value.help
    assert import_file(model_file, {"x": (1, 3, 6, 8)}).outputs[0].shape == (1, 4, 6, 8)
    assert import_file(model_file, {"x": (2, 3, 6, 8)}).outputs[0].shape == (2, 4, 6, 8)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"y": (1,)}, "no input 'y'"),
        ({"x": (1, 3, 6)}, "is batchx3xheightx8 in the model"),
        ({"x": (1, 3, 6, 9)}, "not 1x3x6x9"),
    ],
)
def test_wrong_names_and_shapes_say_what_there_is(model_file, shapes, words):
    with pytest.raises(UsageError) as caught:
        import_file(model_file, shapes)
    assert words in caught.value.message


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_a_damaged_file_is_an_error_and_writes_nothing(compassc, model_file, keep):
    model_file.write_bytes(model_file.read_bytes()[:keep])
    done = compassc("import", str(model_file), "-o", str(model_file.parent / "graph.txt"), "--shape", "x=1x3x6x8")
    assert (done.status, done.out) == (1, "")
    assert "model.onnx" in done.err and "Traceback" not in done.err
    assert sorted(p.name for p in model_file.parent.iterdir()) == ["model.onnx"]


def test_bits_that_flip_never_lead_to_a_crash(model_file):
    content = bytearray(model_file.read_bytes())
    random = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(content)
        for at in random.integers(0, len(damaged), 3):
            damaged[at] ^= 1 << int(random.integers(0, 8))
        model_file.write_bytes(damaged)
        try:
            import_file(model_file, {"x": (1, 3, 6, 8)})
        except CompassError:
            pass


def test_external_data_is_read_and_missed(model_file):
    onnx.save(onnx.load(model_file), model_file, save_as_external_data=True, location="model.data", size_threshold=0)
    assert import_file(model_file, {"x": (1, 3, 6, 8)}).outputs[0].shape == (1, 4, 6, 8)
    (model_file.parent / "model.data").unlink()
    with pytest.raises(CompassError, match="is not beside it") as caught:
        import_file(model_file, {"x": (1, 3, 6, 8)})
    assert caught.value.code == "onnx-external-data"


@pytest.mark.parametrize("suffix", [".onnx", ".tflite", ".pt2"])
@pytest.mark.parametrize(
    ("content", "words"),
    [("version https://git-lfs.github.com/spec/v1\noid x\n", "git lfs pull"), ("\n<!DOCTYPE html><html>", "download")],
)
def test_texts_in_the_place_of_a_model_say_what_they_are(tmp_path, suffix, content, words):
    if suffix == ".pt2":
        pytest.importorskip("torch")
    path = tmp_path / f"model{suffix}"
    path.write_text(content)
    with pytest.raises(CompassError) as caught:
        import_file(path)
    assert words in caught.value.help


def test_everything_that_is_not_supported_is_named_at_once():
    net = Net(17)
    x = net.input("x", 1, 4, 8, 8)
    y = net("Add", net("RandomNormalLike", x), net("Resize", x, "", net.constant([1, 1, 2, 2]), mode="linear"))
    z = net("GridSample", x, net.input("grid", 1, 4, 4, 2), mode="no mode")
    with pytest.raises(RefusedModel) as caught:
        import_model(net.model(y, net("DepthToSpace", net("Det", z), blocksize=2)))
    assert [r.operator for r in caught.value.refusals] == ["RandomNormalLike", "GridSample"]
    assert [r.node for r in caught.value.refusals] == ["randomnormallike0", "gridsample3"]
    assert all(r.reason for r in caught.value.refusals)


def test_an_old_opset_is_converted_and_one_that_is_too_new_is_refused(chained):
    net = Net(6)
    model = net.model(net("Relu", net("BatchNormalization", net.input("x", 1, 2, 3, 3), *[net.constant([1, 2])] * 4)))
    x = np.random.default_rng(0).standard_normal((1, 2, 3, 3)).astype(np.float32)
    assert chained(import_model(model), x)[0].shape == x.shape
    model.opset_import[0].version = 1000
    with pytest.raises(CompassError, match="has opset 1000"):
        import_model(model)


def test_the_package_onnx_is_asked_for_when_it_is_missing(compassc, model_file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    done = compassc("import", str(model_file))
    assert done.status == 1
    assert "pip install" in done.err and "compassc[onnx]" in done.err


def test_the_command_writes_a_graph_that_the_builder_reads(compassc, model_file):
    graph = model_file.parent / "net.txt"
    done = compassc("import", str(model_file), "-o", str(graph), "--shape", "x=1x3x6x8")
    assert (done.status, done.err.split()[-1]) == (0, "net.txt"), done.err
    assert graph.with_suffix(".bin").stat().st_size == 4 * (4 * 3 * 9 + 4)
    assert "model_bin=./net.bin" in graph.read_text()


def test_a_build_may_stop_after_the_import_and_takes_no_options_of_kernels(compassc, model_file):
    build = ("build", str(model_file), "--shape", "x=1x3x6x8")
    done = compassc(*build, "--stop-after", "import")
    assert (done.status, done.out) == (0, ""), done.err
    assert "float.txt" in done.err and not (model_file.parent / "aipu.bin").exists()
    assert (
        compassc(*build, "--stop-after", "import", "-o", "net.bin").status == 2
    )  # its constants would be the same file
    for options, words in ((("--set", "n=1"), "--set is about kernels"), (("--stop-after", "cc"), "no stage 'cc'")):
        done = compassc(*build, *options)
        assert (done.status, done.out) == (2, "")
        assert words in done.err


def test_a_refused_model_leaves_what_was_there(compassc, tmp_path):
    net = Net()
    onnx.save(net.model(net("Det", net.input("x", 1, 4, 4))), tmp_path / "model.onnx")
    (tmp_path / "model.txt").write_text("mine")
    done = compassc("import", str(tmp_path / "model.onnx"), "-o", str(tmp_path / "model.txt"))
    assert done.status == 1
    assert "det0 (Det)" in done.err
    assert (tmp_path / "model.txt").read_text() == "mine"
    assert not (tmp_path / "model.bin").exists()


# -- control flow


def body(nodes, inputs, outputs):
    kinds = {"i": (TensorProto.INT64, []), "going": (TensorProto.BOOL, []), "again": (TensorProto.BOOL, [])}
    values = [
        [helper.make_tensor_value_info(n, *kinds.get(n, (TensorProto.FLOAT, [1, 3]))) for n in names]
        for names in (inputs, outputs)
    ]
    return helper.make_graph(nodes, "body", *values)


def same(model, chained, *arrays):
    graph = import_model(model)
    feeds = {i.name: a for i, a in zip(model.graph.input, arrays, strict=True)}
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for got, want in zip(chained(graph, *arrays), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return [layer.type for layer in graph.layers]


def branches(net):
    return {
        f"{name}_branch": body([helper.make_node(op, ["x"], [name])], [], [name])
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }


def test_a_known_branch_is_taken_and_a_computed_one_is_chosen_from(chained):
    x = np.float32([[-1, 2, 3]])
    net = Net()
    net.input("x", 1, 3)
    taken = net.model(net("If", net.constant(True, bool), **branches(net)))
    assert same(taken, chained, x) == ["Input", "Activation"]
    net = Net()
    net.input("x", 1, 3)
    condition = net("Greater", net("ReduceSum", "x", keepdims=0), net.constant(1.0))
    kinds = same(net.model(net("If", condition, **branches(net))), chained, x)
    assert {"Activation", "Negative", "Where"} <= set(kinds)


def test_a_loop_of_known_steps_is_unrolled(chained):
    net = Net()
    x = net.input("x", 1, 3)
    step = body(
        [
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("Identity", ["going"], ["again"]),
            helper.make_node("Relu", ["next"], ["seen"]),
        ],
        ["i", "going", "state"],
        ["again", "next", "seen"],
    )
    last, seen = net(
        "Loop",
        net.constant(4, np.int64),
        net.constant(True, bool),
        x,
        outputs=2,
        body=step,
    )
    kinds = same(net.model(last, seen), chained, np.float32([[1, -2, 3]]))
    assert kinds.count("Eltwise") == 4


def test_a_function_of_the_model_is_replaced_by_its_nodes(chained):
    function = helper.make_function(
        "mine",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["c"]), helper.make_node("Relu", ["c"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], "twice", domain="mine")],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    same(model, chained, np.float32([1, -2, 3]))


def test_outputs_that_are_inputs_or_constants_are_layers_of_their_own(chained):
    net = Net()
    x = net.input("x", 2, 3)
    same(
        net.model(net("Identity", x), net("Identity", net.constant([1, 2]))),
        chained,
        np.float32([[1, 2, 3], [4, 5, 6]]),
    )


def test_integers_keep_their_meaning(chained):
    net = Net()
    x = net.input("x", 4, kind=TensorProto.INT64)
    y = net("Div", net("Mul", x, net.ints(3)), net.ints(-2))
    z = net("Cast", net("Greater", y, net.ints(-1)), to=TensorProto.FLOAT)
    same(net.model(y, z), chained, np.int64([-5, 0, 7, 100000]))
    big = Net()
    with pytest.raises(RefusedModel, match="not supported"):
        import_model(big.model(big("Add", big.input("x", 1, kind=TensorProto.INT64), big.ints(2**40))))


@pytest.mark.parametrize("slopes", [(3, 5, 7), (1, 3, 5, 7), (5, 1), (3, 1, 7), (3, 1, 1), (1, 5, 1)])
def test_slopes_of_any_shape_make_one_layer(chained, slopes):
    """Behind a convolution, whose channels are last in the graph."""
    net = Net()
    model = net.model(net("PRelu", net.conv(net.input("x", 1, 3, 5, 7), 3, 3), net.weights(*slopes)))
    same(model, chained, np.random.default_rng(0).standard_normal((1, 3, 5, 7), np.float32))
    assert [layer.type for layer in import_model(model).layers].count("Activation") == 1


def test_weights_may_be_sparse_or_tensors_of_any_form(chained):
    values = numpy_helper.from_array(np.float32([2, 5]), "values")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(np.int64([0, 4]), "places"), [2, 3])
    net = Net()
    x = net.input("x", 2, 3)
    node = helper.make_node("Constant", [], ["w"], sparse_value=sparse)
    net.nodes.append(node)
    model = net.model(net("Add", x, "w"))
    (got,) = chained(import_model(model), np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(got, [[2, 0, 0], [0, 5, 0]])


def named_model():
    """Two inputs with dimensions of one name."""
    sizes = {"x": ["batch", "length", 4], "y": ["batch", "length", 4]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items()]
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    graph = helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "named", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    ("shapes", "result"),
    [
        ({"length": (7,)}, (1, 7, 4)),
        ({"length": (7,), "batch": (3,)}, (3, 7, 4)),
        ({"x": (2, 5, 4)}, (2, 5, 4)),
    ],
)
def test_named_dimensions_are_given_once_for_all_inputs(shapes, result):
    assert import_model(named_model(), shapes).outputs[0].shape == result


def test_open_dimensions_are_told_with_their_names():
    with pytest.raises(CompassError, match="open") as caught:
        import_model(named_model())
    assert "--shape x=1xlengthx4 --shape y=1xlengthx4, or of a name: --shape length=1" in caught.value.help


def test_inputs_of_types_that_graphs_do_not_have_are_refused_with_the_rest():
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT8E4M3FNUZ, [4])]
    inputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [4]))
    nodes = [helper.make_node("Cast", ["x"], ["u"], to=TensorProto.FLOAT), helper.make_node("NonZero", ["y"], ["v"])]
    outputs = [helper.make_tensor_value_info(n, t, None) for n, t in (("u", 1), ("v", TensorProto.INT64))]
    graph = helper.make_graph(nodes, "types", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with pytest.raises(RefusedModel) as caught:
        import_model(model)
    assert [r.node for r in caught.value.refusals] == ["the input 'x'", "v"]


@pytest.mark.parametrize("sizes", [[1 << 40, 1 << 40], [0, 1 << 40, 1 << 40]])
def test_inputs_that_no_memory_holds_are_refused(sizes):
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "large", inputs, outputs)
    with pytest.raises(CompassError, match="4,294,967,296 elements at most"):
        import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))


@pytest.mark.parametrize("command", ["optimize", "gbuild", "quantize"])
def test_a_model_where_a_graph_is_wanted(compassc, model_file, command):
    data = ("--calibrate", str(model_file)) if command == "quantize" else ()
    done = compassc(command, str(model_file), *data)
    assert done.status == 2 and "is a model, not a graph" in done.err and "compassc build" in done.err


def test_inner_tensors_may_be_outputs(compassc, model_file):
    shape = {"x": (1, 3, 6, 8)}
    whole = import_file(model_file, shape)
    inner = next(n.output[0] for n in onnx.load(model_file).graph.node)
    cut = import_file(model_file, shape, [inner])
    assert [t.name for t in cut.outputs] != [t.name for t in whole.outputs] and len(cut.outputs) == 1
    with pytest.raises(UsageError, match="no tensor 'nowhere'"):
        import_file(model_file, shape, ["nowhere"])
    made = model_file.parent / "cut.txt"
    done = compassc("import", str(model_file), "--shape", "x=1x3x6x8", "--output-tensor", inner, "-o", str(made))
    assert done.status == 0 and made.exists()


@pytest.mark.parametrize(
    ("number", "why"), [(0, "stands for no type"), (77, "stands for no type"), (8, "no type for text")]
)
def test_inputs_of_no_type_are_refused(number, why):
    net = Net()
    model = net.model(net("Identity", net.input("x", 2)))
    model.graph.input[0].type.tensor_type.elem_type = number
    with pytest.raises(RefusedModel) as caught:
        import_model(model)
    assert why in caught.value.notes[0].message


def test_a_checker_that_says_nothing_is_an_error_all_the_same(tmp_path, monkeypatch):
    """It does for names that are no text."""

    def refuse(model):
        raise onnx.checker.ValidationError("")

    monkeypatch.setattr(onnx.checker, "check_model", refuse)
    onnx.save(NETWORKS["depthwise"](), tmp_path / "net.onnx")
    with pytest.raises(CompassError, match="is no valid ONNX model") as raised:
        import_file(tmp_path / "net.onnx")
    assert raised.value.code == "onnx-model"


@pytest.mark.parametrize(
    ("wrong", "weights", "words"),
    [(np.nan, True, "1 of 27 values of 'weights' of 'conv0.*' are NaN"), (np.inf, True, "'weights' of .* are infinite"),
     (np.nan, False, "1 of 3 values of the constant .* are NaN"), (-np.inf, False, "")],
)  # fmt: skip
def test_weights_that_are_no_numbers_are_a_warning(wrong, weights, words):
    net = Net()
    x, values = net.input("x", 1, 3, 4, 4), np.ones((1, 3, 3, 3), np.float32)
    if weights:
        values[0, 1, 1, 1] = wrong
        made = net("Conv", x, net.constant(values))
    else:
        made = net("Add", x, net.constant(np.asarray([0, wrong, 0]).reshape(1, 3, 1, 1)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        import_model(net.model(made))
    assert [bool(re.search(words, str(w.message))) for w in said] == [True] * bool(words)


def test_doubles_beyond_floats_are_limited_with_a_warning():
    net = Net()
    x = net.input("x", 1, 3, kind=TensorProto.DOUBLE)
    model = net.model(net("Add", x, net.constant([[1.0, -1e300, -np.inf]], np.float64)))
    with pytest.warns(UserWarning, match="1 constants are beyond float32"):
        graph = import_model(model)
    (constant,) = [layer.constant("weights") for layer in graph.layers if layer.type == "Constant"]
    np.testing.assert_array_equal(constant.reshape(-1), np.float32([1, np.finfo(np.float32).min, -np.inf]))


@pytest.mark.parametrize("operator", ["Pad", "OneHot"])
@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_numbers_beyond_32_bits_that_become_attributes_are_refused(operator, number):
    net = Net()
    x = net.input("x", 4, kind=TensorProto.INT64)
    given = (
        [net.ints(1, 1), net.constant(number, np.int64)] if operator == "Pad" else [net.ints(3), net.ints(0, number)]
    )
    with pytest.raises(RefusedModel) as raised:
        import_model(net.model(net(operator, x, *given)))
    assert f"has {number}, beyond int32" in str(raised.value.refusals[0])

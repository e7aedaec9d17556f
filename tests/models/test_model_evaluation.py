"""Evaluations: known networks and trained ones, in all forms of data, here and on processes of a cluster."""

import json
from pathlib import Path

import numpy as np
import pytest
from trained_digits import digits, write_model

import compassc
from compass_core.errors import CompassError
from compass_runtime import rpc
from compassc.evaluation import evaluate
from compassc.evaluation.data import load
from compassc.evaluation.running import Asked, Content, run_elsewhere, run_part
from compassc.evaluation.subjects import Subjects, framework_of
from compassc.models.ends import with_real_inputs
from compassc.models.model import Model
from tests.choosing import some

X, Y = digits()
TEST = {"image": X[1200:1240], "labels": Y[1200:1240]}


@pytest.fixture(scope="session")
def classifier(tmp_path_factory):
    """The folder of a quantised build."""
    folder = tmp_path_factory.mktemp("digits")
    file = write_model(folder / "digits.onnx")
    return compassc.compile(file, "X2_1204", calibrate=X[:50], folder=folder / "digits.compass")


@pytest.fixture(scope="session")
def found(classifier):
    return evaluate(classifier, TEST, detail=True)


def test_all_subjects_are_compared(found, classifier):
    assert [s.title for s in found.subjects] == ["ONNX Runtime", "float graph", "quantised graph", "simulator, X2_1204"]
    scores = classifier(TEST["image"])
    assert found.metric("top-1") == (scores.argmax(-1) == TEST["labels"]).mean() > 0.9
    assert found.metric("top-1", "framework") - found.metric("top-1") <= 0.025
    assert found.metric("top-5") > 0.97
    assert classifier.exact and found.agreement.first is None and found.agreement.total > len(TEST["labels"])
    floats, integers, simulator = (s.similarity for s in found.subjects[1:])
    assert floats.sqnr > 100 and 20 < integers.sqnr < 60 and integers.as_data() == simulator.as_data()


def test_layers_have_distances_ranges_and_cycles(found, classifier):
    rows = {row.layer: row for row in found.layers}
    assert found.layers[0].layer == "image" and len(rows) == len(found.layers)
    head, moved = rows["head"], rows["pool_post_transpose"]
    assert found.worst[0].similarity.sqnr == min(row.similarity.sqnr for row in found.layers)
    assert head.own.sqnr >= head.similarity.sqnr - 3 and moved.own.same, "what only moves adds no error"
    assert head.launch is not None and head.cycles > 100
    assert head.histogram.counts.sum() == 10 * found.samples and head.outside < 0.1
    low, high = head.limits
    assert (head.outside > 0) == (head.histogram.low < low or high < head.histogram.high) and high > 1
    data = json.loads(json.dumps(found.as_data()))
    assert data["samples"] == 40 and len(data["layers"]) == len(found.layers)
    assert sum(run.cycles for run in found.profile.layers) <= found.profile.cycles * 1.01


def test_the_profile_of_a_launch_is_its_part(found):
    parts = [found.profile.of_launch(i) for i in range(len(found.profile.layers))]
    for part, run in some(zip(parts, found.profile.layers, strict=True)):
        assert part.timeline.cycles == pytest.approx(run.cycles) and len(part.layers) == 1
        assert all(0 <= s.start <= s.end <= part.timeline.cycles + 1e-3 for s in part.timeline.spans)
    for place, cost in some(found.profile.lines.items()):
        assert sum(p.lines[place].work for p in parts if place in p.lines) == pytest.approx(cost.work)


def test_a_float_model_is_compared_tensor_by_tensor(model, lenet):
    x = np.load(lenet / "x0.npy")
    found = evaluate(model, {"x": np.concatenate([x, -x])}, profile=False)
    assert not found.metrics and found.profile is None and not model.quantised
    assert min(row.similarity.sqnr for row in found.layers) > 90 and len(found.layers) > 6


def test_half_floats_are_near_their_references_not_the_same(lenet, tmp_path):
    x = np.load(lenet / "x0.npy")
    made = compassc.compile(lenet / "model.onnx", "X2_1204", quantize="fp16")
    found = evaluate(made, {"x": np.concatenate([x, -x])}, profile=False)
    assert made.quantised and not made.exact and not found.agreement.total
    assert all(s.similarity.sqnr > 50 for s in found.subjects[1:]) and len(found.layers) > 5


def test_a_graph_that_came_quantised_is_compared_with_its_references(integers, lenet):
    found = evaluate(integers, {"x": np.load(lenet / "x0.npy")}, labels=[8])
    assert [s.name for s in found.subjects] == ["quantised graph", "simulator"] and not found.layers
    assert found.metric("top-1") == 1 and found.agreement.first is None and "not known" in found.missing


def test_parts_may_be_measured_anywhere_in_any_order(classifier, found):
    subjects = Subjects(classifier, framework_of(classifier))
    given = load(TEST, with_real_inputs(classifier.graph))
    content = Content.of(classifier, framework_of(classifier))
    first = run_elsewhere(content, content.key, given.part(range(3, 6)), Asked(detail=True))
    second = run_part(subjects, given.part(range(3)), Asked(detail=True))
    first.merge(second)
    here = run_part(subjects, given.part(range(6)), Asked(detail=True))
    apart, whole = (part.layers["head_0"].histogram.as_data() for part in (first, here))
    for key in ("low", "high"):  # more samples at once are summed up in another order
        assert apart.pop(key) == pytest.approx(whole.pop(key), rel=1e-6)
    assert apart == whole
    assert first.outputs["simulator"].cosine == pytest.approx(here.outputs["simulator"].cosine, rel=1e-6)
    assert first.agreement.first is None and first.count == 6


def test_references_may_be_asked_for_some_samples(classifier, found, compassc):
    from compassc.evaluation.table import text

    some = evaluate(classifier, TEST, profile=False, reference_samples=6)
    assert [s.samples for s in some.subjects] == [40, 6, 6, 40]
    assert "quantised graph, 6 samples" in text(some)
    assert some.metric("top-1") == found.metric("top-1") and some.metric("top-1", "quantised graph") in [
        i / 6 for i in range(7)
    ]
    assert all(row.similarity.samples == 6 for row in some.layers) and some.agreement.first is None
    alone = evaluate(classifier, TEST, profile=False, reference=False, reference_samples=6, limit=7)
    assert [s.similarity.samples for s in alone.subjects] == [6, 6, 6] and alone.subjects[-1].samples == 7
    np.savez("test.npz", **TEST)
    words = ["--data", "test.npz", "--limit", 9, "--reference-samples", 2]
    done = compassc("evaluate", classifier.folder, *words)
    assert done.status == 0 and "float graph, 2 samples" in done.out, done.err


def test_the_time_left_is_told():
    from compass_core.progress import time_left

    assert time_left(10, 10, 100) == ", 90 s left" and time_left(10, 10, 1000) == ", 16 min left"
    assert time_left(1, 99, 100) == "" and time_left(0, 0, 5) == ""


@pytest.mark.parametrize("kind", ["digits", "vision_transformer", "translation_gru"])
def test_integers_of_several_samples_are_those_of_each(kind, classifier, tmp_path):
    """To the bit, all tensors; and samples are indeed computed together."""
    if kind == "digits":
        made, samples = classifier, [{"image_0": x[None]} for x in X[:5]]
    else:
        from tests.networks.catalogue import NETWORKS

        source = NETWORKS[kind]()
        shape = [d.dim_value for d in source.graph.input[0].type.tensor_type.shape.dim]
        data = np.random.default_rng(0).normal(size=(5, *shape[1:])).astype("float32")
        made = compassc.compile(source, "X2_1204", calibrate=data)
        samples = [{made.inputs[0].name: x[None]} for x in data]
    rows = Subjects(made, None).integers
    raw = [made.raw_inputs(sample) for sample in samples]
    assert rows.at_once(raw) > 1
    whole = rows.values(raw)
    for i, one in enumerate(raw):
        for name, array in rows.values([one]).items():
            if name in made.graph.tensors() and rows.graph.producer()[name].type != "Constant":
                assert np.array_equal(whole[name].reshape(len(raw), -1)[i], array.reshape(-1)), name


def test_quantised_onnx_models_are_computed_unfused(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import load as read

    from benchmarks.onnx_runtime import quantised
    from compassc.evaluation.subjects import UNFUSED
    from tests.importers.networks import Net

    net = Net()
    y = net.conv(net.conv(net.input("x", 1, 3, 8, 8), 3, 4, norm=False), 4, 8, norm=False)
    model = quantised(net.model(y), [{"x": np.ones((1, 3, 8, 8), np.float32)}]).SerializeToString()
    kinds = {}
    for name, given in (("fused", {}), ("unfused", UNFUSED)):
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / name)
        options.log_severity_level = 3
        for key, value in given.items():
            options.add_session_config_entry(key, value)
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        kinds[name] = {node.op_type for node in read(tmp_path / name).graph.node}
    assert "QLinearConv" in kinds["fused"] and not any(kind.startswith("QLinear") for kind in kinds["unfused"])


def test_workers_of_a_cluster_give_the_same(classifier, found):
    distributed = pytest.importorskip("distributed", reason="the package distributed is not installed")
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        again = evaluate(classifier, TEST, detail=True, profile=False, scheduler=cluster.scheduler_address)
    assert again.metrics == found.metrics and again.agreement == found.agreement
    for one, other in zip(again.layers, found.layers, strict=True):
        assert one.histogram.as_data() == other.histogram.as_data() and one.outside == other.outside
        assert one.similarity.at == other.similarity.at
        assert one.similarity.mse == pytest.approx(other.similarity.mse)


def test_a_model_on_a_server_gives_the_same(classifier, found, compassc, tmp_path, monkeypatch):
    tokens = tmp_path / "tokens"
    tokens.write_text("e" * 40)
    tokens.chmod(0o600)
    monkeypatch.setenv("COMPASS_RPC_TOKENS", str(tokens))
    np.savez(tmp_path / "test.npz", **TEST)
    with rpc.Server(port=43000, port_end=43999, silent=True, token_file=tokens) as server:
        with rpc.connect(server.host, server.port) as session:
            classifier.rpc_sess = session
            try:
                there = evaluate(classifier, TEST, profile=False)
                with pytest.raises(CompassError, match="on one server"):
                    evaluate(classifier, TEST, jobs=2)
            finally:
                classifier.rpc_sess = None
        words = ("evaluate", classifier.folder, "--data", tmp_path / "test.npz", "--no-reference", "--json")
        done = compassc(*words, "--remote", f"{server.host}:{server.port}")
        assert compassc(*words, "--key", "x").status == 2
    assert there.metrics == found.metrics
    assert there.agreement.first is None and there.agreement.total == len(TEST["labels"])  # outputs alone
    assert done.status == 0 and json.loads(done.out)["samples"] == len(TEST["labels"]), done.err


def test_a_simulator_that_differs_is_told(classifier, monkeypatch):
    run = Model.run

    def wrong(self, sample, raw=False):
        return {name: array + np.asarray(1, array.dtype) for name, array in run(self, sample, raw).items()}

    monkeypatch.setattr(Model, "run", wrong)
    found = evaluate(classifier, TEST, limit=3, profile=False)
    assert found.agreement.first == (1, "head_0")
    from compassc.evaluation.evaluating import check
    from compassc.evaluation.table import text

    assert "2 of the simulator's" in text(found)
    with pytest.raises(CompassError, match="is not what the reference gives for sample 1"):
        check(found)


class Pairs:
    """A data set of samples with labels."""

    def __len__(self):
        return 5

    def __getitem__(self, index):
        return X[1200 + index], Y[1200 + index]


def test_data_come_in_many_forms(classifier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph = with_real_inputs(classifier.graph)
    x, y = X[1200:1205], Y[1200:1205]
    np.savez("a.npz", image=x, labels=y)
    np.save("x.npy", x)
    np.save("y.npy", y)
    Path("mine.py").write_text(
        "import numpy as np\n\n\nclass Data:\n    def __len__(self):\n        return 5\n\n"
        "    def __getitem__(self, i):\n        return np.load('x.npy')[i], int(np.load('y.npy')[i])\n"
    )
    for source, labels in (("a.npz", None), ("x.npy", "y.npy"), ("mine.py:Data", None), (Pairs(), None), (x, y)):
        data = load(source, graph, labels)
        assert len(data) == 5 and [int(label) for _, _, label in data.part(range(5))] == y.tolist()
        assert all(np.array_equal(s["image_0"][0], x[i]) for i, s, _ in data.part(range(5)))
    assert load("x.npy", graph).labels is None
    with pytest.raises(CompassError, match="4 labels for 5 samples"):
        load("x.npy", graph, y[:4])


def test_folders_of_images_are_classes(classifier, tmp_path):
    image = pytest.importorskip("PIL.Image")
    for i in range(6):
        folder = tmp_path / f"{Y[1200 + i]}"
        folder.mkdir(exist_ok=True)
        image.fromarray((X[1200 + i, 0] * 255).astype("uint8")).save(folder / f"{i}.png")
    data = load(tmp_path, with_real_inputs(classifier.graph))
    names = sorted({str(Y[1200 + i]) for i in range(6)})
    labels = {i: names.index(str(Y[1200 + i])) for i in range(6)}
    assert sorted(data.labels) == sorted(labels.values())
    (_, sample, label), *_ = data.part([0])
    assert sample["image_0"].max() > 100 and label == 0


def test_the_command_prints_tables_or_json(compassc, classifier, tmp_path):
    np.savez("test.npz", **TEST)
    Path("score.py").write_text(
        "def hits(outputs, labels):\n    return sum(o.argmax() == y for o, y in zip(outputs, labels))\n"
    )
    done = compassc("evaluate", classifier.folder, "--data", "test.npz", "--limit", 8, "--top", 2)
    assert done.status == 0, done.err
    assert "ONNX Runtime" in done.out and "bit for bit" in done.out and "... and" in done.out
    done = compassc(
        "evaluate", classifier.folder, "--data", "test.npz", "--limit", 8, "--json", "--metric", "score.py:hits"
    )
    assert json.loads(done.out)["subjects"][-1]["metrics"]["hits"] >= 7
    done = compassc(
        "evaluate", classifier.source, "--data", "test.npz", "--limit", 4, "--no-reference", "-t", "X2_1204"
    )
    assert done.status == 0 and "was not asked" in done.out and Path("digits.compass/aipu.bin").is_file()


def test_inputs_may_have_any_names(compassc):
    from onnx import TensorProto, helper, save

    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in ("my input", "b", "x=1", "o'u\"t")]
    nodes = [helper.make_node("Sub", ["my input", "b"], ["m"]), helper.make_node("Sub", ["m", "x=1"], ["o'u\"t"])]
    graph = helper.make_graph(nodes, "odd", ends[:3], ends[3:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "odd.onnx")
    arrays = [np.full((2, 4), n, np.float32) for n in (7, 2, 1)]
    np.savez("odd.npz", *arrays)
    done = compassc("evaluate", "odd.onnx", "--data", "odd.npz", "-t", "X2_1204", "--json")
    assert done.status == 0, done.err
    assert all(one["cosine"] > 0.999 for one in json.loads(done.out)["subjects"]), done.out


def test_a_build_of_another_form_is_left_alone(compassc, classifier):
    np.savez("test.npz", **TEST)
    words = ["--data", "test.npz", "--limit", 1, "--no-reference", "-t", "X2_1204"]
    built = compassc("build", classifier.source, "-t", "X2_1204", "--quantize", "fp16", "-o", "digits.bin")
    assert built.status == 0, built.err
    before = {path.name: path.read_bytes() for path in Path("digits.compass").iterdir() if path.is_file()}
    done = compassc("evaluate", classifier.source, *words)
    assert done.status == 0 and "digits.compass has another build, which is left alone" in done.err
    assert before == {path.name: path.read_bytes() for path in Path("digits.compass").iterdir() if path.is_file()}
    done = compassc("evaluate", classifier.source, *words, "--quantize", "fp16")
    assert done.status == 0 and "left alone" not in done.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--data", "no.npz"], 1, "cannot read 'no.npz'"),
        (["--data", "labels.npz"], 1, "error: 'labels.npz', sample 1: the label 99 is none of the 10 classes"),
        (["--data", "pictures.npz"], 1, "'pictures.npz', sample 0: the label of the shape [1, 8, 8] is none of the 10"),
        (["--data", "test.npz", "--labels", "half.npy"], 1, "'half.npy', sample 0: the label 0.5 is none of the 10"),
        (["--data", "shape.npz"], 1, "has the shape"),
        (["--data", "test.npz", "--metric", "x"], 2, "names no metric"),
        (["--data", "test.npz", "--scheduler", "tcp://127.0.0.1:1"], 1, "no Dask scheduler"),
    ],
)
def test_mistakes_are_named(compassc, classifier, monkeypatch, words, status, message):
    np.savez("test.npz", **TEST)
    np.savez("labels.npz", image=X[:2], labels=[3, 99])
    np.savez("pictures.npz", image=X[:2], labels=X[:2])
    np.save("half.npy", np.full(40, 0.5))
    np.savez("shape.npz", image=X[:2, :, :5], labels=[3, 9])
    if "--scheduler" in words:
        pytest.importorskip("distributed", reason="the package distributed is not installed")
        monkeypatch.setattr("compassc.cluster.dask_workers.WAIT_SECONDS", 1)
    done = compassc("evaluate", classifier.folder, *words)
    assert done.status == status and message in done.err
    assert len(done.err.splitlines()) <= 2


def test_a_folder_must_be_that_of_a_build(compassc, classifier, tmp_path):
    (tmp_path / "empty").mkdir()
    np.savez("test.npz", **TEST)
    assert "no build.yaml" in compassc("evaluate", "empty", "--data", "test.npz").err
    copied = Model.load(classifier.export(tmp_path / "copy"))
    assert np.array_equal(copied(X[:2]), classifier(X[:2])) and copied.quantised
    (tmp_path / "copy" / "aipu.bin").write_bytes(b"")
    assert "not there any more" in compassc("evaluate", "copy", "--data", "test.npz").err


def test_equalised_graphs_are_compared_with_what_they_stand_for(tmp_path):
    from compassc.graph import GraphBuilder
    from compassc.quantizer import Settings

    rng = np.random.default_rng(0)
    g = GraphBuilder("uneven")
    tensor = g.input("x_0", (1, 16), "float32")
    for name, size, scale in (("a", 12, np.r_[300.0, np.ones(11)]), ("b", 4, np.ones(4))):
        weights = (rng.normal(size=(size, tensor.shape[1])) * scale[:, None]).astype("float32")
        if name == "b":
            weights[:, 0] /= 300
        given = {"num_output": size, "with_activation": "RELU" if name == "a" else "NONE"}
        constants = {"weights": weights, "biases": np.zeros(size, np.float32)}
        outputs = [((1, size), "float32")]
        (tensor,) = g.layer(
            "FullyConnected", [tensor], name=name, outputs=outputs, attributes=given, constants=constants
        )
    x = rng.normal(size=(30, 16)).astype("float32")
    settings = Settings.preset("int8", equalise=True)
    made = compassc.compile(g.finish([tensor]), "X2_1204", calibrate=x, quantize=settings, folder=tmp_path)
    assert (tmp_path / "even.txt").is_file()
    for model in (made, Model.load(tmp_path)):
        assert min(row.similarity.cosine for row in evaluate(model, x, profile=False).layers) > 0.99

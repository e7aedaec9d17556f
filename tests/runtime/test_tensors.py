"""The tensors inside a graph: dumped, compared, as real numbers; progress and profiles by layer."""

import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from compass_core.aipubin import read, write
from compass_core.aipubin.fields import replace
from compass_core.aipubin.graphnote import GraphNote, NotedLaunch, NotedTensor, read_note
from compass_runtime import Program
from compass_runtime.cli import main
from compass_runtime.progress import Progress
from compass_runtime.quantisation import Quantisation
from compass_runtime.tensors import all_tensors, file_name, inner_tensors
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter
from compassc.layers import arithmetic

LENET = Path(__file__).parents[1] / "data" / "graphs" / "lenet" / "default.txt"


@pytest.fixture(scope="module")
def known():
    names = json.loads(LENET.with_suffix(".names.json").read_text())
    with np.load(LENET.with_suffix(".npz")) as arrays:
        return {name: arrays[f"arr_{i}"] for i, name in enumerate(names)}


@pytest.fixture(scope="module")
def lenet(tmp_path_factory, known):
    folder = tmp_path_factory.mktemp("lenet")
    np.save(folder / "x.npy", known["x_0"])
    np.savez(folder / "known.npz", **known)
    build_model(
        LENET, LENET.with_suffix(".bin"), folder / "aipu.bin", "X2_1204", GraphOptions(work_dir=folder / "kernels")
    )
    return folder / "aipu.bin"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs compass-run on a program with the known input."""

    def start(program, *words, given="x.npy"):
        monkeypatch.chdir(program.parent)
        with pytest.raises(SystemExit) as end:
            main([str(program), "--inputs", str(program.parent / given), *map(str, words)])
        return Done(end.value.code, *capsys.readouterr())

    return start


def activations():
    """Two layers, and what they make of ones."""
    graph = GraphWriter()
    x = graph.input("x", (3, 40), "float32")
    inner = graph.layer("Activation", [x], (3, 40), "float32", method="RELU")
    top = graph.layer("Activation", [inner], (3, 40), "float32", method="RELU6")
    return graph, inner, top


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3", "X3P_1304"])
@pytest.mark.parametrize("fuse", [True, False])
def test_what_is_fused_is_named_as_inside_a_kernel(target, fuse, tmp_path):
    graph, inner, top = activations()
    text = graph.write(tmp_path, [top])
    options = GraphOptions(work_dir=tmp_path / "kernels", fuse=fuse)
    program = Program.load(build_model(text, tmp_path / "weight.bin", tmp_path / "a.bin", target, options).path)
    job, x = program.create_job(), np.linspace(-9, 9, 120, dtype="float32").reshape(3, 40)
    found = all_tensors(job, {"x": x})
    wanted = {top: np.clip(x, 0, 6)} | ({} if fuse else {inner: np.maximum(x, 0)})
    assert inner_tensors(program) == ([inner] if fuse else [])
    for outputs in (found, found | job.run({"x": x})):  # the whole chain runs as before
        assert set(outputs) == set(wanted)
        for name, array in wanted.items():
            np.testing.assert_array_equal(outputs[name], array)


def test_every_tensor_is_as_known(lenet, known):
    job = Program.load(lenet).create_job()
    found = all_tensors(job, {"x_0": known["x_0"]})
    assert set(found) == set(known) - {"x_0"}
    for name, array in found.items():
        np.testing.assert_array_equal(array, known[name], name)
    again = job.run({"x_0": known["x_0"]})  # the whole chain runs as before
    np.testing.assert_array_equal(again["/11/Gemm_0"], known["/11/Gemm_0"])


def test_a_dump_has_a_file_for_every_tensor_and_compares_equal(lenet, known, tmp_path, run):
    done = run(lenet, "--dump-layers", tmp_path, "-o", tmp_path / "out.raw")
    assert done.returncode == 0, done.stderr
    wanted = {file_name(name) for name in known if name != "x_0"}
    assert {p.name for p in tmp_path.glob("*.npy")} == wanted
    for place in (tmp_path, lenet.parent / "known.npz"):
        done = run(lenet, "--compare", place, "--json")
        rows = json.loads(done.stdout)["compared"]
        assert done.returncode == 0 and len(rows) == len(wanted)
        assert all(r["equal"] and r["within"] and r["largest"] == 0 and r["cosine"] > 0.999999 for r in rows)


def test_differences_are_measured_and_count_beyond_the_tolerance(lenet, known, tmp_path, run):
    name = "/2/MaxPool_0"
    changed = known[name].astype("int16")
    changed.reshape(-1)[3] += 5
    np.save(tmp_path / file_name(name), changed)
    done = run(lenet, "--compare", tmp_path, "--json")
    (row,) = json.loads(done.stdout)["compared"]
    assert (done.returncode, row["different"], row["largest"], row["within"]) == (1, 1, 5, False)
    assert name in done.stderr
    assert run(lenet, "--compare", tmp_path, "--atol", 5).returncode == 0
    np.save(tmp_path / file_name(name), changed[:, 1:])
    done = run(lenet, "--compare", tmp_path)
    assert done.returncode == 1 and "elements expected" in done.stdout


def test_float_takes_the_real_numbers(lenet, known, tmp_path, run):
    program = Program.load(lenet)
    (info,) = program.inputs
    copy = tmp_path / "aipu.bin"
    copy.write_bytes(lenet.read_bytes())
    np.save(tmp_path / "x.npy", info.quantisation.real(known["x_0"]))
    done = run(copy)
    assert done.returncode == 1 and "--float takes real numbers" in done.stderr
    assert run(copy, "--float", "-o", "y.npy").returncode == 0
    (output,) = program.outputs
    assert np.array_equal(np.load(tmp_path / "y.npy"), output.quantisation.real(known["/11/Gemm_0"]))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16"])
def test_numbers_are_quantised_as_layers_do(name):
    dtype, rng = np.dtype(name), np.random.default_rng(1)
    limits = np.iinfo(dtype)
    values = np.concatenate([rng.normal(0, 10.0**k, 400) for k in range(-3, 8)]).astype("float32")
    values = np.concatenate([values, [np.inf, -np.inf, np.nan], np.arange(-20, 20) / np.float32(8)]).astype("float32")
    for scale, zero in ((4.0, 0), (0.37, -100), (183.25, 128), (1e-6, 3), (1e8, 0)):
        ours, theirs = Quantisation(scale, zero), (np.float32(scale), zero)
        elements = ours.integers(values, dtype)
        assert np.array_equal(elements, arithmetic.quantise(values, *theirs, limits.min, limits.max))
        assert np.array_equal(ours.real(elements), arithmetic.dequantise(elements.astype("int64"), *theirs))


def test_nothing_to_compare_is_an_error(lenet, tmp_path, run):
    np.save(tmp_path / "other.npy", np.zeros(3))
    for place, word in ((tmp_path, "other"), (lenet, "neither")):
        done = run(lenet, "--compare", place)
        assert done.returncode == 1 and word in done.stderr
    assert run(lenet, "--compare", tmp_path, "--profile").returncode == 2


def test_float_takes_real_numbers(lenet, known, tmp_path, run):
    (info,) = Program.load(lenet).inputs
    reals = info.quantisation.real(known["x_0"])
    assert np.array_equal(info.quantisation.integers(reals, info.numpy_dtype), known["x_0"])
    np.save(tmp_path / "reals.npy", reals)
    done = run(lenet, "--float", "-o", tmp_path / "y.npy", given=tmp_path / "reals.npy")
    assert done.returncode == 0, done.stderr
    run(lenet, "--float", "-o", tmp_path / "z.npy")
    assert np.array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "z.npy"))
    done = run(lenet, given=tmp_path / "reals.npy")
    assert done.returncode == 1 and "--float" in done.stderr


def test_an_array_with_its_axes_in_another_order_is_refused(lenet, known, tmp_path, run):
    x = known["x_0"]
    turned = np.ascontiguousarray(x.reshape(x.shape[0], x.shape[2], x.shape[3], x.shape[1]))
    wide = x.reshape(x.shape[0], x.shape[1], x.shape[2] // 2, -1)
    for given, allowed in ((turned, x.shape[1] == 1), (wide, False), (x.reshape(-1), True), (x[None], True)):
        np.save(tmp_path / "given.npy", given)
        done = run(lenet, "-o", tmp_path / "y.npy", given=tmp_path / "given.npy")
        assert (done.returncode == 0) == allowed, (given.shape, done.stderr)
        if not allowed:
            shapes = ["x".join(map(str, shape)) for shape in (x.shape, given.shape)]
            assert f"'x_0' has the shape {shapes[0]}, but the array {shapes[1]}" in done.stderr


def test_samples_along_a_first_axis_run_one_after_the_other(lenet, known, tmp_path, run):
    x = known["x_0"]
    apart = []
    for each in (x, x[..., ::-1].copy(), -x):
        np.save(tmp_path / "one.npy", each)
        assert run(lenet, "-o", tmp_path / "y.npy", given=tmp_path / "one.npy").returncode == 0
        apart.append(np.load(tmp_path / "y.npy"))
    for many in (np.concatenate, np.stack):
        np.save(tmp_path / "many.npy", many([x, x[..., ::-1], -x]))
        done = run(lenet, "-o", tmp_path / "y.npy", given=tmp_path / "many.npy")
        assert "3 samples, one after the other" in done.stdout, done.stderr
        assert np.array_equal(np.load(tmp_path / "y.npy"), np.concatenate(apart))
    done = run(lenet, "--check", "all", given=tmp_path / "many.npy")
    assert done.returncode == 2 and "--check: one run is looked at, but the inputs have 3 samples" in done.stderr
    np.save(tmp_path / "none.npy", x[:0])
    done = run(lenet, given=tmp_path / "none.npy")
    assert done.returncode == 1 and "has no samples" in done.stderr


def test_numbers_that_no_integer_stands_for_are_refused(lenet, known, tmp_path, run):
    reals = np.zeros(known["x_0"].shape, np.float32)
    reals.flat[7] = np.nan
    np.save(tmp_path / "reals.npy", reals)
    done = run(lenet, "--float", "-o", tmp_path / "y.npy", given=tmp_path / "reals.npy")
    assert done.returncode == 1 and "has NaN, which no element of 'x_0' (int8) stands for" in done.stderr


def test_integers_are_the_nearest_in_the_range_of_the_type():
    spread = Quantisation((2.0, 4.0), (0, 1), 1)
    found = spread.integers(np.array([[0.25, 0.5], [1000, np.nan], [-np.inf, -1]]), np.dtype("int8"))
    assert found.tolist() == [[0, 1], [127, 0], [-128, -5]]


def test_float_gives_the_real_numbers(lenet, known, tmp_path, run):
    done = run(lenet, "--float", "--dump-layers", tmp_path, "-o", tmp_path / "y.npy")
    assert done.returncode == 0, done.stderr
    program = Program.load(lenet)
    (info,) = program.outputs
    want = known["/11/Gemm_0"].astype("float32") / np.float32(info.quantisation.scale)
    assert (tmp_path / "y.npy").stat().st_size and info.quantisation.scale > 1
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), want, rtol=1e-6)
    scales = {t.name: t.scale for t in program.note.tensors}
    for name, scale in scales.items():
        got = np.load(tmp_path / file_name(name))
        np.testing.assert_allclose(got, known[name] / scale, rtol=1e-6)
    # known reals are compared with what the integers stand for
    np.savez(tmp_path / "reals.npz", **{n: (known[n] / s).astype("float32") for n, s in scales.items()})
    assert run(lenet, "--compare", tmp_path / "reals.npz", "--rtol", 1e-5).returncode == 0


def test_real_numbers_follow_zero_points_and_channels():
    q = np.arange(-3, 3, dtype="int8").reshape(2, 3)
    np.testing.assert_array_equal(Quantisation(2.0, 1).real(q), (q + np.float32(1)) / 2)
    per = Quantisation((2.0, 4.0, 8.0), (0, 1, 2), axis=1)
    np.testing.assert_array_equal(per.real(q), (q + np.array([0, 1, 2])) / np.array([2.0, 4.0, 8.0]))
    assert Quantisation(4.0).real(q.astype("float16")).dtype == np.float32


def test_a_profile_names_the_layers(run, tmp_path):
    graph, _, top = activations()
    text = graph.write(tmp_path, [top])
    options = GraphOptions(work_dir=tmp_path / "kernels", fuse=False)
    path = build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", "X2_1204", options).path
    np.save(tmp_path / "x.npy", np.ones((3, 40), "float32"))
    done = run(path, "--profile", "--json")
    profile = json.loads(done.stdout)["profile"]
    assert [launch["layers"] for launch in profile["launches"]] == ["activation_1", "activation_2"]
    for key in ("dma_bytes", "device_memory_bytes"):
        assert sum(launch[key] for launch in profile["launches"]) == profile["total"][key] > 0
    table = run(path, "--profile").stdout
    assert "activation_2" in table and "type of layer" in table


def test_progress_shows_the_running_layer_on_a_terminal_only(lenet, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    program = Program.load(lenet)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not Progress.wanted(program)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("compass_runtime.progress._QUIET", 0.0)
    monkeypatch.setattr("compass_core.progress.PAUSE", 0.0)
    assert Progress.wanted(program)
    progress = Progress(program)
    progress.after(3)
    progress.clear()
    assert "launch 4 of 9 /3/Conv" in sys.stderr.getvalue() and sys.stderr.getvalue().endswith("\x1b[K")


def test_a_log_has_lines_of_progress_where_it_is_asked_for(lenet, monkeypatch):
    program = Program.load(lenet)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("compass_core.progress.LOG_PAUSE", 0.0)
    assert Progress.wanted(program, verbose=True)
    progress = Progress(program)
    progress.after(3)
    progress.after(4)
    progress.clear()
    first, second = sys.stderr.getvalue().splitlines()
    assert first.startswith("launch 4 of 9 /3/Conv") and second.startswith("launch 5 of 9 ")


NOTE = GraphNote(
    (NotedTensor("x", "int8", (1, 4), 2.5, 3),),
    (NotedTensor("y", "float32", (4,), section=1, made=0),),
    (NotedTensor("t", "uint8", (2, 2), (1.5, 2.5), (0, 1), 1, 2, 64, 0),),
    (NotedLaunch(("a", "b"), ("Add", "Relu"), "k", ("x",), ("t",), ("u",)),),
)


def test_notes_read_back_as_they_were_written():
    assert read_note(NOTE.to_bytes()) == NOTE


BROKEN = [
    ("scale", 0),
    ("scale", "x"),
    ("scale", [1.0]),
    ("dtype", "int99"),
    ("shape", [1.5]),
    ("shape", 3),
    ("axis", 7),
    ("place", [-1, 0, 0]),
    ("place", [0, -64, 0]),
    ("place", [0]),
    ("name", "a\nb"),
    ("zero_point", 1e999),
]


@pytest.mark.parametrize(("key", "value"), BROKEN)
def test_notes_that_say_what_cannot_be_are_not_believed(key, value):
    content = json.loads(NOTE.to_bytes())
    content["tensors"][0][key] = value
    assert read_note(json.dumps(content).encode()) is None


def test_a_place_outside_of_the_memory_is_refused(lenet, known):
    content = read(lenet.read_bytes())
    note = read_note(content.graph_json)
    for place in ({"section": 99}, {"section": 2, "offset": 1 << 30}, {"section": 2, "shape": (1 << 30,)}):
        far = GraphNote(note.inputs, note.outputs, (replace(note.tensors[0], **place),), note.launches)
        job = Program.load(write(replace(content, graph_json=far.to_bytes()))).create_job()
        with pytest.raises(Exception, match="does not lie in the program's memory"):
            all_tensors(job, {"x_0": known["x_0"]})

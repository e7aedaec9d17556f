"""The picture of a graph: all launches and tensors are on it, whatever they are called, and it needs nothing else."""

import json
from html.parser import HTMLParser

import pytest

from compass_core.aipubin import read
from compass_core.aipubin.graphnote import GraphNote, NotedLaunch, NotedTensor, read_note
from compass_core.errors import CompassError
from compassc.cli import errors
from compassc.cli.main import cli
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.page import graph_page
from compassc.gbuilder.writer import GraphWriter

VOID = {"meta"}
EVIL = '<script>alert("&x")</script>'


class Page(HTMLParser):
    """The tags that are open, and all text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not {"src", "href"} & {name for name, _ in attributes}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A graph with a branch, two fused layers and a view, and its aipu.bin."""
    folder = tmp_path_factory.mktemp("graph")
    made = GraphWriter()
    x = made.input("x", (4, 40), "float32")
    relu = made.layer("Activation", [x], (4, 40), "float32", method="RELU")
    flat = made.layer("Reshape", [relu], (160,), "float32")
    left = made.layer("Activation", [flat], (160,), "float32", method="TANH", layer_name="left")
    right = made.layer("Activation", [flat], (160,), "float32", method="RELU6")
    top = made.layer("Add", [left, right], (160,), "float32")
    text = made.write(folder, [made.layer("Activation", [top], (160,), "float32", method="RELU")])
    build_model(text, folder / "weight.bin", folder / "aipu.bin", "X2_1204", GraphOptions(work_dir=folder / "kernels"))
    return text, read((folder / "aipu.bin").read_bytes())


def test_all_launches_and_tensors_are_on_the_page(graph):
    _, content = graph
    note = read_note(content.graph_json)
    text = graph_page(content, note, "a graph", [10.0 * (i + 1) for i in range(len(note.launches))])
    page = Page(text)
    words = " ".join(page.words)
    assert not page.open and "http:" not in text and "https:" not in text and "url(" not in text
    for launch in note.launches:
        assert launch.label in words and launch.kernel in words
    for tensor in (*note.tensors, *note.outputs):
        assert tensor.name in words
    assert page.tags.count("rect") >= 2 * len(note.launches) + len(note.tensors)


def test_names_are_only_text(graph):
    _, content = graph
    tensors = tuple(NotedTensor(EVIL + str(i), "int8", (4,), section=2, made=i) for i in range(2))
    note = GraphNote(
        tensors[:1], tensors[1:], tensors, (NotedLaunch((EVIL,), (EVIL,), EVIL, (EVIL + "0",), (EVIL + "1",)),)
    )
    page = Page(graph_page(content, note, EVIL, [1.0]))
    assert "script" not in page.tags and EVIL in " ".join(page.words)


def test_cycles_of_another_graph_are_refused(graph):
    _, content = graph
    with pytest.raises(CompassError, match="1 launches"):
        graph_page(content, read_note(content.graph_json), "", [1.0])


def test_gbuild_writes_the_page(graph, tmp_path, capsys):
    text, content = graph
    launches = len(read_note(content.graph_json).launches)
    profile = {"profile": {"launches": [{"start": 5 * i, "end": 5 * i + 4} for i in range(launches)]}}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    (tmp_path / "other.json").write_text("{}")
    words = ["gbuild", str(text), "-w", str(text.parent / "weight.bin"), "-o", str(tmp_path / "aipu.bin"), "--html"]
    for more in ([], ["--profile", str(tmp_path / "profile.json")]):
        assert errors.run(cli, [*words, str(tmp_path / "g.html"), *more]) == 0
        assert ("cycles (estimated)" in (tmp_path / "g.html").read_text()) == bool(more)
    assert errors.run(cli, [*words, str(tmp_path / "g.html"), "--profile", str(tmp_path / "other.json")]) == 1
    assert "no profile of a run" in capsys.readouterr().err


def test_lines_lead_through_views(tmp_path):
    """A launch reads what another made, though under the name of a view of it; what both read stands in a lane of its own."""
    from compassc.gbuilder.picture import _Lanes, _reads

    made = GraphWriter()
    x = made.input("x", (4, 64), "float32")
    parts = [made.layer("Activation", [x], (4, 64), "float32", method=m, layer_name=m) for m in ("TANH", "SIGMOID")]
    whole = made.layer("Concat", parts, (8, 64), "float32", axis=0)
    flat = made.layer("Reshape", [whole], (512,), "float32")
    one = made.layer("Reduce", [flat], (1,), "float32", method="SUM", axis=[0], layer_name="sum")
    text = made.write(tmp_path, [made.layer("Mul", [flat, one], (512,), "float32")])
    build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", "X2_1204", GraphOptions(work_dir=tmp_path / "k"))
    note = read_note(read((tmp_path / "aipu.bin").read_bytes()).graph_json)
    assert note is not None
    tensors = {t.name: t for t in (*note.inputs, *note.tensors, *note.outputs)}
    reads = _reads(note, tensors)
    ends = {t.name for t in note.inputs} | {name for run in note.launches for name in run.outputs}
    assert all(names and set(names) <= ends for names in reads)
    by_layer = {name: set(names) for run, names in zip(note.launches, reads, strict=True) for name in run.names}
    shared = by_layer["sum"]
    assert shared < by_layer[note.launches[-1].names[0]]
    lanes = _Lanes(note, reads)
    assert len({lanes.place((), (t.name,)) for t in note.inputs}) == 1
    placed = [lanes.place(names, run.outputs) for names, run in zip(reads, note.launches, strict=True)]
    assert placed[-2] not in {lanes.of[name] for name in shared}

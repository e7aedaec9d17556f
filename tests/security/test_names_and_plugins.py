"""Names from files are data, and plugins run only when the user names them."""

from __future__ import annotations

import copy
import json
import shutil

import pytest

from compass_core.aipubin import read, write
from compass_core.aipubin.kernelinfo import KernelInfo
from compass_core.elf.hostcode import HostCodeError, make_text_blob, parse_text_blob
from compass_core.errors import CompassError
from compass_core.reading import names
from compass_runtime import Program
from compassc.gbuilder import build_from_params
from compassc.graph.sections import CompassIR, Section, format_ir, parse

BAD = (
    "a\nb",
    "a b",
    "a;b",
    "a'b",
    'a"b',
    "a\\b",
    "a/b",
    "../a",
    "-a",
    "",
    "a\0b",
    "a\x1b[2J",
    "$(a)",
    "`a`",
    "a\u2028b",
    "a\u202eb",
    "a\rb",
    "0a",
    "a" * 1000,
    "a-b",
    "a.b",
    "{a}",
    "%s",
    "a=b",
)
MARK = "open('executed', 'w').close()"
EVIL = f"{MARK}\n"


@pytest.fixture
def built(honest, tmp_path):
    """A folder with the files of a build: k.o, k.params.json, the graph, the plugin."""
    folder = tmp_path / "files"
    shutil.copytree(honest.parent, folder)
    return folder


@pytest.mark.parametrize("bad", BAD, ids=ascii)
def test_what_is_no_identifier_is_no_name(bad):
    assert not names.is_name(bad) and not names.is_symbol(bad)
    for check in (names.name, names.symbol):
        with pytest.raises(CompassError, match="is no name") as caught:
            check(bad, "thing")
        assert caught.value.code == "bad-name" and str(caught.value).isprintable()


def test_names_are_those_of_python_and_symbols_those_of_c():
    assert names.is_name("größe") and not names.is_symbol("größe") and names.is_symbol("__compass_entry_k2")


@pytest.mark.parametrize("bad", BAD, ids=ascii)
def test_an_entry_symbol_is_a_symbol(honest, bad):
    program = Program.load(honest)
    with pytest.raises(HostCodeError):
        make_text_blob(program.code.elf, [bad], program.code.features, program.code.triple)
    if "\0" in bad or len(bad) > 47:  # in the field they would be other names
        return
    text = program.content.text
    (symbol, offset) = program.code.entries[0]
    field = bad.encode()[:47].ljust(48, b"\0")
    at = text.index(symbol.encode(), offset)
    with pytest.raises(HostCodeError, match="damaged"):
        parse_text_blob(text[:at] + field + text[at + 48 :])


@pytest.mark.parametrize("where", ["kernel", "target", "param", "dim"])
@pytest.mark.parametrize("bad", BAD, ids=ascii)
def test_names_in_notes_and_params_are_names(honest, where, bad):
    info = read(honest.read_bytes()).kernel.to_json()
    place = {"kernel": info, "target": info, "param": info["params"][0], "dim": info["params"][0]}[where]
    place[{"param": "name", "dim": "dims"}.get(where, where)] = [bad] if where == "dim" else bad
    with pytest.raises(CompassError) as caught:
        KernelInfo.from_json(info, "here")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("bad", ["a\nb", "a b"])
def test_the_writer_refuses_them_too(honest, bad):
    from dataclasses import replace

    content = read(honest.read_bytes())
    with pytest.raises(CompassError):
        write(replace(content, kernel=replace(content.kernel, kernel=bad)))


@pytest.mark.parametrize("bad", ["a\x1bb", "a\rb", "a\0b", "a\u2028b"], ids=ascii)
def test_labels_in_a_graph_can_be_printed(bad):
    with pytest.raises(CompassError, match="cannot be printed"):
        parse(f"model_name={bad}\n")
    with pytest.raises(CompassError, match="cannot be written"):
        format_ir(CompassIR(Section({"model_name": bad}), []))


INJECTIONS = {
    "name": lambda p: p["params"][0].update(name=f"a\n        {MARK}  #"),
    "name of a scalar": lambda p: p["params"].append(
        {"name": f"n\n        {MARK}  #", "kind": "scalar", "dtype": "int32", "role": "attr", "value": 1}
    ),
    "name of a constant": lambda p: p["params"].append(
        {
            "name": f'c"] + {MARK} + ["',
            "kind": "pointer",
            "dtype": "int32",
            "role": "const",
            "scope": "global.1",
            "shape": [1],
        }
    ),
    "kernel": lambda p: p.update(kernel=f'k"""\n{MARK}\n"""'),
    "kernel as class": lambda p: p.update(kernel=f"k: pass\n{MARK}\nclass x"),
    "other": lambda p: p.update(more=f'"""\n{MARK}\n"""'),
    "target": lambda p: p.update(target=f"X2_1204'\n{MARK}"),
}


@pytest.mark.parametrize("injection", INJECTIONS)
def test_nothing_in_params_is_executed(compassc, built, tmp_path, injection):
    path = built / "k.params.json"
    params = json.loads(path.read_text())
    INJECTIONS[injection](params)
    path.write_text(json.dumps(params))
    done = compassc("gbuild", built / "k.o", "-o", tmp_path / "aipu.bin")
    assert done.status in (0, 1) and "Traceback" not in done.err
    assert not (tmp_path / "executed").exists() and not (built / "executed").exists()
    for plugin in built.glob("aipubt_*.py"):
        compile(plugin.read_text(), str(plugin), "exec")
        assert f"\n{MARK}" not in plugin.read_text().replace("\n        ", "\n")


def test_the_plugin_beside_an_object_does_not_run(compassc, built, tmp_path):
    for name in ("aipubt_evil.py", "aipubt_gb_k.py", "AIPUBuilder.py", "numpy.py", "json.py"):
        (built / name).write_text(EVIL)
    assert compassc("gbuild", built / "k.o", "-o", tmp_path / "aipu.bin").status == 0
    assert not (tmp_path / "executed").exists()


def test_the_plugin_beside_a_graph_runs_when_it_is_named(compassc, built, tmp_path):
    plugin = built / "aipubt_gb_k.py"
    plugin.write_text(EVIL + plugin.read_text())
    graph, weights = built / "compass_ir.txt", built / "compass_ir.bin"
    arguments = ("gbuild", graph, "-w", weights, "-t", "X2_1204", "-o", tmp_path / "again.bin")
    done = compassc(*arguments)
    assert done.status == 1 and "aipubt_gb_k.py, which was not loaded" in done.err and "--plugins" in done.err
    assert not (tmp_path / "executed").exists()
    for named in (built, plugin):
        assert compassc(*arguments, "--plugins", named).status == 0
        assert (tmp_path / "again.bin").read_bytes() == (built / "aipu.bin").read_bytes()
        (tmp_path / "executed").unlink()


def test_a_name_outside_of_ascii_is_built(honest, built, tmp_path):
    params = copy.deepcopy(json.loads((built / "k.params.json").read_text()))
    params["params"][0]["name"] = "größe"
    path = build_from_params(params, built / "k.o", tmp_path / "out", tmp_path / "aipu.bin")
    assert Program.load(path).params[0].name == "größe"


def test_labels_of_a_foreign_graph_are_not_believed_when_they_cannot_be_printed(honest):
    from dataclasses import replace

    content = read(honest.read_bytes())
    note = json.dumps({"inputs": [], "outputs": [{"name": "a\x1b[2J", "shape": [4], "dtype": "int32"}]}).encode()
    program = Program(replace(content, kernel=None, graph_json=note), "here")
    assert [info.name for info in program.outputs] == ["output0"]


def test_a_path_does_not_become_a_recipe_for_make(tmp_path):
    from compassc.driver.record import write_depfile

    folder = tmp_path / "a\n\ttouch executed"
    with pytest.raises(CompassError, match="make"):
        write_depfile(tmp_path / "rules.d", tmp_path / "aipu.bin", tmp_path / "kernel.py", [folder / "more.py"])

"""No command writes over what it reads, or writes two things into one file: derived from the types of its parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import pytest

from compass_core.files import claims
from compassc.cli import aipugb, options
from compassc.cli.main import COMMANDS, cli
from compassc.graph import GraphBuilder
from compassc.graph import files as graph_files

NAMES = [name for section in COMMANDS.values() for name in section]
INPUTS, OUTPUTS = (options.InputPath, options.Source), options.OutputPath
CONTENT = b"x"


def command_of(name: str) -> click.Command:
    found = aipugb.command if name == "aipugb" else cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def is_input(one: click.Parameter) -> bool:
    return isinstance(one.type, INPUTS) or one.name == "consts"


class Pair(NamedTuple):
    """Two parameters of a command that must not name the same file; the second one is an output."""

    command: str
    first: str
    second: str


def pairs() -> Iterator[Pair]:
    for name in [*NAMES, "aipugb"]:
        parameters = command_of(name).params
        outputs = [str(p.name) for p in parameters if isinstance(p.type, OUTPUTS)]
        for at, second in enumerate(outputs):
            firsts = [str(p.name) for p in parameters if is_input(p)] + outputs[:at]
            yield from (Pair(name, first, second) for first in firsts)


def words_of(parameter: click.Parameter, file: str) -> list[str]:
    """A parameter as it stands on a command line."""
    value = f"w={file}" if parameter.name == "consts" else file
    return [value] if isinstance(parameter, click.Argument) else [parameter.opts[-1], value]


def line(pair: Pair, first: str, second: str) -> list[str]:
    """The words for a command; what it needs besides the two gets any value."""
    given = {pair.first: first, pair.second: second}
    words: list[str] = []
    for p in command_of(pair.command).params:
        if str(p.name) in given:
            words += words_of(p, given[str(p.name)])
        elif isinstance(p, click.Argument) and p.required or p.name == "source":
            words += [p.type.choices[0]] if isinstance(p.type, click.Choice) else words_of(p, "other.py")
        elif p.required:
            words += words_of(p, "other.py")
    return words


def refused(pair: Pair, first: str, second: str) -> bool:
    with claims.command():
        try:
            command_of(pair.command).make_context(pair.command, line(pair, first, second))
        except click.UsageError as error:
            raise AssertionError(f"{pair}: {error.format_message()}") from error
        except options.UsageError as error:
            assert error.code == claims.CODE and error.exit_code == 2, error
            return True
    return False


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("x.py", "other.py"):
        Path(name).write_bytes(CONTENT)
    Path("link").symlink_to("x.py")
    os.link("x.py", "hard")
    Path("sub").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", [*NAMES, "aipugb"])
def test_every_file_is_declared(name):
    """As one that is read or written: by a type of `options`, of which the rule follows."""
    others = [p for p in command_of(name).params if not isinstance(p.type, (*INPUTS, OUTPUTS))]
    files = [p.name for p in others if isinstance(p.type, click.Path) and p.type.file_okay]
    called = [p.name for p in others if (p.metavar or "").startswith(("FILE", "DATA"))]
    assert not files, f"{name}: files that are neither read nor written"
    assert not set(called) - {"clang", "prof_unit"}


@pytest.mark.parametrize("pair", list(pairs()), ids=lambda pair: "-".join(pair))
def test_an_output_is_neither_an_input_nor_another_output(pair):
    """Under any name of the file."""
    for one, other in (
        ("x.py", "x.py"),
        ("x.py", "./sub/../x.py"),
        ("link", "x.py"),
        ("x.py", "link"),
        ("x.py", "hard"),
    ):
        assert refused(pair, one, other), (one, other)
    assert not refused(pair, "x.py", "new.bin")


def test_a_program_of_samples_is_an_input():
    assert refused(Pair("evaluate", "data", "html"), "x.py:DATA", "x.py")


def test_files_that_are_not_there_are_told_apart_by_their_place():
    pair = Pair("evaluate", "html", "html")
    with claims.command():
        claims.writes(Path("new"), "-o")
        claims.writes(Path("sub/new"), "--html")
        claims.writes(Path("/dev/null"), "-o")
        claims.writes(Path("/dev/null"), "--html")
        with pytest.raises(options.UsageError, match="both -o and --html are"):
            claims.writes(Path("sub/../new"), "--html")
    claims.writes(Path("new"), "--html")  # outside of commands nothing is claimed
    assert pair.command in NAMES


def model(path: Path, external: str = "") -> Path:
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(n, 1, [1, 8]) for n in "xy")
    weights = onnx.numpy_helper.from_array(np.ones((1, 8), np.float32), "w")
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["y"])]
    made = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", [x], [y], [weights]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=9,
    )
    if external:
        onnx.save(made, path, save_as_external_data=True, location=external, size_threshold=0)
    else:
        onnx.save(made, path)
    return path


def test_import_replaces_graphs_alone(compassc, tmp_path):
    """Of its own: neither a text nor constants that somebody else wrote, and not the model's own data."""
    model(tmp_path / "m.onnx")
    for name, words in (("m.txt", "notes"), ("m.bin", "constants")):
        Path(name).write_text(words)
        done = compassc("import", "m.onnx")
        assert (done.status, Path(name).read_text()) == (2, words) and f"'{name}' is there" in done.err
        Path(name).unlink()
    assert compassc("import", "m.onnx").status == 0
    assert compassc("import", "m.onnx").status == 0, "its own products are made again"
    Path("notes.txt").write_text("notes")
    assert compassc("import", "m.onnx", "-o", "notes.txt").status == 0, "what is named is replaced"
    model(tmp_path / "e.onnx", external="e.bin")
    data = Path("e.bin").read_bytes()
    graph_files.save(graph_files.load(Path("m.txt")), tmp_path / "e.txt", tmp_path / "other.bin")
    done = compassc("import", "e.onnx")
    assert done.status == 2 and Path("e.bin").read_bytes() == data and "which the command reads" in done.err


def test_two_results_of_one_name_are_refused(compassc, tmp_path):
    g = GraphBuilder("g")
    (y,) = g.layer(
        "Activation",
        [g.input("x", (1, 8), "float16")],
        name="a",
        outputs=[((1, 8), "float16")],
        attributes={"method": "RELU"},
    )
    graph_files.save(g.finish([y]), tmp_path / "g.txt")
    constants = Path("g.bin").read_bytes()
    done = compassc("gbuild", "g.txt", "-o", "n.bin", "--html", "n.bin")
    assert done.status == 2 and "both --html and -o are" in done.err or "both -o and --html are" in done.err
    done = compassc("optimize", "g.txt", "-o", "g.def")  # whose constants would be g.bin
    assert done.status == 2 and Path("g.bin").read_bytes() == constants
    done = compassc("gbuild", "g.txt", "--html", "aipu.bin")
    assert done.status == 2 and not Path("aipu.bin").exists()
    for _ in range(2):
        assert compassc("gbuild", "g.txt", "-t", "X2_1204", "-o", "n.bin", "--html", "n.html").status == 0

"""What is built of one source has the same bytes wherever, by whichever installation, and however Python hashes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import compass_core
import compass_runtime
import compass_sim
import compassc
from compass_core.errors import Span, excerpts

PACKAGES = tuple(Path(p.__path__[0]) for p in (compassc, compass_core, compass_runtime, compass_sim))
KERNEL = """
from compassc.dsl import script as S

@S.prim_func
def twice(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    for i in range(n):
        y[i] = x[i] * 2
"""
PROGRAM = """
import sys
import time
from compassc.cli.main import main

for words in ("kernel.py -o kernel.bin --shape x=8 --shape y=8", "model.onnx -o model.bin"):
    sys.argv[1:] = ["build", "-t", "X2_1204", *words.split()]
    try:
        main()
    except SystemExit as done:
        assert not done.code
"""


def model(path: Path) -> None:
    sizes = {"x": (2, 40), "y": (40, 2)}
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in sizes.items()]
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    onnx.save(helper.make_model(helper.make_graph([node], "g", ends[:1], ends[1:])), path)


def built(folder: Path, installed: Path, seed: int) -> dict[str, bytes]:
    """The programs as an installation makes them in a folder, with an empty cache."""
    installed.mkdir()
    for package in (*PACKAGES, PACKAGES[3].parent / "include"):
        (installed / package.name).symlink_to(package)
    folder.mkdir()
    (folder / "kernel.py").write_text(KERNEL)
    model(folder / "model.onnx")
    own = {"PYTHONPATH": str(installed), "PYTHONHASHSEED": str(seed), "COMPASS_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in folder.glob("*.bin")}


def test_programs_are_the_same_bytes_and_name_no_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        one, other = pool.map(lambda i: built(tmp_path / f"work{i}", tmp_path / f"installed{i}", i), (1, 2))
    assert set(one) == {"kernel.bin", "model.bin"}
    assert {name: one[name] == other[name] for name in one} == dict.fromkeys(one, True)
    for data in one.values():
        assert str(tmp_path).encode() not in data and str(PACKAGES[0]).encode() not in data
    assert b"compassc/layers/" in one["model.bin"]


@pytest.mark.parametrize("inner", ["layers/axes.py", "__init__.py"])
def test_lines_of_the_compiler_are_found_by_their_portable_name(inner: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = excerpts.portable_name(str(PACKAGES[0] / inner))
    assert name == f"compassc/{inner}"
    text = (PACKAGES[0] / inner).read_bytes()
    own = frozenset([excerpts.digest(text)])
    assert excerpts.source_line(Span(name, 1, built=own), 1) == text.decode().splitlines()[0]
    assert excerpts.file_digest(name) in own
    assert excerpts.source_line(Span(name, 1, built=frozenset()), 1) == ""


def test_names_of_other_files_stay(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("kernel.py", str(tmp_path / "compassc/kernel.py"), "compassc/mine.py", f"{PACKAGES[0]}s/kernel.py"):
        assert excerpts.portable_name(name) == name and excerpts.path_of(name) == name


@pytest.mark.parametrize("age", [0.0, 0.04], ids=["just written", "settled"])
def test_a_file_is_read_again_when_it_has_changed(age: float, tmp_path: Path) -> None:
    """Also where its size and the time that programs set are what they were."""
    path = tmp_path / "kernel.py"
    for text in (b"first", b"other"):
        path.write_bytes(text)
        os.utime(path, ns=(0, 0))
        time.sleep(age)
        for _ in range(2):
            assert excerpts.file_digest(str(path)) == excerpts.digest(text)
    path.unlink()
    assert excerpts.file_digest(str(path)) is None


def test_a_file_that_stays_is_read_once(monkeypatch) -> None:
    reads, read = [], excerpts._regular
    monkeypatch.setattr(excerpts, "_DIGESTS", excerpts._DIGESTS.copy())
    monkeypatch.setattr(excerpts, "_regular", lambda file: (reads.append(file), read(file))[1])
    excerpts._DIGESTS.clear()
    assert len({excerpts.file_digest("compassc/layers/axes.py") for _ in range(3)}) == len(reads) == 1

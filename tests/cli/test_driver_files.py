"""The files that describe a build: make dependencies and build.yaml."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from compassc.driver.build import Request, StageRecord, new_build
from compassc.driver.record import write_build_record, write_depfile


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_names_are_as_the_makefile_spells_them(here):
    write_depfile(Path("k.d"), Path("out/k.bin"), Path("k.py"), [here / "k.py", here / "lib.py", Path("/data/w.npy")])
    rule, *empty = Path("k.d").read_text().split("\n\n")
    assert rule.split() == ["out/k.bin:", "\\", "k.py", "\\", "lib.py", "\\", "/data/w.npy"]
    assert [text.strip() for text in empty] == ["lib.py:", "/data/w.npy:"]


@pytest.mark.parametrize("name", ["plain.py", "with space.py", "with#hash.py", "with$dollar.py"])
def test_make_reads_any_file_name(here, name):
    Path(name).write_text("")
    Path("k.py").write_text("")
    write_depfile(Path("k.d"), Path("k.bin"), Path("k.py"), [here / name])
    Path("Makefile").write_text("k.bin:\n\ttouch k.bin\ninclude k.d\n")

    def make() -> str:
        return subprocess.run(["make"], capture_output=True, text=True, check=True).stdout

    assert "touch" in make()
    assert "up to date" in make()
    os.utime(name, (2e9, 2e9))  # surely later, whatever the resolution of file times
    assert "touch" in make()
    Path(name).unlink()
    assert "touch" in make()


def test_build_yaml_is_yaml_and_says_how_each_file_was_made(here):
    request = Request(kernel=Path("dir/it's: #1.py"), target="X2_1204", values={"n": 3}, shapes={"c": (4, 8)})
    build = new_build(request, here)
    build.name = "k"
    build.params = {"params": [{"name": "a", "dtype": "int32", "role": "input", "shape": None, "read": True}]}
    build.records.append(StageRecord("parse", (here / "k.ir.txt",), "ab" * 32, 0.25))
    record = yaml.safe_load(write_build_record(build).read_text())
    assert record["kernel"] == "dir/it's: #1.py"
    assert (record["target"], record["entry"], record["set"], record["shapes"]) == (
        "X2_1204",
        "k",
        {"n": 3},
        {"c": [4, 8]},
    )
    assert record["parameters"] == [{"name": "a", "dtype": "int32", "role": "input", "shape": None}]
    assert record["stages"] == [
        {"name": "parse", "output": str(here / "k.ir.txt"), "sha256": "ab" * 32, "seconds": 0.25}
    ]
    assert record["versions"].keys() >= {"compassc", "python"}


def test_the_default_stage_folder_is_beside_the_output():
    assert Request(kernel=Path("x/kernel.py")).stage_folder() == Path("kernel.compass")
    assert Request(kernel=Path("x/kernel.py"), output=Path("y/a.bin")).stage_folder() == Path("y/kernel.compass")
    assert Request(kernel=Path("x/kernel.py"), folder=Path("z")).stage_folder() == Path("z")

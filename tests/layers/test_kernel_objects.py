"""Kernels that were compiled before are taken from the cache, whatever build compiled them."""

import threading

import numpy as np
import pytest

from compass_runtime import Program
from compassc.dsl import BuildManager
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter
from compassc.layers import kernel_cache
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import KernelCache
from compassc.toolchain import cc

TEXT = """\
from compassc.dsl import script as S


@S.prim_func
def layer(
    x: S.ptr("int32", "global"),
):
    x[0] = {value}
"""


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The names of the kernels that were compiled, from an empty cache on."""
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "cache"))
    names, real = [], BuildManager.gen_op_lib

    def count(self, inp, name=None, *args):
        names.append(name)
        return real(self, inp, name, *args)

    monkeypatch.setattr(BuildManager, "gen_op_lib", count)
    return names


def test_a_second_build_elsewhere_compiles_nothing(compiled, tmp_path):
    graph = GraphWriter()
    x = graph.input("x", (3, 40), "float32")
    y = graph.layer("Activation", [x], (3, 40), "float32", method="RELU")
    files = []
    for place in ("a", "b"):
        text = graph.write(tmp_path / place, [y])
        options = GraphOptions(work_dir=tmp_path / place / "kernels")
        built = build_model(text, tmp_path / place / "weight.bin", tmp_path / place / "aipu.bin", "X2_1204", options)
        files.append(built.path.read_bytes())
    assert len(compiled) == 1 and files[0] == files[1]
    value = np.linspace(-1, 1, 120, dtype="float32").reshape(3, 40)
    (got,) = Program.load(files[1]).create_job().run({"x": value}).values()
    np.testing.assert_array_equal(got, np.maximum(value, 0))


def test_whatever_can_change_an_object_makes_another_one(compiled, tmp_path, monkeypatch):
    kernel = Kernel(TEXT.format(value=1), ())

    def get(kernel=kernel, target="X2_1204"):
        path = KernelCache(tmp_path / "work", target).object_of(kernel)
        return path.read_bytes()

    first = get()
    assert get() == first and len(compiled) == 1
    get(target="X3P_1304")
    assert len(compiled) == 2
    assert get(Kernel(TEXT.format(value=2), ())) != first and len(compiled) == 3
    monkeypatch.setenv("COMPASS_EMBED_SOURCE", "0")
    assert get() != first and len(compiled) == 4
    monkeypatch.delenv("COMPASS_EMBED_SOURCE")
    monkeypatch.setattr(kernel_cache, "_own_identity", lambda: "another compiler")
    assert get() == first and len(compiled) == 5


def test_without_the_cache_kernels_are_compiled_every_time(compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("COMPASS_CACHE", "0")
    kernel = Kernel(TEXT.format(value=3), ())
    for place in ("a", "b"):
        objects = KernelCache(tmp_path / place, "X2_1204")
        assert (
            objects.object_of(kernel)
            == objects.object_of(kernel)
            == tmp_path / place / kernel.name / f"{kernel.name}.o"
        )
    assert len(compiled) == 2


def test_clang_compiles_kernels_beside_each_other(compiled, tmp_path, monkeypatch):
    """Each waits for the other one before it compiles."""
    graph = GraphWriter()
    x = graph.input("x", (3, 40), "float32")
    tops = [graph.layer("Activation", [x], (3, 40), "float32", method=method) for method in ("RELU", "SIGMOID")]
    both, real = threading.Barrier(2), cc.compile_file

    def wait(*args):
        both.wait(60)
        return real(*args)

    monkeypatch.setattr(cc, "compile_file", wait)
    text, options = graph.write(tmp_path, tops), GraphOptions(work_dir=tmp_path / "kernels")
    build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", "X2_1204", options)
    assert len(compiled) == 2


def test_a_damaged_object_is_compiled_again(compiled, tmp_path):
    kernel = Kernel(TEXT.format(value=4), ())
    first = KernelCache(tmp_path / "work", "X2_1204").object_of(kernel).read_bytes()
    for path in (tmp_path / "cache" / "layer").rglob("*"):
        if path.is_file() and path.suffix != ".sum":
            path.write_bytes(first[:100])
    assert KernelCache(tmp_path / "work", "X2_1204").object_of(kernel).read_bytes() == first

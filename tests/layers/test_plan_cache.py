"""Launches of known graphs are taken from the cache: with the same bytes, for all that is the same, and for nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compass_core import switches
from compass_core.files.cache import Cache
from compassc.gbuilder.writer import GraphWriter
from compassc.graph import Layer, Tensor
from compassc.graph.build import GraphBuilder
from compassc.graph.launches import Launch, Launches
from compassc.layers import kernel_cache
from compassc.layers.arranged import Arranged
from compassc.layers.kernel import CachedKernel, Kernel
from compassc.layers.kernel_cache import KernelCache
from compassc.layers.launches import group, plan_kernels
from compassc.layers.launches.plan_kernels import planned
from compassc.layers.plan_cache import ENTRY_KIND, PlanCache
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.tuning.history import apply_history_best
from tests.choosing import chosen
from tests.conftest import Outcome
from tests.layers.random_networks import graph_text, network

TARGET = "X2_1204"


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The types of the layers whose kernels were made, from an empty cache on."""
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "cache"))
    names: list[str] = []
    real = plan_kernels.kernel_of
    monkeypatch.setattr(
        plan_kernels, "kernel_of", lambda layers: names.append("+".join(x.type for x in layers)) or real(layers)
    )
    return names


# ------------------------------------------------------------------------------------------------------------ the bytes


def graph_file(folder: Path, dtype: str) -> Path:
    """A small convolution with a layer that joins its kernel."""
    rng, graph = np.random.default_rng(3), GraphWriter()
    scaled = {"layer_top_scale": [4.0], "layer_top_zp": [0]} if dtype == "int8" else {}
    x = graph.input("x", (1, 5, 5, 8), dtype, **scaled)
    window = {f"{key}_{axis}": 1 for key in ("stride", "dilation") for axis in "xy"} | {"kernel_x": 3, "kernel_y": 3}
    window |= dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 1)
    kind = np.int32 if dtype == "int8" else np.float32
    given = {"weights": rng.integers(-9, 9, (40, 3, 3, 8)).astype(dtype), "biases": np.arange(40, dtype=kind)}
    if dtype == "int8":
        given |= {"weights_scale": 2.0, "weights_zp": 0, "scale_value": 3, "shift_value": 9}
    y = graph.layer("Convolution", [x], (1, 5, 5, 40), dtype, num_output=40, group=1, **window, **given, **scaled)
    z = graph.input("z", (1, 5, 5, 40), dtype, **scaled)
    return graph.write(folder, [graph.layer("Eltwise", [y, z], (1, 5, 5, 40), dtype, method="ADD", **_added(dtype))])


def _added(dtype: str) -> dict[str, Any]:
    scaled = {"scale_value": [1, 1, 1], "shift_value": 0, "layer_top_scale": [4.0], "layer_top_zp": [0]}
    return scaled if dtype == "int8" else {}


def drawn_file(folder: Path, seed: int) -> Path:
    """A network of a few layers of drawn types."""
    text, weights = graph_text(network(seed, 4))
    (folder / "graph.txt").write_text(text)
    (folder / "weight.bin").write_bytes(weights)
    return folder / "graph.txt"


CASES: dict[str, tuple[Callable[[Path], Path], list[str]]] = {
    "int8": (partial(graph_file, dtype="int8"), ["--aiff"]),
    "float32": (partial(graph_file, dtype="float32"), []),
    "drawn": (partial(drawn_file, seed=16), ["--no-fuse"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_build_by_a_plan_leaves_and_says_what_one_without_does(
    case: str, made: list[str], tmp_path: Path, compassc: Callable[..., Outcome]
) -> None:
    write, options = CASES[case]
    text, out = write(tmp_path), tmp_path / "out"
    given = ["gbuild", text, "-w", text.with_name("weight.bin"), "-t", TARGET, "-o", out / "aipu.bin", *options]

    def build(without: str = "") -> tuple[Outcome, dict[str, bytes]]:
        """What it says and leaves. In the cache there is no entry of a kind."""
        for entry in list(Cache().entries()):
            if entry.kind == without:
                entry.path.unlink()
        shutil.rmtree(out, ignore_errors=True)
        made.clear()
        said = compassc(*given, "--html", out / "page.html", "--save-temps")
        assert said.status == 0, said.err
        left = [path for path in out.rglob("*") if path.is_file() and path.suffix != ".log"]  # which has times
        return said, {str(path): path.read_bytes() for path in left}

    build()
    known = build(without=ENTRY_KIND)
    assert made and build() == known
    made.clear()
    assert compassc(*given).out == known[0].out and not made
    assert (out / "aipu.bin").read_bytes() == known[1][str(out / "aipu.bin")]
    if case == "float32":  # the object of a launch of two layers is gone
        (gone,) = [entry.path for entry in Cache().entries() if entry.kind == "layer"]
        gone.unlink()
        assert compassc(*given).out == known[0].out and made == ["Convolution+Eltwise"]
        assert (out / "aipu.bin").read_bytes() == known[1][str(out / "aipu.bin")]


# -------------------------------------------------------------------------------------------------------------- the key


def program_of(layer: Layer, **given: Any) -> Launches:
    """A program of one layer."""
    build = GraphBuilder("one")
    graph = replace(build.finish([build.input(t.name, t.shape, t.dtype) for t in layer.inputs]), outputs=layer.outputs)
    return replace(Launches(graph, (Launch((layer,)),), {}, TARGET), **given)


def grouped(program: Launches, folder: Path, fuse: bool = True, target: str = TARGET) -> tuple[Launches, bool]:
    """The launches of a program, and whether they were taken from the cache; now they are in it."""
    asked: list[Launches] = []
    plans = PlanCache(KernelCache(folder, target), Cache(), target, fuse)
    return plans.grouped(program, lambda given: asked.append(given) or group(given)), not asked


def is_known(program: Launches, folder: Path, fuse: bool = True, target: str = TARGET) -> bool:
    return grouped(program, folder, fuse, target)[1]


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, dict):
        return {**value, "more": 1}
    if isinstance(value, tuple):
        return (*value, value[0]) if value else (1,)
    return f"{value}x" if isinstance(value, str) else 1 if value is None else value + 1


def changed_layers(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """The layer with another value of each field, of each field of its tensors, attribute and constant."""
    for f in fields(Layer):
        if f.name not in ("span", "constants"):
            yield f.name, replace(layer, **{f.name: other(getattr(layer, f.name))})
    for end in ("inputs", "outputs"):
        tensor = getattr(layer, end)[0]
        for f in fields(Tensor):
            yield (
                f"{end} {f.name}",
                replace(layer, **{end: (replace(tensor, **{f.name: other(getattr(tensor, f.name))}),)}),
            )
    for key, value in layer.attributes.items():
        yield key, replace(layer, attributes={**layer.attributes, key: other(value)})
        yield f"{key} as a text", replace(layer, attributes={**layer.attributes, key: str(value)})
    for key, array in layer.constants.items():
        for changed in (array + 1, array[None], array.astype(np.float64)):
            yield key, replace(layer, constants={**layer.constants, key: changed})


def linear() -> Layer:
    x, y = Tensor("x", (2, 8), "float32"), Tensor("y", (2, 4), "float32")
    constants = {"weights": np.ones((4, 8), np.float32), "biases": np.zeros(4, np.float32)}
    return Layer("one", "FullyConnected", (x,), (y,), {"num_output": 4}, constants)


def test_whatever_can_change_launches_is_in_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = linear()
    assert not is_known(program_of(layer), tmp_path) and is_known(program_of(layer), tmp_path)
    assert is_known(program_of(replace(layer, span="another line")), tmp_path)
    for what, changed in changed_layers(layer):
        assert not is_known(replace(program_of(layer), launches=(Launch((changed,)),)), tmp_path), what
    assert not is_known(program_of(layer, owners={"y": "z"}), tmp_path)
    ends = replace(program_of(layer).graph, outputs=())
    assert not is_known(program_of(layer, graph=ends), tmp_path)
    assert not is_known(program_of(layer), tmp_path, fuse=False)
    assert not is_known(program_of(layer, target="X3P_1304"), tmp_path, target="X3P_1304")
    for switch, text in (("THREADS", "2"), ("EMBED_SOURCE", "0")):
        assert switch in {known.name for known in switches.SWITCHES}
        monkeypatch.setenv(f"COMPASS_{switch}", text)
        assert not is_known(program_of(layer), tmp_path), switch
        monkeypatch.delenv(f"COMPASS_{switch}")
    (tmp_path / "records.jsonl").write_text("")
    with apply_history_best(tmp_path / "records.jsonl"):
        assert not any(is_known(program_of(layer), tmp_path) for _ in range(2))
    assert is_known(program_of(layer), tmp_path)
    monkeypatch.setattr(kernel_cache, "_makers", lambda: "other sources")
    assert not is_known(program_of(layer), tmp_path)


def test_an_object_that_is_gone_is_compiled_again(tmp_path: Path) -> None:
    (want,), (found,) = (grouped(program_of(linear()), tmp_path)[0].launches for _ in range(2))
    assert isinstance(want.kernel, Kernel) and isinstance(found.kernel, CachedKernel)
    objects = KernelCache(tmp_path, TARGET)
    assert not objects.known(found.kernel) and objects.object_of(found.kernel).is_file()
    assert KernelCache(tmp_path / "other", TARGET).known(want.kernel) and found.kernel.listing == want.kernel.listing


def test_a_damaged_entry_is_made_anew(tmp_path: Path) -> None:
    assert not is_known(program_of(linear()), tmp_path)
    (entry,) = [entry.path for entry in Cache().entries() if entry.kind == ENTRY_KIND]
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert not is_known(program_of(linear()), tmp_path) and is_known(program_of(linear()), tmp_path)


def test_what_has_no_form_of_its_own_is_not_kept(tmp_path: Path) -> None:
    odd = replace(linear(), attributes={"num_output": 4, "odd": np.arange(3)})
    twice = replace(program_of(linear()), launches=(Launch((linear(),)), Launch((linear(),))))
    for given in (program_of(odd), program_of(replace(linear(), type="NoSuchType")), twice):
        assert not any(is_known(given, tmp_path) for _ in range(2))


# ------------------------------------------------------------------------------------------------------------ the calls


def elements(arguments: Sequence[object]) -> list[object]:
    return [a.array if isinstance(a, Arranged) else a for a in arguments]


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_calls_of_kernels_are_the_same_when_they_are_kept(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = 0
    for number, name in enumerate(sorted({"Convolution", "FullyConnected", *chosen(SAMPLES, 8)})):
        layer = drawn(Draw(np.random.default_rng(number)), name, Tensor("x", (1, 4, 5, 8), dtype))
        if layer is None or not isinstance(want := planned(Launch((layer,)), TARGET).kernel, Kernel):
            continue
        for known in (False, True):
            (found,) = grouped(program_of(layer), tmp_path)[0].launches
            assert isinstance(found.kernel, CachedKernel if known else Kernel) and found.layers == (layer,), name
            assert found.kernel.name == want.name, name
            for one, two in zip(elements(found.kernel.arguments), elements(want.arguments), strict=True):
                np.testing.assert_array_equal(one, two, name, strict=True) if isinstance(two, np.ndarray) else None
                assert isinstance(two, np.ndarray) or (type(one), one) == (type(two), two), name
        kept += 1
    assert kept > 8

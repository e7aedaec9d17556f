"""`S.autotune`: which constants kernels get, and tuning them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compass_core.errors import UsageError
from compassc.dsl import BuildManager, load_kernels
from compassc.dsl import script as S
from compassc.ir import print_module
from compassc.tuning import records
from compassc.tuning.history import apply_history_best
from compassc.tuning.kernel_task import KernelTask
from compassc.tuning.kernels import Autotuned
from compassc.tuning.records import Record
from compassc.tuning.tune import TuneOptions, tune

TARGET = "X2_1204"
FILE = Path(__file__).parent / "tuned_kernel.py"


@pytest.fixture
def twofold() -> Autotuned:
    kernel = load_kernels(FILE).entry("twofold")
    assert isinstance(kernel, Autotuned)
    return kernel


@pytest.fixture
def known(twofold: Autotuned, tmp_path: Path) -> Path:
    """Records of three sizes."""
    path = tmp_path / "known.jsonl"
    best = {100: 64, 200: 32, 300: 32}
    found = [
        Record(twofold.workload(TARGET, {"n": n}), {"TILE": t, "SPOILT": 0}, "cycles", cost)
        for n, tile in best.items()
        for t, cost in ((tile, 5.0), (8, 9.0))
    ]
    other = replace(twofold.workload(TARGET, {"n": 100}), version="0")
    records.write(path, [*found, Record(other, {"TILE": 8, "SPOILT": 1}, "cycles", 1.0)])
    return path


def test_without_records_the_first_configuration(twofold: Autotuned) -> None:
    assert twofold.config_for(TARGET, {"n": 100}) == twofold.default == {"TILE": 8, "SPOILT": 0}


def test_records_decide(twofold: Autotuned, known: Path) -> None:
    """Those of the size; of sizes that are not on record, what most sizes want."""
    with apply_history_best(known):
        tiles = [twofold.config_for(TARGET, sizes)["TILE"] for sizes in ({"n": 100}, {"n": 300}, {"n": 77}, None)]
        assert tiles == [64, 32, 32, 32]
        assert twofold.config_for("X3P_1304", {"n": 100}) == twofold.default
    assert twofold.config_for(TARGET, {"n": 100}) == twofold.default


def test_pysim_and_builds_take_the_best(twofold: Autotuned, known: Path) -> None:
    x, y, z = np.arange(100, dtype=np.int32), np.zeros(100, np.int32), np.zeros(100, np.int32)
    manager = BuildManager(TARGET)
    default = print_module(manager.lower(twofold))
    with apply_history_best(known):
        tuned = print_module(manager.lower(twofold))
        assert tuned == print_module(manager.lower(twofold.configured(TILE=32, SPOILT=0))) != default
        manager.build(twofold)(x, y, 100)
        twofold(x, z, 100)
    assert tuned == print_module(BuildManager(TARGET, tuned=known).lower(twofold))
    assert default == print_module(manager.lower(twofold))
    assert (y == 2 * x).all() and (z == 2 * x).all()


def test_a_build_takes_the_sizes_it_is_told(twofold: Autotuned, known: Path, compassc: Callable[..., Any]) -> None:
    """And the records it is told."""
    texts = {}
    for name, options in {
        "default": (),
        "most": ("--tuned", known),
        "own": ("--tuned", known, "--set", "n=100"),
    }.items():
        done = compassc("build", FILE, "-t", TARGET, "-k", "twofold", "-o", f"{name}.bin", *options)
        assert done.status == 0, done.err
        texts[name] = Path("tuned_kernel.compass/twofold.cl").read_text()
    for name, tile in {"default": 8, "most": 32, "own": 64}.items():
        assert f"[{tile}];" in texts[name]


def test_tuning_finds_the_best_and_tells_what_was_wrong(twofold: Autotuned, tmp_path: Path) -> None:
    task = KernelTask.of_sizes(twofold, TARGET, {"n": 256})
    search = tune(task, TuneOptions(strategy="grid"), tmp_path / "r.jsonl")
    kinds = {(r.candidate["TILE"], r.candidate["SPOILT"]): r.error for r in search.records}
    assert kinds == {(t, s): _kind(t, s) for t in (8, 32, 64, 7, 1 << 20) for s in (0, 1)}
    costs = {r.candidate["TILE"]: r.cost for r in search.records if not r.error}
    assert costs[8] > costs[32] > costs[64] == search.best.cost  # type: ignore[operator, union-attr]
    with apply_history_best(tmp_path / "r.jsonl"):
        assert twofold.config_for(TARGET, {"n": 256})["TILE"] == 64


def _kind(tile: int, spoilt: int) -> str:
    return "infeasible" if tile == 7 else "build" if tile > 64 else "wrong" if spoilt else ""


def test_arguments_and_sizes_make_the_same_workload(twofold: Autotuned) -> None:
    x = np.arange(256, dtype=np.int32)
    given = KernelTask.of_arguments(twofold, TARGET, (x, np.zeros_like(x), 256))
    assert given.workload == KernelTask.of_sizes(twofold, TARGET, {"n": 256}).workload
    assert (given.expected()[1] == 2 * x).all()
    assert given.workload.key != KernelTask.of_sizes(twofold, TARGET, {"n": 255}).workload.key


def test_the_structure_is_that_of_the_kernel(twofold: Autotuned, tmp_path: Path) -> None:
    """Not of its places or the order of its configurations."""
    text = FILE.read_text()

    def structure(changed: str) -> str:
        path = tmp_path / "changed.py"
        path.write_text(changed)
        kernel = load_kernels(path).entry("twofold")
        assert isinstance(kernel, Autotuned)
        return kernel.structure(TARGET)

    assert structure("# moved\n" + text) == structure(text.replace("[8, 32, 64,", "[64, 8, 32,")) == structure(text)
    assert structure(text.replace("* 2", "* 3")) != structure(text)


def test_tune_of_a_kernel(twofold: Autotuned, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COMPASS_TUNING", str(tmp_path))
    x = np.arange(64, dtype=np.int32)
    found = twofold.tune(x, np.zeros_like(x), 64, target=TARGET, trials=6, strategy="grid")
    assert len(records.read(tmp_path / "records.jsonl").records) == 6
    assert twofold.config_for(TARGET, {"n": 64}) == found.best.candidate  # type: ignore[union-attr]


def factory(TILE: int) -> Any:
    @S.prim_func
    def fill(y: S.ptr("i32", "global")):  # type: ignore[valid-type]
        y[0] = TILE

    return fill


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: S.autotune()(factory), "configs or space"),
    "both": (lambda: S.autotune([{}], space={})(factory), "configs or space"),
    "no configurations": (lambda: S.autotune([])(factory), "no candidates"),
    "another constant": (lambda: S.autotune([{"WIDTH": 1}])(factory), "WIDTH"),
    "a missing constant": (lambda: S.autotune([{}])(factory), "TILE"),
    "a value of no kind": (lambda: S.autotune([{"TILE": [1]}])(factory), "no configuration"),
    "no kernel": (lambda: S.autotune([{"TILE": 1}])(lambda TILE: TILE), "not a kernel"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_what_it_is_not_for_is_refused(name: str) -> None:
    make, words = BAD[name]
    with pytest.raises(UsageError, match=words):
        make()

"""`--schedule` and `Executor.schedule`: an order per seed, and kernels whose result depends on it are found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError, UsageError
from compass_runtime.cli import main
from compass_runtime.orders import ScheduleOptions
from compassc.dsl import BuildManager
from compassc.dsl import script as S


@S.prim_func
def racy(a: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
    """Each TEC adds its share to one sum: updates get lost when TECs interleave."""
    tid = S.get_local_id()
    for i in range(4):
        out[0] = out[0] + a[tid * 4 + i]


@S.prim_func
def tidy(a: S.ptr("i32", "global"), out: S.ptr("i32", "global")):
    """Each TEC adds up its share in its own place, and one TEC adds up the places after a barrier."""
    tid = S.get_local_id()
    sums = S.alloc(4, "i32", scope="shared")
    total = S.i32(0)
    for i in range(4):
        total = total + a[tid * 4 + i]
    sums[tid] = total
    S.barrier()
    if tid == 0:
        out[0] = sums[0] + sums[1] + sums[2] + sums[3]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("orders")
    return {f.__name__: BuildManager(output_dir=folder / f.__name__).build(f) for f in (racy, tidy)}


def arguments() -> tuple[Any, Any]:
    return np.arange(16, dtype="int32"), np.zeros(1, "int32")


def test_an_order_that_changes_the_result_is_found_and_repeats(built: dict[str, Any]) -> None:
    a, out = arguments()
    with pytest.raises(CompassError, match="depends on the order") as caught:
        built["racy"].schedule(a, out, explore=200)
    seed = int(caught.value.help.partition("seed=")[2].partition(" ")[0])
    found = []
    for s in (1, seed, seed):
        out[:] = 0
        built["racy"].schedule(a, out, seed=s)
        found.append(int(out[0]))
    assert found[0] != found[1] == found[2]


def test_a_synchronised_kernel_gives_the_same_in_all_orders(built: dict[str, Any]) -> None:
    a, out = arguments()
    built["tidy"].schedule(a, out, explore=60)
    assert out[0] == a.sum()


def test_compass_run_explores(built: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, out = arguments()
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "out.npy", out)
    for name, status in (("tidy", 0), ("racy", 1)):
        files = ["--inputs", f"a={tmp_path}/a.npy", "--outputs-dir", str(tmp_path)]
        with pytest.raises(SystemExit) as end:
            main([str(built[name].path), *files, "--schedule", "explore=150"])
        assert end.value.code == status
    assert "seed" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["seed", "seed=x", "seed=0", "explore=1", "explore=-3", "order=4", f"seed={2**64}"])
def test_malformed_schedules_are_usage_errors(text: str) -> None:
    with pytest.raises(UsageError):
        ScheduleOptions.parse(text)
    assert ScheduleOptions.parse("seed=5") == ScheduleOptions(seed=5) and ScheduleOptions.parse(
        "explore=2"
    ) == ScheduleOptions(explore=2)

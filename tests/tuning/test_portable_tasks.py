"""Tasks that go to other processes make the same programs there, and users' code never goes."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import te, topi
from compassc.dsl import load_kernels
from compassc.tuning.artifact import Artifact, Refused, artifact
from compassc.tuning.cost.programs import features_of
from compassc.tuning.kernel_task import KernelTask
from compassc.tuning.layer_task import LayerTask
from compassc.tuning.portable import packed, unpacked
from compassc.tuning.shipping import convolution
from compassc.tuning.sketches import SketchTask
from compassc.tuning.task import Task
from compassc.tuning.templates import KnobsTask

from .kernels_tried import Twice

HERE = Path(__file__).parent
TARGET = "X2_1204"


def expressions() -> list[te.Tensor]:
    x = te.placeholder((16, 64), "float32", name="x")
    return [x, topi.softmax(x)]


DATA: dict[str, Task] = {
    "sketches": SketchTask("softmax", expressions(), TARGET),
    "knobs": KnobsTask("softmax", expressions()[-1], TARGET),
    "layers": LayerTask((convolution(8, 16, 16, 3, 1),), TARGET),
}


def of_files(folder: Path = HERE) -> list[Task]:
    kernel = vars(load_kernels(folder / "tuned_kernel.py").module)["twofold"]
    template = vars(load_kernels(folder / "tuned_expressions.py").module)["tiled"]
    return [KernelTask.of_sizes(kernel, TARGET, {"n": 64}), template.task(64, target=TARGET)]


def is_the_same(task: Task, other: Task) -> bool:
    """Whether both make the same texts and features of candidates."""
    rng = Random(0)
    candidates = [task.default, *(task.space.sample(rng) for _ in range(2))]
    made = [[artifact(one, c) for c in candidates] for one in (task, other)]
    features = [[features_of(one, c) for c in candidates] for one in (task, other)]
    same = all(map(np.array_equal, *features))
    return same and [_told(one) for one in made[0]] == [_told(one) for one in made[1]]


def _told(made: Artifact | Refused) -> object:
    return (made.text, made.params) if isinstance(made, Artifact) else made


@pytest.mark.parametrize("name", DATA)
def test_tasks_of_data_go_anywhere(name: str) -> None:
    task = DATA[name]
    data = packed(task, machine=False)
    assert data is not None and packed(task, machine=True) == data
    assert is_the_same(task, unpacked(data))
    assert unpacked(data).workload == task.workload


@pytest.mark.parametrize("number", [0, 1])
def test_tasks_of_files_stay_on_the_machine(number: int) -> None:
    task = of_files()[number]
    assert packed(task, machine=False) is None
    data = packed(task, machine=True)
    assert data is not None and is_the_same(task, unpacked(data))


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_that_was_changed_is_refused(number: int, tmp_path: Path) -> None:
    for name in ("tuned_kernel.py", "tuned_expressions.py"):
        shutil.copy(HERE / name, tmp_path)
    data = packed(of_files(tmp_path)[number], machine=True)
    for path in tmp_path.glob("*.py"):
        path.write_text(path.read_text() + "\n")
    assert data is not None
    with pytest.raises(CompassError, match="has changed while it is tuned"):
        unpacked(data)


def test_classes_of_users_do_not_go() -> None:
    assert packed(Twice([["good", 8]]), machine=True) is None

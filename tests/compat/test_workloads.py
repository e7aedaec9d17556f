"""Workloads of `tvm.auto_scheduler`: names of inputs that are given, and entries of the registry that are passed on."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

from compass_core.errors import UsageError
from compass_runtime.ndarray import array, empty
from compassc import te
from compassc.compat.auto_scheduler import record, workload
from compassc.targets import build
from compassc.te.tensor import Tensor


def doubled(n: int) -> list[Tensor]:
    x = te.placeholder((n,), "float32", name="x")
    return [x, te.compute((n,), lambda i: x[i] * 2, name="y")]


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Registries are as before after each test."""
    both = (workload.WORKLOAD_FUNC_REGISTRY, workload.TASK_INPUT_CHECK_FUNC_REGISTRY)
    before = [dict(r) for r in both]
    yield
    for registry, kept in zip(both, before):
        registry.clear()
        registry.update(kept)


@pytest.mark.parametrize("name", ["x", "special"])
def test_inputs_are_given_by_the_names_that_a_workload_has_for_them(name):
    workload.register_workload(doubled)
    if name != "x":

        @workload.register_task_input_check_func("doubled")
        def names(tensors):
            return {tensors[0]: name}

        with pytest.raises(RuntimeError, match="registered already"):
            workload.register_task_input_check_func("doubled", names)
        workload.register_task_input_check_func("doubled", names, override=True)
    given = np.arange(4, dtype="float32")
    task = workload.SearchTask(func="doubled", args=(4,), target="llvm", task_inputs={name: given, "y": None})
    taken: list[object] = []

    def run(path, device, arguments, plan):
        taken.extend(arguments)
        return SimpleNamespace(error="", seconds=[1.0])

    runner = SimpleNamespace(bench=SimpleNamespace(run=run), plan=None)
    state = task.compute_dag.get_init_state()
    (found,) = record.measured(record.LocalBuilder(), runner, [record.MeasureInput(task, state)])
    assert not found.error_no and taken[0] is given and taken[1] == ((4,), "float32")


def test_entries_of_the_registry_are_passed_on():
    workload.register_workload(doubled)
    key = workload.make_workload_key("doubled", (4,))
    assert workload.serialize_workload_registry_entry(key) == ("doubled", doubled)
    workload.register_workload_tensors("of_tensors", doubled(4))
    name, text = workload.serialize_workload_registry_entry("of_tensors")
    workload.WORKLOAD_FUNC_REGISTRY.clear()
    with pytest.raises(ValueError, match="of_tensors is not registered"):
        workload.serialize_workload_registry_entry(name)
    workload.deserialize_workload_registry_entry((name, text))
    tensors = workload.workload_key_to_tensors(name)
    x, out = np.arange(4, dtype="float32"), empty((4,), "float32")
    build(te.create_schedule(tensors[-1].op), tensors, "llvm")(array(x), out)
    np.testing.assert_array_equal(out.numpy(), 2 * x)
    workload.deserialize_workload_registry_entry(("doubled", doubled))
    workload.deserialize_workload_registry_entry(("doubled", "taken: left as it is"))
    assert workload.WORKLOAD_FUNC_REGISTRY["doubled"] is doubled
    with pytest.raises(UsageError, match="no saved IR"):
        workload.deserialize_workload_registry_entry(("other", "{}"))

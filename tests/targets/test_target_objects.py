"""Targets from text, tables and names; kinds by registry."""

from __future__ import annotations

import json

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import targets, te
from compassc.targets import Target, TargetError


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("llvm", "llvm"),
        ("c -mcpu=x86-64-v3", "c -mcpu=x86-64-v3"),
        ("llvm -num-cores 4 -mcpu=native", "llvm -num-cores=4"),
        ({"kind": "llvm", "opt-level": 1}, "llvm -opt-level=1"),
        ('{"kind": "compass", "mcpu": "X3P_1304"}', "compass -mcpu=X3P_1304"),
        ("X2_1204", "compass -mcpu=X2_1204"),
        ("llvm -keys=arm_cpu,cpu -device=arm_cpu -model=pixel2", "llvm -device=arm_cpu -model=pixel2"),
        ("opencl -device=mali", "opencl -device=mali"),
        ("compass -mcpu=X2_1204 -system-lib", "compass -mcpu=X2_1204 -system-lib=True"),
    ],
)
def test_what_describes_a_target(given, text):
    target = Target(given)
    assert str(target) == text
    assert Target(text) == Target(target.export()) == Target(json.dumps(target.export())) == Target.of(target) == target
    assert hash(Target(text)) == hash(target)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("X2_9999", "unknown target 'X2_9999'"),
        ("llvm -mtriple=x86_64", "'llvm' has no option 'mtriple'"),
        ("llvm -num-cores=many", "option 'num-cores' of 'llvm' is a int, got 'many'"),
        ("llvm -opt-level=7", "option 'opt-level' of 'llvm' is a number from 0 to 3, got 7"),
        ({"kind": "c", "num-cores": -1}, "'num-cores' of 'c' is a number from 0"),
        ("cuda -max_num_threads=4096", "number from 1 to 1024"),
        ("cuda -arch=turing", "'arch' of 'cuda' is a text of the form"),
        ({"kind": "toaster"}, "no kind of target 'toaster'"),
        ({"mcpu": "X2_1204"}, "needs its 'kind'"),
        (3, "not int"),
        ("llvm native", "'native' is no option"),
        ("{", "no JSON"),
    ],
)
def test_what_is_refused(given, said):
    with pytest.raises(CompassError, match=said):
        Target(given)


def test_a_processor_that_clang_does_not_know_is_said_of_its_option():
    with pytest.raises(TargetError, match="no processor 'foo' for option 'mcpu' of 'llvm'") as refused:
        te.build(*_copy(), "llvm -mcpu=foo")
    assert "native" in str(refused.value.help) and refused.value.notes


def test_unknown_targets_list_what_there_is():
    with pytest.raises(CompassError) as found:
        Target("X2_9999")
    said = " ".join(note.message for note in found.value.notes)
    assert "X2_1204" in said and "llvm" in said


def test_the_current_target():
    assert Target.current() is None and Target.of(None).kind.name == "compass"
    with Target("llvm") as outer:
        assert Target.of(None) is outer and te.lower(*_copy()).target == "host"
        with Target("X3P_1304"):
            assert Target.current() == Target("X3P_1304") and te.lower(*_copy()).target == "X3P_1304"
        assert Target.current() is outer
    assert Target.current() is None


def _copy():
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i], name="b")
    return te.create_schedule(b), [a, b]


def test_a_kind_of_ones_own():
    """A registered kind is found by name, its generator by `target.build.NAME`."""
    from compass_runtime.codegens import code_generator
    from compass_runtime.module import PythonModule
    from compassc.te.machine import Machine

    made = targets.register_kind(
        targets.Kind(
            "listing",
            "cpu",
            "prints",
            lambda target: Machine("host"),
            lambda module, target: PythonModule({"__tvm_main__": lambda: f"{module.entry} for {target}"}),
            options={"wide": targets.Option(bool, False, "no meaning")},
        )
    )
    assert "listing" in targets.kinds() and targets.kind("listing") is made
    assert te.build(*_copy(), "listing -wide", name="copy")() == "copy for listing -wide=True"
    assert code_generator("listing")(te.lower(*_copy(), target="llvm"), Target("listing"))() == "main for listing"


def test_a_module_is_built_for_its_target():
    module = te.lower(*_copy(), target="X2_1204")
    with pytest.raises(CompassError, match="made for X2_1204"):
        targets.build(module, target="llvm")
    with pytest.raises(CompassError, match="cannot build a list"):
        targets.build([], target="llvm")


def test_modules_of_npus_have_their_text_and_check_their_arguments(tmp_path):
    import compassc.dsl.build_manager  # noqa: F401  (it knows the kind, too)
    from compass_runtime.errors import RuntimeTypeError, RuntimeValueError
    from compass_runtime.module import load_module

    n = te.var("n")
    a = te.placeholder((n,), "int32", name="a")
    b = te.compute((n,), lambda i: a[i] + 1, name="b")
    built = te.build(te.create_schedule(b), [a, b, n], "X2_1204")
    built.export_library(tmp_path / "k.tar")
    for module in (built, load_module(tmp_path / "k.tar")):
        assert "__kernel void default_function(" in module.get_source() and module.format == "c"
        given, found = np.arange(6, dtype="int32"), np.zeros((6, 2), "int32")
        module(given, found[:, 1], 6)
        np.testing.assert_array_equal(found, np.stack([np.zeros(6, "int32"), given + 1], axis=1))
        with pytest.raises(RuntimeValueError, match=r"argument 1 \('a'\) .* must have the shape \(7,\), got \(6,\)"):
            module(given, np.zeros(7, "int32"), 7)
        with pytest.raises(RuntimeTypeError, match="must have the type int32, got float32"):
            module(given, np.zeros(6, "float32"), 6)


@pytest.mark.parametrize(("target", "threads", "device"), [("cuda", 1024, 2), ("X2_1204", 4, 60), ("llvm", 1, 1)])
def test_what_schedules_ask_of_targets(target, threads, device):
    made = Target(target).with_host("llvm")
    assert made.max_num_threads == threads and made.get_target_device_type() == device
    assert made.host == Target("llvm") and made == Target(target)

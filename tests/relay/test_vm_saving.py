"""Executables of the virtual machine as files: they compute the same, and what is damaged is refused with its place."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError, UsageError
from compass_runtime.devices import cpu
from compass_runtime.module import load_module, sealed, unsealed
from compassc import relay
from compassc.relay.backend import vm
from tests.choosing import some

PROGRAM = """#[version = "0.0.5"]
type Pair[A] { Both(A, A), One(A) }
def @grow(%n: int32, %x: Tensor[(?, 2), float32]) -> Tensor[(?, 2), float32] {
  if (%n == 0) { %x } else { @grow(%n - 1, concatenate((%x, %x))) }
}
def @first(%p: Pair[Tensor[(2, 2), float32]]) -> Tensor[(2, 2), float32] {
  match (%p) { Both(%a, %b) => { %a + %b }, One(%a) => { %a } }
}
def @main(%n: int32, %x: Tensor[(2, 2), float32]) -> (Tensor[(?, 2), float32], Tensor[(2, 2), float32], Tensor[(4), float32]) {
  let %scale = fn (%y: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] { nn.relu(%y * meta[relay.Constant][0]) };
  let %r = ref(%x);
  let %u = ref_write(%r, %scale(%x));
  (@grow(%n, %x), @first(Both(ref_read(%r), %x)), reshape(%x, newshape=[4]))
}
#[metadata]
"""
X = np.arange(4, dtype="float32").reshape(2, 2) - 1


@pytest.fixture(scope="module")
def program() -> vm.Executable:
    scale = relay.const(np.array([[2, 3], [4, 5]], "float32"))
    v = relay.var("v", shape=(2, 2))
    metadata = relay.Function([v], v * scale).astext().partition("#[metadata]")[2]
    return vm.compile(relay.parse(PROGRAM + metadata.strip()))


def values(program: vm.Executable) -> list[np.ndarray]:
    return [v.numpy() for v in vm.VirtualMachine(program, cpu()).run(2, X)]


def same(a: vm.Executable, b: vm.Executable) -> None:
    for x, y in some(zip(values(a), values(b), strict=True)):
        np.testing.assert_array_equal(x, y)


def test_saved_programs_compute_the_same(program, tmp_path):
    code, lib = program.save()
    assert isinstance(code, bytearray)
    lib.export_library(tmp_path / "lib.so")
    again = vm.Executable.load_exec(code, load_module(tmp_path / "lib.so"))
    same(program, again)
    assert again.bytecode == program.bytecode and again.stats == program.stats
    once_more = vm.Executable.load_exec(*again.save())
    assert once_more.save()[0] == again.save()[0]


def test_constants_may_be_in_a_file(program, tmp_path):
    code, lib = program.save()
    moved = vm.Executable.load_exec(code, lib)
    moved.move_late_bound_consts(tmp_path / "constants", 8)
    small, lib = moved.save()
    assert len(small) < len(code)
    late = vm.Executable.load_exec(small, lib)
    with pytest.raises(UsageError, match="1 constants of the program are in a file"):
        values(late)
    late.load_late_bound_consts(tmp_path / "constants")
    same(program, late)


def test_each_damaged_byte_is_noticed(program):
    code, lib = program.save()
    for place in some(range(0, len(code), len(code) // 200)):
        damaged = bytearray(code)
        damaged[place] ^= 0x41
        with pytest.raises(UsageError, match="no executable"):
            vm.Executable.load_exec(damaged, lib)
    for end in some(range(0, len(code), len(code) // 20)):
        with pytest.raises(UsageError, match="no executable"):
            vm.Executable.load_exec(code[:end], lib)


def edited(code: bytes, change) -> bytes:
    """A code that somebody changed and sealed again."""
    fields, content = unsealed(bytes(code), "an executable")
    change(fields)
    return sealed(fields, content)


CHANGES = {
    "a register": (
        lambda f: f["functions"][0]["code"].__setitem__(0, ["move", 10**6, 0]),
        "instruction 0: move .* no such source",
    ),
    "an operand": (
        lambda f: f["functions"][0]["code"].__setitem__(0, ["move", -1, 0]),
        "instruction 0: source of move is -1",
    ),
    "an instruction": (
        lambda f: f["functions"][0]["code"].__setitem__(1, ["jump", 1]),
        "instruction 1: there is no instruction 'jump'",
    ),
    "operands": (lambda f: f["functions"][0]["code"].__setitem__(1, ["ret", 1, 2]), "instruction 1: ret of 2 operands"),
    "an end": (lambda f: f["functions"][0]["code"].pop(), "does not end"),
    "registers": (lambda f: f["functions"][0].update(registers=1 << 60), "is no number of something"),
    "a constant": (
        lambda f: f["functions"][0]["code"].__setitem__(0, ["load_const", 1 << 60, 0]),
        "numbers .* constants",
    ),
    "a kernel": (
        lambda f: f["primitives"].append(
            {"kind": "kernel", "name": "other", "result": {"shape": [2], "dtype": "int8"}}
        ),
        "no kernel other",
    ),
    "a format": (lambda f: f.update(format="2"), "its format is '2'"),
    "a field": (lambda f: f.pop("constructors"), "constructors"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_wrong_instructions_are_named(program, name):
    code, lib = program.save()
    change, message = CHANGES[name]
    with pytest.raises(CompassError, match=message):
        vm.Executable.load_exec(edited(code, change), lib)


def test_a_program_is_one_file(tmp_path):
    x = relay.var("x", shape=(3,))
    program = vm.compile(relay.IRModule.from_expr(relay.Function([x], x + x)))
    program.module.export_library(str(tmp_path / "program.tar"))
    loaded = load_module(str(tmp_path / "program.tar"))
    given = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(vm.VirtualMachine(loaded, cpu()).run(given).numpy(), given + given)


def test_constants_are_taken_out_and_given_back():
    x = relay.var("x", shape=(8,))
    big = relay.const(np.arange(8, dtype="float32"))
    program = vm.compile(relay.IRModule.from_expr(relay.Function([x], x + big)))
    assert program.get_late_bound_consts(33) == {}
    moved = program.get_late_bound_consts(32)
    assert [*moved] == ["const_0"]
    given = np.ones(8, "float32")
    with pytest.raises(UsageError, match="1 constants of the program are in a file"):
        vm.VirtualMachine(program, cpu()).run(given)
    with pytest.raises(UsageError, match="the map has no constant 0"):
        program.load_late_bound_consts_from_map({})
    program.load_late_bound_consts_from_map(moved)
    np.testing.assert_array_equal(vm.VirtualMachine(program, cpu()).run(given).numpy(), np.arange(8) + 1)


@pytest.mark.parametrize(("code", "lib"), [(3, None), (b"", "lib")])
def test_what_is_no_program_is_refused_by_its_type(code, lib):
    with pytest.raises(TypeError):
        vm.Executable.load_exec(code, lib)

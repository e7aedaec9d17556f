"""What each stage guarantees holds of examples and random programs, and a module without it is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from module_text import module_text

from compass_core.errors import CompassError
from compassc import codegen, pass_manager, passes
from compassc.analysis.interface import interface_of
from compassc.analysis.wellformed import STAGES, _as_declared, verify_stage
from compassc.dsl import load_kernels, parse
from compassc.ir import IRModule, all_exprs, parse_module, print_module
from compassc.ir import exprs as E
from compassc.ir.equal import structural_equal
from compassc.ir.verify import VerifyError
from compassc.language.parser import parse as parse_kernel
from compassc.ops import core
from compassc.reference.examples import kernels

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.choosing import some
from tests.fuzz.generate import generate
from tests.fuzz.run import load_kernel

EXAMPLES = sorted(p.parent.name for p in (ROOT / "examples").glob("*/kernel.py"))
V = 'v: T.int32x8, w: T.int16x16, p: T.ptr("int32", "global"), n: T.int32'
WRONG = {
    "": {
        "there is no operation 'vaddd'": 'S.vaddd(v, v, dtype="int32x8")',
        "S.vadd takes x, y, got 1 operands": 'S.vadd(v, dtype="int32x8", saturate=False)',
        "S.vadd has no option 'rounded'": 'S.vadd(v, v, dtype="int32x8", rounded=True)',
        "S.vxor has no option 'saturate'": 'S.vxor(v, v, dtype="int32x8", saturate=True)',
        "S.vadd of int32x8, int16x16 is no int32x8": 'S.vadd(v, w, dtype="int32x8", saturate=False)',
        "S.vadd of int32x8, int32x8 is no int16x16": 'S.vadd(v, v, dtype="int16x16", saturate=False)',
        "operand 0 of S.vload is no address": 'S.vload(n, 1, dtype="int32x8")',
    },
    "parsed": {"__vsxtl is a builtin of C": 'S.__vsxtl(w, dtype="int32x8")'},
    "lowered": {
        "a loop is still vectorized": "for i in T.vectorized(0, 8, 1):\n    p[i] = 1",
        "a shaped view was not lowered": 'm = T.match_buffer(p, (2, 4), "int32")\nm[0, 1] = n',
        "a comparison is still gt": "if (n > 1):\n    p[0] = n",
    },
    "legalised": {
        "a loop is still tec": "for i in T.tec(0, 4, 1):\n    p[i] = 1",
        "a value of type int32x16 fits no register": 'S.vadd(T.splat(n, 16), T.splat(n, 16), dtype="int32x16")',
        "floordiv has no operator in C": "p[0] = (n // 4)",
        "a tail mask was not lowered": 'S.vadd(v, v, dtype="int32x8", mask=T.tail(n, 8), r=v)',
        "the inactive lanes of vadd have no source": 'S.vadd(v, v, dtype="int32x8", mask=T.mask("3T5F"))',
        "a vector cast was not lowered": "S.cast(v, dtype=\"float32x8\", part='all', saturate=False)",
    },
}


def check(module: IRModule) -> None:
    """All stages of a module; its texts read back equal at each of them."""
    verify_stage(module, "parsed")
    options = pass_manager.PassOptions(verify=True)
    lowered = passes.lower(module, options)
    legalised = passes.legalize(lowered, options)
    for made in (lowered, legalised):
        assert structural_equal(parse_module(print_module(made)), made)
    codegen.emit(legalised, interface_of(lowered))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_what_each_stage_guarantees(name):
    check(parse(load_kernels(ROOT / "examples" / name / "kernel.py").entry(), "X2_1204"))


@pytest.mark.parametrize("seed", range(30, 45))
def test_random_programs_have_what_each_stage_guarantees(seed):
    program = generate(seed)
    check(parse_kernel(load_kernel(program), program.target))


@pytest.mark.parametrize(("stage", "message"), [(stage, m) for stage, wrong in WRONG.items() for m in wrong])
def test_a_module_that_lacks_it_is_refused(stage, message):
    module = parse_module(module_text(WRONG[stage][message], V))
    with pytest.raises(VerifyError) as error:
        verify_stage(module, stage)
    assert message in str(error.value)
    if stage:
        verify_stage(module)


@pytest.mark.parametrize(
    ("file", "guaranteed"), [(".ir.txt", "parsed"), (".lowered.txt", "lowered"), (".legal.txt", "legalised")]
)
def test_a_stage_refuses_a_file_without_what_it_relies_on(file, guaranteed, tmp_path):
    from compassc.analysis.interface import interface_of
    from compassc.driver import STAGES as COMMANDS
    from compassc.driver.build import Request, new_build
    from compassc.driver.interface import interface_text

    stage = next(command for command in COMMANDS if command.reads == file)
    for text in some(WRONG[guaranteed].values()):
        path = tmp_path / f"k{file}"
        module = parse_module(module_text(text, V))
        path.write_text(module_text(text, V) + interface_text(interface_of(module)))
        with pytest.raises(CompassError, match=f"this IR is not {guaranteed}: ") as error:
            stage.load(new_build(Request(folder=tmp_path)), path)
        assert error.value.code == "ir-text" and error.value.help


def test_each_stage_has_rules_of_its_own():
    assert {*WRONG} == {"", *STAGES}


def test_text_with_an_unknown_operation_is_refused_as_text(tmp_path):
    from compassc.driver.build import Request, new_build
    from compassc.driver.stages import _load_module

    path = tmp_path / "k.ir.txt"
    path.write_text(module_text('S.vaddd(v, v, dtype="int32x8")', V))
    with pytest.raises(CompassError, match="there is no operation 'vaddd'") as error:
        _load_module(new_build(Request(folder=tmp_path)), path)
    assert error.value.code == "ir-text"


OTHER_NODES = ("alloc_events", "const_mask", "i", "iota", "reinterpret", "tail_mask", "u", "vbcast")
"""Special operations that are no calls in the IR: it has nodes of their own, or constants."""


def calls_of(op: core.Op) -> list[E.Call]:
    """The IR nodes of an operation in the kernel on its page."""
    module = parse_kernel(kernels()[op.name], "X2_1204")
    return [e for f in module.functions for e in all_exprs(f.body, E.F_CALL) if type(e) is E.Call and e.op == op.name]


SPECIAL = sorted(n for n, op in core.load().items() if op.special and op.example)


@pytest.mark.parametrize("name", OTHER_NODES)
def test_operations_of_other_nodes_are_no_calls(name):
    assert name in SPECIAL and calls_of(core.get(name)) == []


@pytest.mark.parametrize("name", [n for n in SPECIAL if n not in OTHER_NODES])
def test_special_operations_have_the_operands_and_options_that_are_declared(name):
    op = core.get(name)
    for e in some(calls_of(op)):
        assert _as_declared(op, e) is None
        fields = (e.dtype, e.mask, e.r)
        assert "has no option" in _as_declared(op, E.Call(name, e.args, *fields, (*e.attrs, ("rounded", True))))
        for args in ([*e.args, *e.args[-1:]], e.args[1:]) if not any(o[0] == "*" for o in op.operands) else ():
            assert not e.args or " takes " in _as_declared(op, E.Call(name, tuple(args), *fields, e.attrs))


def test_ir_text_without_an_operand_is_refused_at_once():
    """A pass would have looked for it."""
    with pytest.raises(VerifyError, match="S.vload takes ptr, stride, got 1 operands"):
        verify_stage(parse_module(module_text('S.vload(T.addr(p, 0), dtype="int32x8")', V)))

"""The virtual machine against the interpreter: branches, recursion, closures, data types, open extents."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_runtime.devices import cpu, cuda
from compass_runtime.ndarray import empty
from compassc import relay
from compassc.ir.errors import ExpressionError
from compassc.pass_manager.context import PassContext
from compassc.relay.backend import vm
from compassc.relay.backend.executors import create_executor
from compassc.relay.backend.vm import instructions, machine
from compassc.relay.backend.vm.executable import Executable, VMFunction
from compassc.relay.interpreter import ConstructorValue, Interpreter
from compassc.relay.loops import while_loop
from compassc.relay.passes import make
from tests.choosing import some
from tests.relay.relay_values import SHAPE, evaluate, functions, module

X, Y = np.arange(6, dtype="float32").reshape(SHAPE) - 2, np.full(SHAPE, 1.5, "float32")
PRELUDE = relay.Prelude().mod
_, CONS, _ = PRELUDE.get_type("List")
VERSION = '#[version = "0.0.5"]\n'


def _plain(value: object) -> object:
    """A value as Python has it; of a data type the tag and the fields."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, ConstructorValue):
        return (value.tag, *map(_plain, value.fields))
    return value.numpy().tolist()  # type: ignore[attr-defined]


def _machine(text: str, **options: object) -> vm.VirtualMachine:
    return vm.VirtualMachine(vm.compile(relay.parse(VERSION + text), **options), cpu())


OPEN = functions(branches=True, shape=(relay.Any(), 3))


@settings(max_examples=6, deadline=None)
@given(f=functions(branches=True) | OPEN, level=st.sampled_from([0, 3]))
def test_branches_compute_what_references_do(f, level):
    expected = evaluate(make("InferType")(module(f)), X, Y)
    with PassContext(opt_level=level):
        found = create_executor("vm").evaluate(f)(X, Y)
    for a, b in some(zip(found if isinstance(found, tuple) else (found,), expected, strict=True)):
        np.testing.assert_array_equal(a.numpy(), b)


INTS = ["%a", "%b", "3", "-2", "@first(%p)", "%f(%b)", "@sum(%l)"]
PAIRS = ["%p", "(%a, %b)", "({0}, {1})"]
LISTS = [
    "@none()", "%l", "@rev(%l)", "Cons({0}, %l)", "@map(fn (%x: int32) {{ %x + {0} }}, %l)",
    "if (@first(%p) < {0}) {{ Cons({1}, %l) }} else {{ %l }}",
]  # fmt: skip
GROWN = [
    "({0} - {1})", "%f({0})", "@first({pair})", "if ({0} < {1}) {{ {2} }} else {{ {0} }}",
    "{{ let %q = {pair}; let %p = %q; {2} }}", "{{ let %g = fn (%c: int32) {{ %c - {0} }}; let %f = %g; {1} }}",
    "match ({list}) {{ Cons(%b, %l) => {{ {2} }}, Nil => {{ {1} }} }}", "match ({pair}) {{ (%b, %a) => {{ {2} }} }}",
]  # fmt: skip


@st.composite
def _texts(draw) -> str:
    """Texts of numbers in which %a, %b, the pair %p, the list %l and the function %f are known."""
    known = list(INTS)
    for _ in range(draw(st.integers(1, 5))):
        parts = [draw(st.sampled_from(known)) for _ in range(3)]
        pair, listed = (draw(st.sampled_from(forms)).format(*parts) for forms in (PAIRS, LISTS))
        known = [draw(st.sampled_from(GROWN)).format(*parts, pair=pair, list=listed), *known[:6]]
    return known[0]


PROGRAM = """
def @none() -> List[int32] {{ Nil }}
def @first(%q: (int32, int32)) -> int32 {{ %q.0 }}
def @entry(%a: int32, %b: int32, %l: List[int32]) {{
  let %p = (%b, %a);
  let %f = fn (%n: int32) -> int32 {{ if (%n < 1) {{ %a }} else {{ %b - %f(%n - 2) }} }};
  {}
}}"""


@settings(max_examples=12, deadline=None)
@given(body=_texts(), a=st.integers(-3, 5), b=st.integers(-3, 5), n=st.integers(0, 3), level=st.sampled_from([0, 3]))
def test_programs_compute_what_the_interpreter_does(body, a, b, n, level):
    made = relay.parse(VERSION + PROGRAM.format(body), init_module=relay.Prelude().mod)
    entry = made.get_global_var("entry")
    _, cons, nil = made.get_type("List")
    data = ConstructorValue(nil.tag, [], nil)
    for i in range(n):
        data = ConstructorValue(cons.tag, [relay.const(i).data, data], cons)
    values = (a, b, data)
    with PassContext(opt_level=level):
        found = create_executor("vm", made).evaluate(entry)(*values)
    assert _plain(found) == _plain(Interpreter(made).evaluate(entry)(*values))


TEXTS = {
    "a list": "@rev(Cons(1, Cons(2, Nil)))",
    "a constructor as a function": "@map(Some, Cons(1, Nil))",
    "a closure that is given": "@compose(fn (%a: int32) { %a + 1 }, fn (%a: int32) { %a * 3 })(5)",
    "trees": "@size(Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Nil), Nil))))",
    "nested patterns": "match ((Cons(1, Nil), Some(2))) { (Cons(%x, Nil), Some(%y)) => { %x - %y }, _ => { 0 } }",
    "other names": "let %p = (1, 2); let %f = fn () { %p.1 }; let %q = %p; (%q.0, %f())",
    "references": "let %r = ref(2); let %u = ref_write(%r, ref_read(%r) * 5); (ref_read(%r), %u)",
    "a value that is shared": "let %r = ref(0); let %f = fn () { ref_write(%r, ref_read(%r) + 1) }; %0 = %f(); (%0, %0); ref_read(%r)",
}


@pytest.mark.parametrize("case", TEXTS)
def test_values_of_all_kinds(case):
    e = relay.parse_expr(TEXTS[case], init_module=PRELUDE)
    assert _plain(create_executor("vm", PRELUDE).evaluate(e)) == _plain(Interpreter(PRELUDE).evaluate(e))


RNN = """
type Steps { End, Step(Tensor[(1, 3), float32], Steps) }
def @cell(%x: Tensor[(1, 3), float32], %h: Tensor[(1, 4), float32], %w: Tensor[(4, 3), float32], %u: Tensor[(4, 4), float32]) {
  tanh(nn.dense(%x, %w, units=None) + nn.dense(%h, %u, units=None))
}
def @rnn(%s: Steps, %h: Tensor[(1, 4), float32], %w: Tensor[(4, 3), float32], %u: Tensor[(4, 4), float32])
    -> Tensor[(1, 4), float32] {
  match (%s) { End => { %h }, Step(%x, %more) => { @rnn(%more, @cell(%x, %h, %w, %u), %w, %u) } }
}
def @main(%s: Steps, %h: Tensor[(1, 4), float32], %w: Tensor[(4, 3), float32], %u: Tensor[(4, 4), float32]) {
  @rnn(%s, %h, %w, %u)
}"""


def test_a_recurrent_network_is_a_recursive_function(monkeypatch):
    monkeypatch.setattr(machine, "MOST_FRAMES", 3)  # the call that recurses is the last one, and takes no frame
    rng = np.random.default_rng(3)
    w, u, h = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((4, 3), (4, 4), (1, 4)))
    xs = rng.uniform(-1, 1, (9, 1, 3)).astype("float32")
    made = relay.parse(VERSION + RNN)
    _, end, step = made.get_type("Steps")
    data = ConstructorValue(end.tag, [], end)
    for x in xs[::-1]:
        data = ConstructorValue(step.tag, [relay.const(x).data, data], step)
    exe = vm.compile(made, "llvm", params={"w": w, "u": u})
    assert "Computed by references (# 0)" in exe.stats and exe.get_function_params("main") == ["s", "h"]
    expected = h
    for x in xs:
        expected = np.tanh(x @ w.T + expected @ u.T)
    np.testing.assert_allclose(vm.VirtualMachine(exe, cpu()).run(data, h).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_loops_take_no_frames(monkeypatch):
    monkeypatch.setattr(machine, "MOST_FRAMES", 4)
    i, total = relay.var("i", "int32"), relay.var("total", shape=SHAPE)
    loop = while_loop(
        lambda i, _: i < relay.const(30), [i, total], lambda i, t: [i + relay.const(1), t + t * relay.const(0.5)]
    )
    found = create_executor("vm").evaluate(loop(relay.const(0), relay.const(Y)))
    assert found[0].numpy() == 30
    np.testing.assert_allclose(found[1].numpy(), Y * np.float32(1.5) ** 30, rtol=1e-5)


COUNT = "def @main(%n: int32) -> int32 { if (%n == 0) { 0 } else { 1 + @main(%n - 1) } }"


def test_recursion_may_be_deep_and_has_an_end(monkeypatch):
    run = _machine(COUNT).run
    assert run(2_000).numpy() == 2_000
    monkeypatch.setattr(machine, "MOST_FRAMES", 100)
    assert run(99).numpy() == 99
    with pytest.raises(ExpressionError, match="the program recurses: 100 calls wait"):
        run(100)
    assert run(99).numpy() == 99


BATCH = """
def @main(%x: Tensor[(?, 3), float32], %w: Tensor[(4, 3), float32]) {
  let %y = nn.relu(nn.dense(%x, %w, units=None));
  (nn.softmax(%y), sum(multiply(%w, 2f)))
}"""


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_batches_may_be_open(batch):
    w = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    x = np.linspace(-2, 2, batch * 3, dtype="float32").reshape(batch, 3)
    run = _machine(BATCH)
    assert "reference_nn_dense: extents are known when it runs" in run.exe.stats.replace("_nn_relu", "")
    assert "vm_mod_fused_" in run.exe.stats
    found = run.run(x, w)
    expected = Interpreter(relay.parse(VERSION + BATCH)).evaluate()(x, w)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    with pytest.raises(CompassError, match=r"x is Tensor\[\(5, 4\), float32\]"):
        run.run(np.ones((5, 4), "float32"), w)


def test_extents_may_come_of_data():
    run = _machine("def @main(%x: Tensor[(?), int32]) { argwhere(greater(%x, 1)) }")
    assert run.run(np.array([3, 0, 5], "int32")).numpy().tolist() == [[0], [2]]


def test_what_programs_do_with_a_machine():
    run = _machine("def @main(%x: int32, %y: int32) { (%x - %y, %x) }", params={"z": X})
    with pytest.raises(ExpressionError, match="Input has not been set for function main"):
        run.run()
    run.set_input("main", 7, y=2, nobody=3)
    run.invoke_stateful("main")
    assert [t.numpy() for t in run.get_outputs()] == [5, 7]
    assert run.invoke("main", y=1, x=1)[0].numpy() == 0
    assert run.get_input_index("y") == 1 and run.get_input_index("nobody") == -1
    text = run.exe.bytecode
    assert "VM Function[0]: main(x, y)" in text and "invoke_packed PackedFunc[0] args: $0, $1 dst: $2" in text


def test_functions_that_are_given_can_be_called():
    made = _machine("def @main(%x: int32) { fn (%y: int32) { %x - %y } }").run(7)
    assert made(2).numpy() == 5 and made(y=9).numpy() == -2


def test_mistakes_are_refused():
    partial = relay.parse_expr("match (Cons(1, Nil)) { Nil => { 1 } }", init_module=PRELUDE)
    assert isinstance(partial, relay.Match)
    open_match = relay.Match(partial.data, partial.clauses, complete=False)
    with pytest.raises(CompassError, match="no clause takes Cons"):
        create_executor("vm", PRELUDE).evaluate(open_match)
    for wrong, words in [
        (lambda: vm.compile(relay.parse(VERSION + COUNT), "cuda"), "runs on the host and on NPUs, not on cuda"),
        (lambda: vm.compile(relay.IRModule()), "has no function main"),
        (lambda: vm.VirtualMachine("program", cpu()), "runs an Executable, not a str"),
        (lambda: vm.VirtualMachine(vm.compile(relay.parse(VERSION + COUNT)), cuda()), "runs on the host"),
        (lambda: _machine(COUNT).invoke("mian"), "no function mian"),
        (lambda: _machine(COUNT).run(1, 2), "expected 1, provided 2"),
        (lambda: create_executor("vm").evaluate(relay.Function([], relay.var("z"))), "free variables: z"),
    ]:
        with pytest.raises(CompassError, match=words):
            wrong()


NUMBERS = {c: [f.name for f in dataclasses.fields(c)] for c in machine._STEPS}


@pytest.mark.parametrize(("made", "name"), [(c, n) for c in NUMBERS for n in NUMBERS[c] if n != "index"])
def test_instructions_that_number_nothing_are_refused(made, name):
    assert set(NUMBERS) == set(instructions.Instruction.__subclasses__())
    fields = {k: (0,) if k == "args" else 0 for k in NUMBERS[made]}
    table = [relay.const(1).data], [lambda args: args[0]], [CONS]

    def executable(one):
        return Executable([VMFunction("f", (), 1, (one, instructions.Ret(0)))], *table)

    assert f"0: {made.NAME} " in executable(made(**fields)).bytecode
    with pytest.raises(CompassError, match=f"no such {name}"):
        executable(made(**{**fields, name: (9,) if name == "args" else 9}))


def test_a_profile_tells_each_primitive():
    x = relay.var("x", shape=(2, 3))
    module = relay.IRModule.from_expr(relay.Function([x], relay.If(relay.const(True), relay.exp(x), x)))
    profiler = vm.VirtualMachineProfiler(vm.compile(module), cpu())
    assert profiler.enabled()
    report = profiler.profile(np.zeros((2, 3), "float32"))
    assert [(c["Name"], c["Argument Shapes"]) for c in report.calls] == [
        ("vm_mod_fused_exp", "float32[2, 3], float32[2, 3]")
    ]
    whole = report.device_metrics["cpu0"]["Duration (us)"].microseconds
    assert 0 < sum(c["Duration (us)"].microseconds for c in report.calls) <= whole
    with pytest.raises(CompassError, match="no collectors"):
        profiler.profile(np.zeros((2, 3), "float32"), collectors=[object()])


def test_inputs_are_set_one_by_one_and_outputs_written():
    a, b = relay.var("a", shape=SHAPE), relay.var("b", shape=SHAPE)
    f = relay.Function([a, b], relay.Tuple([a - b, a]))
    runner = vm.VirtualMachine(vm.compile(relay.IRModule.from_expr(f)), cpu())
    one, three = np.ones(SHAPE, "float32"), np.full(SHAPE, 3, "float32")
    runner.set_one_input("main", 1, one)
    with pytest.raises(ExpressionError, match="Input has not been set"):
        runner.invoke("main")
    runner.set_one_input("main", a=three)
    first, second = runner.invoke("main")
    np.testing.assert_array_equal([first.numpy(), second.numpy()], [three - one, three])
    outputs = [empty(SHAPE, "float32"), empty(SHAPE, "float32")]
    runner.invoke_with_outputs("main", {"a": one, "b": three}, outputs)
    np.testing.assert_array_equal([o.numpy() for o in outputs], [one - three, one])
    for wrong in (("main", "c", one), ("main", 2, one), ("main", one)):
        with pytest.raises(ExpressionError):
            runner.set_one_input(*wrong)
    with pytest.raises(ExpressionError, match="gives 2 tensors, not 1"):
        runner.invoke_with_outputs("main", {"a": one, "b": three}, outputs[:1])


def test_a_tensor_of_another_shape_is_the_same_memory():
    x = relay.var("x", shape=SHAPE)
    given = np.arange(6, dtype="float32").reshape(SHAPE)
    only = vm.compile(relay.IRModule.from_expr(relay.Function([x], relay.reshape(x, (6,)))))
    assert "reshape_tensor" in only.bytecode and only.virtual_devices[0].device_type_int == 1
    code, lib = only.save()
    again = vm.VirtualMachine(vm.Executable.load_exec(code, lib), cpu())
    np.testing.assert_array_equal(again.run(given).numpy(), given.reshape(6))

"""The virtual machine: a loop that runs instructions on frames of registers, without recursion in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compass_core.errors import CompassError, UsageError
from compass_runtime.devices import Device
from compass_runtime.ndarray import NDArray
from compass_runtime.timing import BenchmarkResult, Plan, time_evaluator
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.backend.vm import instructions as vm
from compassc.relay.backend.vm.executable import Executable, ExecutableModule, VMFunction
from compassc.relay.backend.vm.primitives import flat
from compassc.relay.interpreter import ConstructorValue, RefValue, Value, arguments, made_by, value_of

MOST_FRAMES = 1_000_000
"""Calls that wait for others, at most."""
_HOST = 1


class Frame:
    """A call under way: its function, registers, the place of the next instruction, and the caller's register for the result."""

    __slots__ = ("caller", "code", "dst", "pc", "registers")

    def __init__(self, function: VMFunction, values: Sequence[Value], caller: Frame | None, dst: int) -> None:
        self.code, self.pc = function.code, 0
        self.registers: list[Value] = [*values, *([()] * (function.registers - len(values)))]
        self.caller, self.dst = caller, dst


class VMClosure:
    """A function as a value, with the values of its first parameters. It can be called with the others."""

    __slots__ = ("function", "kept", "machine")

    def __init__(self, machine: VirtualMachine, function: int, kept: Sequence[Value]) -> None:
        self.machine, self.function, self.kept = machine, function, tuple(kept)

    def __call__(self, *args: object, **named: object) -> Value:
        params = self.machine.exe.functions[self.function].params[len(self.kept) :]
        return self.machine.called(self.function, [*self.kept, *arguments(params, args, named)])


class VirtualMachine:
    """Runs the functions of an executable on the host.

    `device`: the host, or a list with it; `memory_cfg`: taken for what it is elsewhere, memory is the host's. TypeError for
    what is no executable.
    """

    def __init__(
        self, exe: Executable | ExecutableModule, device: Device | Sequence[Device], memory_cfg: object = None
    ) -> None:
        exe = exe.executable if isinstance(exe, ExecutableModule) else exe
        if not isinstance(exe, Executable):
            raise ExpressionTypeError(
                f"a virtual machine runs an Executable, not a {type(exe).__name__}", "give what vm.compile gave"
            )
        devices = [device] if isinstance(device, Device) else list(device)
        if not any(d.device_type == _HOST for d in devices):
            raise UsageError("the virtual machine runs on the host", code="relay-vm", help="give the device cpu()")
        self.exe = exe
        self._inputs: dict[str, list[Value]] = {}
        self._partly: dict[str, dict[int, Value]] = {}
        """Inputs that were set one by one, by the numbers of parameters."""
        self._result: Value | None = None
        self._frame: Frame | None = None
        self._depth = 0

    # ------------------------------------------------------------------------------------------------------- for programs

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Give a function all its inputs, by position or name; names that it does not have are skipped."""
        function = self.exe.functions[self.exe.index_of(func_name)]
        names = {p.name_hint for p in function.params}
        self._inputs[func_name] = arguments(function.params, args, {n: v for n, v in kwargs.items() if n in names})

    def set_one_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Give a function one of its inputs: `(number or name, value)`, or `name=value`. ExpressionError for anything else."""
        function = self.exe.functions[self.exe.index_of(func_name)]
        pair = args if len(args) == 2 else next(iter(kwargs.items()), ())
        if len(args) + 2 * len(kwargs) != 2 or len(pair) != 2:
            raise ExpressionError("one input is set at a time", "give its number or name, and a value")
        key, value = pair
        names = [p.name_hint for p in function.params]
        place = key if isinstance(key, int) else names.index(key) if key in names else len(names)
        if not 0 <= place < len(names):
            raise ExpressionError(f"{func_name} has no input {key}", f"its inputs are {', '.join(names) or 'none'}")
        given = self._partly.setdefault(func_name, {})
        given[place] = value_of(value, function.params[place].type_annotation, names[place])
        if len(given) == len(names):
            self._inputs[func_name] = [given[i] for i in range(len(names))]

    def invoke_with_outputs(
        self, func_name: str, input_args: Mapping[str, object], output_args: Sequence[NDArray]
    ) -> None:
        """Run a function of inputs by name, and write the tensors of its result into arrays. ExpressionError where they are not as
        many."""
        found = flat([self.invoke(func_name, **input_args)])
        if len(found) != len(output_args):
            raise ExpressionError(
                f"{func_name} gives {len(found)} tensors, not {len(output_args)}", "give an array each"
            )
        for value, out in zip(found, output_args, strict=True):
            value.copyto(out)

    def invoke(self, func_name: str, *args: object, **kwargs: object) -> Value:
        """The value of a function of inputs, by default those that were set: tensors, tuples and values of data types."""
        index = self.exe.index_of(func_name)
        if args or kwargs or not self.exe.functions[index].params:
            self.set_input(func_name, *args, **kwargs)
        if func_name not in self._inputs:
            raise ExpressionError(f"Input has not been set for function {func_name}", "call set_input, or give inputs")
        self._result = self.called(index, self._inputs[func_name])
        return self._result

    def run(self, *args: object, **kwargs: object) -> Value:
        """The value of `main`."""
        return self.invoke("main", *args, **kwargs)

    def benchmark(
        self, device: Device, *args: object, func_name: str = "main", repeat: int = 5, number: int = 5,
        min_repeat_ms: float | None = None, limit_zero_time_iterations: int = 100, end_to_end: bool = False,
        cooldown_interval_ms: float = 0, repeats_to_cooldown: int = 1, **kwargs: object,
    ) -> BenchmarkResult:  # fmt: skip
        """Seconds per call of a function of inputs. `end_to_end`: inputs are set in each call, too. See `timing.Plan` for the
        numbers."""
        self.set_input(func_name, *args, **kwargs)
        plan = Plan(
            number, repeat, min_repeat_ms or 0, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )

        def whole() -> None:
            if end_to_end:
                self.set_input(func_name, *args, **kwargs)
            self.called(self.exe.index_of(func_name), self._inputs[func_name])

        return time_evaluator(whole, device, plan)()

    def invoke_stateful(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Run a function; `get_outputs` gives its result."""
        self.invoke(func_name, *args, **kwargs)

    def get_outputs(self) -> list[NDArray]:
        """The tensors that the last call gave."""
        return flat([self._result]) if self._result is not None else []

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The number of a parameter by its name; -1 where there is none."""
        names = self.exe.get_function_params(func_name)
        return names.index(input_name) if input_name in names else -1

    # ----------------------------------------------------------------------------------------------------------- the loop

    def called(self, function: int, values: Sequence[Value]) -> Value:
        """The value of a function of values. ExpressionError for recursion without end."""
        self.exe.ready()
        waiting, depth = self._frame, self._depth
        last = Frame(_NOTHING, [], None, 0)
        self._frame, self._depth = Frame(self.exe.functions[function], values, last, 0), 1
        try:
            while (frame := self._frame) is not last:
                instruction = frame.code[frame.pc]
                frame.pc += 1
                _STEPS[type(instruction)](self, frame, frame.registers, instruction)
        finally:
            self._frame, self._depth = waiting, depth
        return last.registers[0]

    def _enter(self, function: int, values: Sequence[Value], frame: Frame, dst: int) -> None:
        called = self.exe.functions[function]
        if len(values) != len(called.params):
            raise ExpressionError(
                f"@{called.name} of {len(called.params)} parameters is called with {len(values)} values",
                "infer the types of the program",
            )
        following = frame.code[frame.pc]
        if isinstance(following, vm.Ret) and following.result == dst:
            self._frame = Frame(called, values, frame.caller, frame.dst)
            return
        self._depth += 1
        if self._depth > MOST_FRAMES:
            raise ExpressionError(
                f"the program recurses: {MOST_FRAMES:,} calls wait for each other",
                "make the call that recurses the last thing that its function does, or end the recursion",
            )
        self._frame = Frame(called, values, frame, dst)

    def _ret(self, frame: Frame, registers: list[Value], i: vm.Ret) -> None:
        caller = frame.caller
        assert caller is not None, "the outermost frame runs nothing"
        caller.registers[frame.dst] = registers[i.result]
        self._frame = caller
        self._depth -= 1

    def _move(self, frame: Frame, registers: list[Value], i: vm.Move) -> None:
        registers[i.dst] = registers[i.source]

    def _invoke(self, frame: Frame, registers: list[Value], i: vm.Invoke) -> None:
        self._enter(i.function, [registers[a] for a in i.args], frame, i.dst)

    def _invoke_closure(self, frame: Frame, registers: list[Value], i: vm.InvokeClosure) -> None:
        closure, args = registers[i.closure], [registers[a] for a in i.args]
        if isinstance(closure, VMClosure) and closure.machine is self:
            self._enter(closure.function, [*closure.kept, *args], frame, i.dst)
        elif callable(closure):
            registers[i.dst] = closure(*args)
        else:
            raise ExpressionError(f"{closure!r} is no function", "infer the types of the program")

    def _invoke_packed(self, frame: Frame, registers: list[Value], i: vm.InvokePacked) -> None:
        registers[i.dst] = self.computed(i.primitive, [registers[a] for a in i.args])

    def _reshape_tensor(self, frame: Frame, registers: list[Value], i: vm.ReshapeTensor) -> None:
        registers[i.dst] = self.exe.primitives[i.primitive]([registers[a] for a in i.args])

    def computed(self, primitive: int, args: Sequence[Value]) -> Value:
        """What a primitive, by its number, gives of values."""
        return self.exe.primitives[primitive](args)

    def _alloc_tuple(self, frame: Frame, registers: list[Value], i: vm.AllocTuple) -> None:
        registers[i.dst] = tuple([registers[a] for a in i.args])

    def _alloc_adt(self, frame: Frame, registers: list[Value], i: vm.AllocADT) -> None:
        constructor = self.exe.constructors[i.constructor]
        registers[i.dst] = ConstructorValue(constructor.tag, [registers[a] for a in i.args], constructor)

    def _alloc_closure(self, frame: Frame, registers: list[Value], i: vm.AllocClosure) -> None:
        registers[i.dst] = VMClosure(self, i.function, [registers[a] for a in i.args])

    def _get_field(self, frame: Frame, registers: list[Value], i: vm.GetField) -> None:
        whole = registers[i.object]
        fields = whole.fields if isinstance(whole, ConstructorValue) else whole
        if not isinstance(fields, tuple) or i.index >= len(fields):
            raise ExpressionError(f"there is no field {i.index} of {whole!r}", "infer the types of the program")
        registers[i.dst] = fields[i.index]

    def _if(self, frame: Frame, registers: list[Value], i: vm.If) -> None:
        test = registers[i.test]
        if not isinstance(test, NDArray) or test.shape != ():
            raise ExpressionError(f"a condition is a scalar, not {test!r}", "give a tensor without axes")
        if not np.asarray(test).item():
            frame.pc = i.otherwise

    def _if_tag(self, frame: Frame, registers: list[Value], i: vm.IfTag) -> None:
        value = registers[i.object]
        if not isinstance(value, ConstructorValue) or not made_by(value, self.exe.constructors[i.constructor]):
            frame.pc = i.otherwise

    def _goto(self, frame: Frame, registers: list[Value], i: vm.Goto) -> None:
        frame.pc = i.place

    def _load_const(self, frame: Frame, registers: list[Value], i: vm.LoadConst) -> None:
        registers[i.dst] = self.exe.constants[i.constant]

    def _alloc_ref(self, frame: Frame, registers: list[Value], i: vm.AllocRef) -> None:
        registers[i.dst] = RefValue(registers[i.value])

    def _read_ref(self, frame: Frame, registers: list[Value], i: vm.ReadRef) -> None:
        registers[i.dst] = _cell(registers[i.ref]).value

    def _write_ref(self, frame: Frame, registers: list[Value], i: vm.WriteRef) -> None:
        _cell(registers[i.ref]).value = registers[i.value]
        registers[i.dst] = ()

    def _fatal(self, frame: Frame, registers: list[Value], i: vm.Fatal) -> None:
        raise _NoClause(
            f"no clause takes {registers[i.object]!r}", code="relay-run", help="add a clause for it to the match"
        )


class _NoClause(CompassError):
    """A value that no clause of a match takes."""


def _cell(value: Value) -> RefValue:
    if not isinstance(value, RefValue):
        raise ExpressionError(f"{value!r} is no reference", "infer the types of the program")
    return value


_NOTHING = VMFunction("", (), 1, ())
_STEPS: dict[type[vm.Instruction], Callable[[VirtualMachine, Frame, list[Value], Any], None]] = {
    vm.Ret: VirtualMachine._ret,
    vm.Move: VirtualMachine._move,
    vm.Invoke: VirtualMachine._invoke,
    vm.InvokeClosure: VirtualMachine._invoke_closure,
    vm.InvokePacked: VirtualMachine._invoke_packed,
    vm.ReshapeTensor: VirtualMachine._reshape_tensor,
    vm.AllocTuple: VirtualMachine._alloc_tuple,
    vm.AllocADT: VirtualMachine._alloc_adt,
    vm.AllocClosure: VirtualMachine._alloc_closure,
    vm.GetField: VirtualMachine._get_field,
    vm.If: VirtualMachine._if,
    vm.IfTag: VirtualMachine._if_tag,
    vm.Goto: VirtualMachine._goto,
    vm.LoadConst: VirtualMachine._load_const,
    vm.AllocRef: VirtualMachine._alloc_ref,
    vm.ReadRef: VirtualMachine._read_ref,
    vm.WriteRef: VirtualMachine._write_ref,
    vm.Fatal: VirtualMachine._fatal,
}

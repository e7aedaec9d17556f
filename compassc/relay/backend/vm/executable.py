"""What the virtual machine runs: functions of instructions, constants, primitives and constructors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compass_runtime.ndarray import NDArray
from compassc.relay.backend.vm.instructions import Fatal, Goto, Instruction, Kind, Ret
from compassc.relay.backend.vm.primitives import Primitive
from compassc.relay.expr import Constructor, Var


@dataclass(frozen=True)
class VMFunction:
    """A function: its parameters are in the first of its registers."""

    name: str
    params: tuple[Var, ...]
    registers: int
    code: tuple[Instruction, ...]


class Executable:
    """A program. UsageError where an instruction numbers something that there is not."""

    def __init__(
        self,
        functions: Sequence[VMFunction],
        constants: Sequence[NDArray],
        primitives: Sequence[Primitive],
        constructors: Sequence[Constructor],
    ) -> None:
        self.functions, self.constants = tuple(functions), tuple(constants)
        self.primitives, self.constructors = tuple(primitives), tuple(constructors)
        self._index = {f.name: i for i, f in enumerate(self.functions)}
        for f in self.functions:
            self._check(f)

    def _check(self, f: VMFunction) -> None:
        limits = {
            Kind.REGISTER: f.registers,
            Kind.FUNCTION: len(self.functions),
            Kind.PRIMITIVE: len(self.primitives),
            Kind.CONSTANT: len(self.constants),
            Kind.CONSTRUCTOR: len(self.constructors),
            Kind.PLACE: len(f.code),
        }
        if not f.code or not isinstance(f.code[-1], (Ret, Goto, Fatal)) or len(f.params) > f.registers:
            raise UsageError(f"@{f.name} does not end, or has no registers for its parameters", code="relay-vm")
        for place, instruction in enumerate(f.code):
            for name, kind, numbers in instruction.operands():
                if any(n < 0 or n >= limits.get(kind, n + 1) for n in numbers):
                    raise UsageError(f"@{f.name}, instruction {place}: {instruction}: no such {name}", code="relay-vm")

    def index_of(self, name: str) -> int:
        """The number of a function. UsageError where there is none of that name."""
        if name not in self._index:
            raise UsageError(
                f"the program has no function {name}", code="relay-vm", help=help_for(name, self.globals, "functions")
            )
        return self._index[name]

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [f.name for f in self.functions]

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the primitives."""
        return [p.name for p in self.primitives]

    def get_function_params(self, func_name: str) -> list[str]:
        """The names of a function's parameters."""
        return [p.name_hint for p in self.functions[self.index_of(func_name)].params]

    @property
    def bytecode(self) -> str:
        """The instructions as text."""
        lines: list[str] = []
        for i, f in enumerate(self.functions):
            names = ", ".join(p.name_hint for p in f.params)
            lines += [f"VM Function[{i}]: {f.name}({names})", f"# reg file size = {f.registers}"]
            lines += [f"# instruction count = {len(f.code)}"]
            lines += [f"{place:4}: {instruction}" for place, instruction in enumerate(f.code)]
            lines.append("")
        return "\n".join(lines)

    @property
    def stats(self) -> str:
        """What the program consists of; of primitives that are no kernels, why."""
        shapes = ", ".join(str(list(c.shape)) if c.shape else "scalar" for c in self.constants)
        lines = [
            "Relay VM executable statistics:",
            f"  Constant shapes (# {len(self.constants)}): [{shapes}]",
            f"  Globals (# {len(self.functions)}): {', '.join(self.globals)}",
            f"  Primitive ops (# {len(self.primitives)}): {', '.join(self.primitive_ops)}",
        ]
        by_reference = [p for p in self.primitives if p.why]
        lines.append(f"  Computed by references (# {len(by_reference)}):")
        lines += [f"    {p.name}: {p.why}" for p in by_reference]
        return "\n".join(lines)

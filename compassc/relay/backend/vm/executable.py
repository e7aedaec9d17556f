"""What the virtual machine runs: functions of instructions, constants, primitives and constructors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compass_runtime.module import HostModule, Module
from compass_runtime.ndarray import NDArray
from compass_runtime.param_dict import load_param_dict_from_file, save_param_dict_to_file
from compassc.relay.backend.vm import saving
from compassc.relay.backend.vm.instructions import Fatal, Goto, Instruction, Kind, LoadConst, Ret
from compassc.relay.backend.vm.primitives import Kernel, Primitive
from compassc.relay.expr import Constructor, Var


@dataclass(frozen=True)
class VMFunction:
    """A function: its parameters are in the first of its registers."""

    name: str
    params: tuple[Var, ...]
    registers: int
    code: tuple[Instruction, ...]


_MOVED = NDArray(np.zeros((), "bool"))
"""What stands for a constant that is in a file."""


class Executable:
    """A program. UsageError where an instruction numbers something that there is not. `late`: the constants that are in a file."""

    def __init__(
        self,
        functions: Sequence[VMFunction],
        constants: Sequence[NDArray],
        primitives: Sequence[Primitive],
        constructors: Sequence[Constructor],
        late: Collection[int] = (),
    ) -> None:
        self._late = set(late)
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

    # ----------------------------------------------------------------------------------------------------------- as files

    @property
    def lib(self) -> Module:
        """The kernels."""
        made = HostModule()
        modules = {id(p.module): p.module for p in self.primitives if isinstance(p, Kernel)}
        for module in modules.values():
            made.import_module(module)
        return made

    def save(self) -> tuple[bytearray, Module]:
        """The program as bytes, and its kernels, for `load_exec`; constants that were moved to a file are left out."""
        kept = {n: c for n, c in enumerate(self.constants) if n not in self._late}
        return bytearray(saving.save(self.functions, kept, self.primitives, self.constructors)), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: Module | None) -> Executable:
        """The program that `save` wrote. UsageError for bytes that are damaged, with the function and the instruction where one is
        wrong, and for a library that lacks a kernel."""
        functions, constants, primitives, constructors = saving.load(bytes(bytecode), lib, VMFunction)
        count = 1 + max([-1, *constants, *[i.constant for f in functions for i in f.code if isinstance(i, LoadConst)]])
        if count > len(bytecode):  # each is loaded somewhere
            raise saving.refused(f"it numbers {count:,} constants")
        late = {n for n in range(count) if n not in constants}
        return Executable(functions, [constants.get(n, _MOVED) for n in range(count)], primitives, constructors, late)

    def move_late_bound_consts(self, path: str | Path, byte_limit: int) -> None:
        """Move constants of more bytes than the limit to a file, which `load_late_bound_consts` reads before the program runs."""
        self._late |= {n for n, c in enumerate(self.constants) if np.asarray(c).nbytes > byte_limit}
        save_param_dict_to_file({str(n): self.constants[n] for n in sorted(self._late)}, path)
        self.constants = tuple([_MOVED if n in self._late else c for n, c in enumerate(self.constants)])

    def load_late_bound_consts(self, path: str | Path) -> None:
        """Take the constants that were moved to a file. UsageError where it lacks one."""
        given = load_param_dict_from_file(path)
        missing = [n for n in sorted(self._late) if str(n) not in given]
        if missing:
            raise UsageError(
                f"{path} has no constant {missing[0]}", code="relay-vm", help="give the file of this program"
            )
        self.constants = tuple([given[str(n)] if n in self._late else c for n, c in enumerate(self.constants)])
        self._late = set()

    def ready(self) -> None:
        """Nothing. UsageError where constants are in a file that has not been loaded."""
        if self._late:
            raise UsageError(
                f"{len(self._late)} constants of the program are in a file",
                code="relay-vm",
                help="call load_late_bound_consts(path)",
            )

    # ---------------------------------------------------------------------------------------------------- what it consists of

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

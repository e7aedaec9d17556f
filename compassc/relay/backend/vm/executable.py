"""What the virtual machine runs: functions of instructions, constants, primitives and constructors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compass_runtime.module import LOADER, RUNNABLE, SERIALIZABLE, HostModule, Module
from compass_runtime.ndarray import NDArray
from compass_runtime.packed import register_func
from compass_runtime.param_dict import load_param_dict_from_file, save_param_dict_to_file
from compassc.ir.errors import ExpressionTypeError
from compassc.relay.backend.storage import HOST
from compassc.relay.backend.vm import saving
from compassc.relay.backend.vm.instructions import Fatal, Goto, Instruction, Kind, LoadConst, Ret
from compassc.relay.backend.vm.primitives import Kernel, Primitive
from compassc.relay.expr import Constructor, Var
from compassc.targets.virtual_device import VirtualDevice


@dataclass(frozen=True)
class VMFunction:
    """A function: its parameters are in the first of its registers."""

    name: str
    params: tuple[Var, ...]
    registers: int
    code: tuple[Instruction, ...]


LATE = "const_"
"""What names of constants in a file begin with, before their numbers."""
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

    @property
    def module(self) -> ExecutableModule:
        """The program as a module, which is exported as one file; `load_module` reads it, in a process that knows this machine."""
        code, lib = self.save()
        made = ExecutableModule(bytes(code))
        for kernels in lib.imported_modules:
            made.import_module(kernels)
        return made

    mod = module

    @staticmethod
    def load_exec(bytecode: bytes | bytearray | str, lib: Module | None) -> Executable:
        """The program that `save` wrote. UsageError for bytes that are damaged, with the function and the instruction where one is
        wrong, and for a library that lacks a kernel. TypeError for what is neither bytes nor a library."""
        if isinstance(bytecode, str):
            bytecode = bytecode.encode("latin-1", "replace")
        if not isinstance(bytecode, (bytes, bytearray)):
            raise ExpressionTypeError(f"a program is bytes, not a {type(bytecode).__name__}", "give what save() gave")
        if not (lib is None or isinstance(lib, Module)):
            raise ExpressionTypeError(f"a library is a module, not a {type(lib).__name__}", "give what save() gave")
        functions, constants, primitives, constructors = saving.load(bytes(bytecode), lib, VMFunction)
        count = 1 + max([-1, *constants, *[i.constant for f in functions for i in f.code if isinstance(i, LoadConst)]])
        if count > len(bytecode):  # each is loaded somewhere
            raise saving.refused(f"it numbers {count:,} constants")
        late = {n for n in range(count) if n not in constants}
        return Executable(functions, [constants.get(n, _MOVED) for n in range(count)], primitives, constructors, late)

    def move_late_bound_consts(self, path: str | Path, byte_limit: int) -> None:
        """Move constants of at least as many bytes as the limit to a file, which `load_late_bound_consts` reads before the program
        runs."""
        save_param_dict_to_file(self.get_late_bound_consts(byte_limit), path)

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """Take constants of at least as many bytes as the limit out of the program: by names, as `load_late_bound_consts_from_map`
        takes them before it runs."""
        self._late |= {n for n, c in enumerate(self.constants) if np.asarray(c).nbytes >= byte_limit}
        moved = {LATE + str(n): self.constants[n] for n in sorted(self._late)}
        self.constants = tuple([_MOVED if n in self._late else c for n, c in enumerate(self.constants)])
        return moved

    def load_late_bound_consts(self, path: str | Path) -> None:
        """Take the constants that were moved to a file. UsageError where it lacks one."""
        self._take(load_param_dict_from_file(path), str(path))

    def load_late_bound_consts_from_map(self, map: Mapping[str, NDArray]) -> None:
        """Take the constants that `get_late_bound_consts` gave. UsageError where one is missing."""
        self._take(map, "the map")

    def _take(self, given: Mapping[str, NDArray], where: str) -> None:
        missing = [n for n in sorted(self._late) if LATE + str(n) not in given]
        if missing:
            raise UsageError(
                f"{where} has no constant {missing[0]}", code="relay-vm", help="give the constants of this program"
            )
        self.constants = tuple([given[LATE + str(n)] if n in self._late else c for n, c in enumerate(self.constants)])
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
    def virtual_devices(self) -> list[VirtualDevice]:
        """Where programs compute: the host."""
        return [HOST]

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


class ExecutableModule(Module):
    """An executable as a module: its bytes, and its kernels as imports."""

    type_key = "compass.relay.Executable"
    flags = SERIALIZABLE | RUNNABLE

    def __init__(self, code: bytes) -> None:
        super().__init__()
        self.code = code

    @property
    def executable(self) -> Executable:
        """The program."""
        return Executable.load_exec(self.code, self)

    def save_to_bytes(self) -> bytes:
        return self.code


register_func(LOADER + ExecutableModule.type_key, ExecutableModule)

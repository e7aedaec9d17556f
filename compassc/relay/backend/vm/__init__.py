"""The virtual machine: programs with branches, recursion, closures, data types and open extents.

`compile` makes an `Executable` of a module: `instructions` are what it consists of, `codegen` writes them, `primitives` are the
kernels that they call, and `VirtualMachine` runs them."""

from compassc.relay.backend.vm.compiler import VMCompiler, compile
from compassc.relay.backend.vm.executable import Executable
from compassc.relay.backend.vm.machine import VirtualMachine
from compassc.relay.backend.vm.profiler import VirtualMachineProfiler

__all__ = ["Executable", "VMCompiler", "VirtualMachine", "VirtualMachineProfiler", "compile"]

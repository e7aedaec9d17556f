"""Running functions and expressions: `create_executor(kind, module).evaluate(function)(*arrays)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, Union

from compass_core.arrays import Array
from compass_core.errors import UsageError
from compass_runtime.devices import Device, cpu
from compass_runtime.graph_executor import GraphModule
from compass_runtime.ndarray import NDArray
from compassc.ir.errors import ExpressionError
from compassc.relay.backend.build import bind_main, build
from compassc.relay.backend.vm import VirtualMachine
from compassc.relay.backend.vm.compiler import executable
from compassc.relay.backend.vm.primitives import flat
from compassc.relay.expr import Expr, Function, GlobalVar, Let, Var, as_expr
from compassc.relay.interpreter import Interpreter, Value, arguments
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.types import TupleType, Type, is_dynamic
from compassc.relay.variables import free_vars

Result = Union[Value, "list[Result]"]
"""A value, or those of a tuple as graphs give them."""


class Executor(Protocol):
    """What evaluates expressions with the functions of a module."""

    def evaluate(self, expr: object = None, binds: Mapping[Var, object] | None = None) -> Any:
        """A function to call with arrays for `main` (without `expr`), a Function or a GlobalVar; the value of any other
        expression, in which variables have the values of `binds`."""


class GraphRunner:
    """Functions as graphs of kernels: straight-line programs with known shapes. Results are tensors, lists for tuples."""

    def __init__(self, module: IRModule, device: Device | None, target: object) -> None:
        self.module, self.device, self.target = module, device or cpu(), target

    def evaluate(self, expr: object = None, binds: Mapping[Var, object] | None = None) -> Any:
        """What runs a function, or the value of an expression (`Executor`)."""
        given = _bound(self.module[MAIN] if expr is None else as_expr(expr), binds)
        if isinstance(given, GlobalVar):
            given = self.module[given]
        if not isinstance(given, Function):
            return self._built(Function([], given))()
        return self._built(_closed(given))

    def _built(self, f: Function) -> Callable[..., Result]:
        functions: dict[GlobalVar, BaseFunc] = {v: g for v, g in self.module.functions.items() if v.name_hint != MAIN}
        functions[GlobalVar(MAIN)] = f
        module = infer_type.run(changed(self.module, functions))
        result = module[MAIN].ret_type
        if is_dynamic(result):
            raise ExpressionError(
                f"Graph Executor only supports static graphs, got output type {result}", 'use create_executor("vm")'
            )
        graph = GraphModule(build(module, self.target)["default"](self.device))

        def run(*args: object, **named: object) -> Result:
            for i, value in enumerate(flat(arguments(f.params, args, named))):
                graph.set_input(i, value)
            graph.run()
            return _nested(result, (graph.get_output(i).numpy() for i in range(graph.get_num_outputs())))

        return run


def _bound(e: Expr, binds: Mapping[Var, object] | None) -> Expr:
    """An expression in which variables have values."""
    for v, value in (binds or {}).items():
        e = Let(v, as_expr(value), e)
    return e


def _closed(f: Function) -> Function:
    """The function, unless it has free variables."""
    names = ", ".join(v.name_hint for v in free_vars(f))
    if names:
        raise ExpressionError(f"the function has free variables: {names}", "make them parameters")
    return f


def _nested(t: Type, outputs: Iterator[Array]) -> Result:
    """Tensors as the type of the result nests them."""
    return [_nested(f, outputs) for f in t.fields] if isinstance(t, TupleType) else NDArray(next(outputs))


class MachineRunner:
    """Functions by the virtual machine: all of the language. Results are tensors, tuples, values of data types."""

    def __init__(self, module: IRModule, device: Device | None, target: object) -> None:
        self.module, self.device, self.target = module, device or cpu(), target

    def evaluate(self, expr: object = None, binds: Mapping[Var, object] | None = None) -> Any:
        """What runs a function, or the value of an expression (`Executor`)."""
        given = _bound(self.module.get_global_var(MAIN) if expr is None else as_expr(expr), binds)
        if isinstance(given, GlobalVar):
            return partial(self._machine(self.module, given.name_hint).invoke, given.name_hint)
        entry = GlobalVar("entry")
        while entry in self.module:
            entry = GlobalVar(entry.name_hint + "_")
        function = given if isinstance(given, Function) else Function([], given)
        module = infer_type.run(changed(self.module, {**self.module.functions, entry: _closed(function)}))
        invoke = partial(self._machine(module, entry.name_hint).invoke, entry.name_hint)
        return invoke if isinstance(given, Function) else invoke()

    def _machine(self, module: IRModule, entry: str) -> VirtualMachine:
        return VirtualMachine(executable(module, self.target, entry), self.device)


EXECUTORS: dict[str, Callable[[IRModule, Device | None, object], Executor]] = {
    "aot": GraphRunner,
    "debug": lambda module, device, target: Interpreter(module),
    "graph": GraphRunner,
    "vm": MachineRunner,
}
"""The executors by their kinds."""


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Device | None = None,
    target: object = "llvm",
    params: Mapping[str, object] | None = None,
) -> Executor:
    """An executor of a kind (`debug`: the interpreter, `graph` and `aot`: kernels of a target,
    `vm`: the virtual machine) for a module. `params`: arrays for
    parameters of `main`, by name. UsageError for other kinds."""
    if kind not in EXECUTORS:
        raise UsageError(
            f"unknown execution strategy: {kind}", code="relay-target", help=f"executors are {', '.join(EXECUTORS)}"
        )
    module = mod if mod is not None else IRModule()
    return EXECUTORS[kind](bind_main(module, params) if params else module, device, target)

"""The compiler of single fused functions: what each is lowered to, equal functions once.

`get()` is the compiler of the process. Builds of whole programs have a table of their own (`kernels.Kernels`), whose kernels are
built, not only lowered.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime.packed import PackedFunc
from compassc import te
from compassc.ir import IRModule as KernelModule
from compassc.ir import PrimFunc
from compassc.relay.backend.kernels import Chosen, call_results, expressions, kernel_name, prefix_of, scheduled
from compassc.relay.equal import structural_equal, structural_hash
from compassc.relay.expr import Call, Function, GlobalVar
from compassc.relay.infer.errors import error
from compassc.relay.module import MAIN, IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import infer_type
from compassc.relay.strategy import OpImplementation, get_valid_implementations, select_implementation
from compassc.relay.types import Type
from compassc.targets import Target
from compassc.targets import build as build_module
from compassc.targets.virtual_device import VirtualDevice
from compassc.te.schedule.schedule import Schedule
from compassc.te.tensor import Tensor

__all__ = [
    "CCacheKey",
    "CCacheValue",
    "CachedFunc",
    "LoweredOutput",
    "TECompiler",
    "get",
    "get_valid_implementations",
    "lower_call",
    "lower_to_primfunc",
    "select_implementation",
]


class LoweringError(CompassError, RuntimeError):
    """A function that is not lowered, with the function and where it happened."""


class _NoCompiler(CompassError, RuntimeError):
    """A compiler is not made: there is one."""


_ANYWHERE = VirtualDevice()


@dataclass(frozen=True, eq=False)
class CCacheKey:
    """A function and the target it is lowered for. Equal: the text of the target, and the structure of the function."""

    source_func: Function
    target: Target
    virtual_device: VirtualDevice = _ANYWHERE

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CCacheKey)
            and (str(self.target), self.virtual_device) == (str(other.target), other.virtual_device)
            and structural_equal(self.source_func, other.source_func)
        )

    def __hash__(self) -> int:
        return hash((str(self.target), structural_hash(self.source_func)))


@dataclass(frozen=True, eq=False)
class CachedFunc:
    """What a function was lowered to. A function for another compiler is none: it has its name and no `funcs`."""

    target: Target
    prim_fn_var: GlobalVar
    inputs: Sequence[Tensor] = ()
    outputs: Sequence[Tensor] = ()
    schedule: Schedule | None = None
    funcs: KernelModule | None = None
    shape_func_param_states: Sequence[int] = ()

    @property
    def prim_func(self) -> PrimFunc | None:
        """The kernel."""
        return next((f for f in self.funcs.functions), None) if self.funcs is not None else None

    def same_as(self, other: object) -> bool:
        """Whether it is this object."""
        return self is other


@dataclass(eq=False)
class CCacheValue:
    """What a function was lowered to, and how often it was asked for."""

    cached_func: CachedFunc
    use_count: int = 0


@dataclass(frozen=True)
class LoweredOutput:
    """The results of a call as tensor expressions, and the implementation of its strategy, if it has one."""

    outputs: Sequence[Tensor]
    implementation: OpImplementation | None


@dataclass(eq=False)
class _Cache:
    values: dict[CCacheKey, CCacheValue] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


class TECompiler:
    """Lowers functions, equal ones once. There is one of it: `get()`."""

    _only: TECompiler | None = None
    _cache: _Cache

    def __init__(self) -> None:
        raise _NoCompiler("Cannot construct a TECompiler", code="input", help="call te_compiler.get()")

    def lower(self, source_func: Function, target: Target | str | None = None, mod_name: str = "default") -> CachedFunc:
        """What a function of operators is lowered to for a target (None: the current one). Equal functions give the same object.
        LoweringError, a RuntimeError, with the function and the cause."""
        chosen = Target.of(target)
        try:
            return self._lowered(source_func, chosen, mod_name)
        except Exception as cause:
            told = "".join(traceback.format_exception(cause))
            raise LoweringError(
                f"{told}\nError during compile func\n{'-' * 20}\n{source_func.astext(show_meta_data=False)}",
                code="relay-lower",
                help=str(getattr(cause, "help", "")),
            ) from cause

    def _lowered(self, source_func: Function, target: Target, mod_name: str) -> CachedFunc:
        f = _typed(source_func)
        key = CCacheKey(f, target)
        if key not in self._cache.values:
            self._cache.values[key] = CCacheValue(self._made(f, target, mod_name))
        value = self._cache.values[key]
        value.use_count += 1
        return value.cached_func

    def _made(self, f: Function, target: Target, mod_name: str) -> CachedFunc:
        if f.attrs.get("Compiler"):
            symbol = f.attrs.get("global_symbol")
            if not symbol:
                raise error(f, f"No external symbol is set for: {f.attrs['Compiler']}", help="give it global_symbol")
            return CachedFunc(target, GlobalVar(str(symbol)))
        name = kernel_name(f, prefix_of(mod_name), self._cache.names)
        with target:
            made = scheduled(f, target)
            module = te.lower(made.schedule, made.args, name, target)
        self._cache.names.add(name)
        return CachedFunc(target, GlobalVar(name), made.inputs, made.outputs, made.schedule, module)

    def jit(self, source_func: Function, target: Target | str | None = None) -> PackedFunc:
        """The kernel of a function, built: called with its inputs and its results, which it fills."""
        lowered = self.lower(source_func, target)
        if lowered.funcs is None:
            raise error(source_func, "the function is for another compiler", help="build the program (relay.build)")
        name = lowered.prim_fn_var.name_hint
        made: PackedFunc = build_module(lowered.funcs, None, lowered.target, name)[name]
        return made

    def clear(self) -> None:
        """Forget all functions."""
        self._cache = _Cache()

    def items(self) -> list[tuple[CCacheKey, CCacheValue]]:
        """The functions that were lowered."""
        return list(self._cache.values.items())


def get() -> TECompiler:
    """The compiler of the process."""
    if TECompiler._only is None:
        made = TECompiler._only = object.__new__(TECompiler)
        made.clear()
    return TECompiler._only


def lower_to_primfunc(relay_func: Function, target: Target | str | None = None) -> PrimFunc:
    """A function of operators as a function of blocks without a schedule: inputs first, then results."""
    chosen = Target.of(target)
    with chosen:
        inputs, outputs = expressions(_typed(relay_func), chosen, [])
    return te.create_prim_func([*inputs, *outputs])


def lower_call(
    call: Call, inputs: Sequence[Tensor], target: Target | str | None = None, otype: Type | None = None
) -> LoweredOutput:
    """The results of a typed call of an operator, of the tensors that its arguments consist of. `otype`: the type of the result,
    by default that of the call."""
    if not isinstance(call.op, Op):
        raise error(call, "only calls of operators are lowered", help="lower the function that is called")
    chosen: list[Chosen] = []
    typed = call if otype is None else call.replace()
    if otype is not None:
        typed.typed(otype)
    made = call_results(typed, call.op, inputs, Target.of(target), chosen)
    return LoweredOutput(made, chosen[0].implementation)


def _typed(f: Function) -> Function:
    """The function with types, of its parts, too."""
    if f.body.checked_type_ is not None and f.checked_type_ is not None:
        return f
    found = infer_type.run(IRModule({GlobalVar(MAIN): f}))[MAIN]
    assert isinstance(found, Function), "a function stays one"
    return found

"""Primitives: what the machine calls on tensors. Where all extents are known a kernel of the host, else references of operators,
which compute with the extents that the values have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray, empty
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.backend.kernels import Kernels
from compassc.relay.backend.referenced import tensors_of
from compassc.relay.backend.regions import is_region
from compassc.relay.equal import structural_equal, structural_hash
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.interpreter import Interpreter, Value, is_settled
from compassc.relay.operators import Op
from compassc.relay.types import TensorType, TupleType, Type
from compassc.relay.visit import post_order


class Kernel:
    """A kernel that was built, of a module. Called with values it gives a new tensor, or a tuple of them, of the type `result`."""

    why = ""

    def __init__(self, name: str, result: Type, run: Callable[..., object], module: Module) -> None:
        self.name, self.result, self.module, self._run = name, result, module, run
        self._outputs = [(t.concrete_shape, t.dtype) for t in tensors_of(result)]
        self._is_tensor = isinstance(result, TensorType)

    def __call__(self, args: Sequence[Value]) -> Value:
        outputs = [empty(shape, dtype) for shape, dtype in self._outputs]
        self._run(*flat(args), *outputs)
        return outputs[0] if self._is_tensor else _nested(self.result, iter(outputs))


class Reference:
    """A function that is computed by the references of its operators; `why` there is no kernel of it."""

    def __init__(self, name: str, function: Function, why: str) -> None:
        self.name, self.function, self.why = name, function, why
        self._interpreter = Interpreter()
        self._closure = self._interpreter.evaluate(function)

    def __call__(self, args: Sequence[Value]) -> Value:
        return self._interpreter.called(self._closure, args)


class Reshape:
    """The input with another shape, in the same memory."""

    why = ""

    def __init__(self, name: str, result: Type) -> None:
        self.name, self.result = name, result
        (t,) = tensors_of(result)
        self._shape = t.concrete_shape

    def __call__(self, args: Sequence[Value]) -> Value:
        return NDArray(np.asarray(args[0]).reshape(self._shape))


Primitive = Kernel | Reference | Reshape


class Primitives:
    """The primitives of a program: equal functions are one. `on_npu`: whether its regions are built."""

    def __init__(self, kernels: Kernels[Module], on_npu: bool = False) -> None:
        self.kernels, self.on_npu = kernels, on_npu
        self.found: list[Primitive] = []
        self._known: dict[int, list[tuple[Function, int]]] = {}

    def index_of(self, f: Function) -> int:
        """The number of the primitive of a fused function, which is made when it is met first."""
        known = self._known.setdefault(structural_hash(f), [])
        for other, index in known:
            if structural_equal(other, f):
                return index
        known.append((f, len(self.found)))
        self.found.append(self._made(f))
        return len(self.found) - 1

    def _made(self, f: Function) -> Primitive:
        called = [e.op for e in post_order(f) if isinstance(e, Call) and isinstance(e.op, Op)]
        name = "_".join([op.name for op in called]).replace(".", "_")
        if is_region(f):
            return self._kernel(f)
        why = _why_no_kernel(f, called)
        if why:
            return Reference(f"reference_{name}", f, why)
        if f.attrs.get("relay.reshape_only") and len(f.params) == 1:
            return Reshape(f"view_{name}", f.body.checked_type)
        try:
            return self._kernel(f)
        except (ExpressionError, ExpressionTypeError) as error:  # of types that expressions lack
            return Reference(f"reference_{name}", f, error.message)

    def _kernel(self, f: Function) -> Kernel:
        name = self.kernels.name_of(f)
        module = self.kernels.modules[name]
        run = module.find(name)
        assert run is not None, "a kernel is found by its name"
        return Kernel(name, f.body.checked_type, run, module)


def _why_no_kernel(f: Function, called: Sequence[Op]) -> str:
    """Why a fused function is computed by references; "" where a kernel can be made of it."""
    if not all(is_settled(e.checked_type) for e in (*f.params, *_computed(f))):
        return "extents are known when it runs"
    missing = sorted({op.name for op in called if op.compute is None and op.get_attr("FTVMStrategy") is None})
    if missing:
        return f"no tensor expression of {', '.join(missing)}"
    if any(0 in t.concrete_shape for t in tensors_of(f.body.checked_type)):
        return "a result has no elements"
    return ""


def _computed(f: Function) -> Iterator[Expr]:
    return (e for e in post_order(f.body) if not isinstance(e, Op))


def flat(values: Sequence[Value]) -> list[NDArray]:
    """The tensors of values and tuples of them, in order."""
    found: list[NDArray] = []
    for v in values:
        if isinstance(v, tuple):
            found += flat(v)
        else:
            assert isinstance(v, NDArray), f"{v!r} is no tensor"
            found.append(v)
    return found


def _nested(t: Type, tensors: Iterator[NDArray]) -> Value:
    return tuple([_nested(f, tensors) for f in t.fields]) if isinstance(t, TupleType) else next(tensors)

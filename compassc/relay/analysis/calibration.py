"""What functions for other compilers are given and give when a program runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compass_runtime.ndarray import NDArray
from compassc.ir.errors import ExpressionTypeError
from compassc.relay.expr import Call, Function, GlobalVar, Tuple
from compassc.relay.infer.errors import error
from compassc.relay.interpreter import Interpreter
from compassc.relay.module import MAIN, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed
from compassc.relay.visit import post_order


def get_calibration_data(mod: IRModule, data: Mapping[str, object]) -> dict[GlobalVar, dict[str, list[NDArray]]]:
    """The `inputs` and `outputs` of each function of the module with the attribute `Compiler` that `main` calls, where the parameters
    of `main` have the values of `data`, by name: computed by the references of operators. DiagnosticError for a function that is
    called twice."""
    main = mod[MAIN]
    if not isinstance(main, Function):
        raise ExpressionTypeError("get_calibration_data: 'main' is no function of Relay")
    calls = {e: g for e in post_order(main) if isinstance(e, Call) and (g := _callee(e, mod)) is not None}
    for e, g in calls.items():
        if list(calls.values()).count(g) > 1:
            raise error(e, f"@{g.name_hint} is called twice", help="give each call a function of its own")
    told = Tuple([part for e in calls for part in (Tuple(e.args), e)])
    observed = changed(
        mod, {v: Function(main.params, told) if v.name_hint == MAIN else f for v, f in mod.functions.items()}
    )
    values = iter(Interpreter(infer_type.run(observed)).evaluate()(**data))
    return {g: {"inputs": list(_flat(next(values))), "outputs": list(_flat(next(values)))} for g in calls.values()}


def _callee(e: Call, mod: IRModule) -> GlobalVar | None:
    """The variable of the function for another compiler that a call calls."""
    if not isinstance(e.op, GlobalVar):
        return None
    f = mod[e.op]
    return e.op if isinstance(f, Function) and f.attrs.get("Compiler") else None


def _flat(value: object) -> Iterator[NDArray]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    elif isinstance(value, NDArray):
        yield value

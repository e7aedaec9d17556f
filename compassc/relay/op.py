"""Operators by name, for programs that ask for them, add some, or register what passes and builds ask of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from compassc.relay import declared
from compassc.relay.operators import FIRST_LEVEL, OPERATORS, Op, OpPattern, get, register

__all__ = ["REGISTERED", "Op", "OpPattern", "get", "list_op_names", "register", "register_op_attr", "temporary"]

REGISTERED: dict[str, str] = {
    "compute": "FTVMCompute",
    "strategy": "FTVMStrategy",
    "pattern": "TOpPattern",
    "alter_op_layout": "FTVMAlterOpLayout",
    "convert_op_layout": "FTVMConvertOpLayout",
    "infer_correct_layout": "FInferCorrectLayout",
    "legalize": "FTVMLegalize",
    "gradient": "FPrimalGradient",
    "stateful": "TOpIsStateful",
    "fake_quantization_to_integer": "FTVMFakeQuantizationToInteger",
    "optional_fake_quantization_to_integer": "FTVMOptionalFakeQuantizationToInteger",
    "mixed_precision_conversion": "FTVMMixedPrecisionConversionType",
    "annotate": "FQAnnotateRewrite",
    "qnn_legalize": "FTVMQnnLegalize",
    "qnn_canonicalize": "FTVMQnnCanonicalize",
}
"""What `register_NAME` registers under which key."""


def list_op_names() -> list[str]:
    """The names of all operators."""
    declared.load()
    return list(OPERATORS)


def register_op_attr(op_name: str, attr_key: str, value: object = None, level: int = FIRST_LEVEL) -> object:
    """Register a value of an operator under a key; without a value a decorator. A level of 0 and above holds against those
    below it."""

    def keep(given: object) -> object:
        get(op_name).set_attr(attr_key, given, level)
        return given

    return keep if value is None else keep(value)


class Registrar(Protocol):
    """Registers a value of an operator under a key; without a value a decorator does."""

    def __call__(self, op_name: str, value: object = None, level: int = FIRST_LEVEL) -> Any: ...


def registrar(key: str) -> Registrar:
    """A function `(op_name, value=None, level=10)` that registers under a key, also as a decorator."""

    def register_it(op_name: str, value: object = None, level: int = FIRST_LEVEL) -> object:
        return register_op_attr(op_name, key, value, level)

    return register_it


def register_shape_func(
    op_name: str, data_dependent: bool, shape_func: object = None, level: int = FIRST_LEVEL
) -> object:
    """Register what computes the shapes of an operator's results; `data_dependent`: from the values of its arguments."""
    get(op_name).set_attr("TShapeDataDependent", data_dependent, level)
    return register_op_attr(op_name, "FShapeFunc", shape_func, level)


def register_external_compiler(op_name: str, function: object = None, level: int = FIRST_LEVEL) -> object:
    """Register the compiler that takes calls of an operator."""
    return register_op_attr(op_name, "FTVMExternalCompiler", function, level)


def __getattr__(name: str) -> Any:
    """`register_compute`, ... by the table, and the builders of operators: `op.add`."""
    kind = name.removeprefix("register_")
    if kind != name and kind in REGISTERED:
        return registrar(REGISTERED[kind])
    from compassc.relay.builders import namespace

    found = namespace().get(name)
    if found is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return found


@contextmanager
def temporary(op_name: str, attr_key: str, value: object) -> Iterator[Op]:
    """An operator that has another value under a key while the context lasts."""
    op = get(op_name)
    before = op.attributes.get(attr_key)
    op.attributes[attr_key] = (value, FIRST_LEVEL)
    try:
        yield op
    finally:
        op.reset_attr(attr_key)
        if before is not None:
            op.attributes[attr_key] = before

"""Functions by the keys of targets."""

from __future__ import annotations

import pytest

from compassc.ir.errors import ExpressionError
from compassc.targets import Target
from compassc.targets.generic import GenericFunc, generic_func, get_native_generic_func, override_native_generic_func


def test_the_first_key_of_the_target_that_has_a_function_counts():
    @generic_func
    def added(x):
        """Adds."""
        return x + 1

    @added.register(["cuda", "compass"])
    def _(x):
        return x + 2

    added.register("cpu", lambda x: x + 10)
    for name, expected in {"cuda": 3, "X2_1204": 3, "llvm": 11, "c": 11}.items():
        with Target(name):
            assert added(1) == expected
    assert added(1) == 2 and added.__name__ == "added" and added.__doc__ == "Adds." and added.get_packed_func()(1) == 2


def test_a_function_is_replaced_only_where_that_is_said():
    f = GenericFunc("f")
    with pytest.raises(ExpressionError, match="f has no function for no target"):
        f(1)
    f.set_default(lambda x: x)
    f.register(lambda x: 1, "cpu")
    with pytest.raises(ExpressionError, match="f has a function for cpu already"):
        f.register("cpu", lambda x: 2)
    with pytest.raises(ExpressionError, match="f has a function for default already"):
        f.set_default(lambda x: 2)
    f.register("cpu", lambda x: 2, override=True)
    with Target("llvm"):
        assert f(7) == 2
    assert f(7) == 7


def test_functions_by_name_are_replaced():
    @override_native_generic_func("strategy of a test")
    def first(x):
        return "first"

    first.register("cpu", lambda x: "cpu")
    first.register("cpu", lambda x: "another")
    override_native_generic_func("strategy of a test")(lambda x: "second")
    assert first is get_native_generic_func("strategy of a test") and first(0) == "second"
    with Target("llvm"):
        assert first(0) == "another"

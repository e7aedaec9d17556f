"""Random programs of Relay in which every variable is defined before it is used. They have scopes and shared nodes, and no
types that fit: what walks, compares and prints them need not know."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from compassc import relay
from compassc.relay.expr import Expr

Recipe = tuple[Any, ...]
"""How an expression is made: a word, and numbers or recipes."""

NUMBERS = st.integers(0, 7)
DTYPES = ["bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"]
SCALARS = st.tuples(st.just("scalar"), st.sampled_from(DTYPES), st.floats(-6e4, 6e4) | st.integers(-5, 5))
LEAVES = (
    st.tuples(st.just("variable"), NUMBERS)
    | st.tuples(st.just("again"), NUMBERS)
    | SCALARS
    | st.tuples(st.just("array"), st.lists(st.integers(0, 255), max_size=3))
    | st.tuples(st.just("global"), NUMBERS)
)


def _grown(parts: st.SearchStrategy[Recipe]) -> st.SearchStrategy[Recipe]:
    return (
        st.tuples(st.just("call"), NUMBERS, st.lists(parts, max_size=3))
        | st.tuples(st.just("tuple"), st.lists(parts, max_size=3))
        | st.tuples(st.just("item"), parts, NUMBERS)
        | st.tuples(st.just("let"), parts, parts)
        | st.tuples(st.just("if"), parts, parts, parts)
        | st.tuples(st.just("function"), NUMBERS, st.booleans(), parts)
        | st.tuples(st.just("ref"), NUMBERS, parts)
        | st.tuples(st.just("match"), parts, st.booleans(), parts)
    )


RECIPES: st.SearchStrategy[Recipe] = st.recursive(LEAVES, _grown, max_leaves=25)
SHAPES = [None, (), (2,), (1, 3), (relay.Any(), 4)]


class Builder:
    """Makes programs of recipes: the same one gives the same program, but for names and identities. `hint` names variables,
    `free` are those that no part of the program defines."""

    def __init__(self, hint: str = "v", free: list[relay.Var] | None = None, globals_: Any = None) -> None:
        self.hint = hint
        self.variables: list[relay.Var] = list(free or [])
        self.nodes: list[Expr] = []
        self.globals = globals_ or [relay.GlobalVar(f"g{i}") for i in range(8)]
        self.count = 0

    def variable(self) -> relay.Var:
        self.count += 1
        shape = SHAPES[self.count % len(SHAPES)]
        made = relay.var(f"{self.hint}{self.count % 3}", shape=shape) if shape is not None else relay.Var(self.hint)
        self.variables.append(made)
        return made

    def make(self, recipe: Recipe) -> Expr:
        made: Expr = getattr(self, f"make_{recipe[0]}")(*recipe[1:])
        self.nodes.append(made)
        return made

    def inside(self, recipe: Recipe) -> Expr:
        """An expression that is a scope of its own."""
        nodes, variables = len(self.nodes), len(self.variables)
        made = self.make(recipe)
        del self.nodes[nodes:], self.variables[variables:]
        return made

    def make_variable(self, k: int) -> Expr:
        return self.variables[k % len(self.variables)] if self.variables else relay.Tuple([])

    def make_again(self, k: int) -> Expr:
        return self.nodes[k % len(self.nodes)] if self.nodes else relay.Tuple([])

    def make_scalar(self, dtype: str, value: float) -> Expr:
        return relay.const(np.array(value).astype(dtype), dtype)

    def make_array(self, values: list[int]) -> Expr:
        return relay.const(np.array(values, "uint8"))

    def make_global(self, k: int) -> Expr:
        found: Expr = self.globals[k % len(self.globals)]
        return found

    def make_call(self, k: int, args: list[Recipe]) -> Expr:
        return relay.Call(self.globals[k % len(self.globals)], [self.make(a) for a in args])

    def make_tuple(self, fields: list[Recipe]) -> Expr:
        return relay.Tuple([self.make(f) for f in fields])

    def make_item(self, whole: Recipe, k: int) -> Expr:
        return relay.TupleGetItem(self.make(whole), k)

    def make_let(self, value: Recipe, body: Recipe) -> Expr:
        made = self.inside(value)
        nodes, variables = len(self.nodes), len(self.variables)
        let = relay.Let(self.variable(), made, self.make(body))
        del self.nodes[nodes:], self.variables[variables:]
        return let

    def make_if(self, cond: Recipe, true: Recipe, false: Recipe) -> Expr:
        return relay.If(self.make(cond), self.inside(true), self.inside(false))

    def make_function(self, params: int, noted: bool, body: Recipe) -> Expr:
        nodes, variables = len(self.nodes), len(self.variables)
        made = [self.variable() for _ in range(params % 3)]
        attrs = {"Primitive": 1, "hash": "3f", "scale": 0.1} if noted else {}
        result = relay.TensorType((2,), "int8") if noted else None
        function = relay.Function(made, self.make(body), result, [], attrs)
        del self.nodes[nodes:], self.variables[variables:]
        return function

    def make_ref(self, k: int, value: Recipe) -> Expr:
        made = self.make(value)
        return [relay.RefCreate(made), relay.RefRead(made), relay.RefWrite(made, made)][k % 3]

    def make_match(self, data: Recipe, complete: bool, rhs: Recipe) -> Expr:
        made = self.make(data)
        nodes, variables = len(self.nodes), len(self.variables)
        pattern = relay.PatternTuple([relay.PatternVar(self.variable()), relay.PatternWildcard()])
        clauses = [relay.Clause(pattern, self.make(rhs))]
        del self.nodes[nodes:], self.variables[variables:]
        return relay.Match(made, clauses, complete)


def twice(recipe: Recipe, free: list[relay.Var]) -> tuple[Expr, Expr]:
    """The same program twice, with other names of local variables."""
    first = Builder("a", free)
    return first.make(recipe), Builder("other", free, first.globals).make(recipe)

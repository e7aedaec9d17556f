"""Types of Relay programs: unification, relations, every kind of expression, matches that leave cases out."""

from __future__ import annotations

import itertools
import runpy
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc import relay, te
from compassc.relay.builders import build
from compassc.relay.expr import Pattern, PatternTuple
from compassc.relay.infer import TypeInferenceError, infer_functions, infer_local
from compassc.relay.infer.kinds import check_kind
from compassc.relay.infer.patterns import unmatched_cases
from compassc.relay.infer.unify import Mismatch, Unifier
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.ops import relations
from compassc.relay.passes import make
from compassc.relay.types import Related, RelationError, Type
from tests.choosing import some

F32, I32, BOOL = relay.scalar_type("float32"), relay.scalar_type("int32"), relay.scalar_type("bool")


def _known(relation):
    """A relation that waits for holes."""

    def related(types: Sequence[Type], attrs: object):
        return None if any(isinstance(t, relay.IncompleteType) for t in types) else relation(attrs, *types)

    return related


def _like(types: Sequence[Type], attrs: object):
    """The second argument is like the first."""
    return None if isinstance(types[0], relay.IncompleteType) else Related(types[0], {1: types[0]})


ADD = Op("test.add", num_inputs=2, relation=_known(relations.broadcast))
LESS = Op("test.less", num_inputs=2, relation=_known(relations.compared))
LIKE = Op("test.like", num_inputs=2, relation=_like)


def add(a, b):
    return relay.Call(ADD, [a, b])


class Program:
    """A module for inference."""

    def __init__(self, functions: Mapping[str, relay.Function], *types: relay.TypeData) -> None:
        self.functions, self.types = functions, {t.header.name_hint: t for t in types}

    def function(self, name):
        return self.functions.get(name)

    def type_definition(self, header):
        return self.types.get(header.name_hint)


def typed(*functions: relay.Function, types: Sequence[relay.TypeData] = (), **more: relay.Function):
    program = {**{f"f{i}" if i else "main": f for i, f in enumerate(functions)}, **more}
    return infer_functions(program, Program(program, *types))


def main(*args, **named) -> relay.Function:
    return typed(*args, **named)["main"]


A = relay.TypeVar("A")
LIST = relay.GlobalTypeVar("List")
CONS, NIL = relay.Constructor("Cons", [A, LIST(A)], LIST), relay.Constructor("Nil", [], LIST)
LISTS = relay.TypeData(LIST, [A], [CONS, NIL])


def test_thousands_of_calls_are_typed_and_typing_again_changes_nothing():
    x, y = relay.var("x", shape=(3, 4)), relay.var("y", shape=(1, 4))
    e: relay.Expr = x
    for _ in range(3000):
        e = add(e, y)
    f = main(relay.Function([x, y], e))
    assert f.ret_type == relay.TensorType((3, 4))
    assert f.body.type_args == (x.type_annotation, y.type_annotation)
    assert main(f) is f


def test_thousands_of_lets_are_typed():
    x = relay.var("x", shape=(2,))
    names = [relay.var(f"v{i}") for i in range(3000)]
    e: relay.Expr = names[-1]
    for v, before in reversed(list(zip(names, [x, *names]))):
        e = relay.Let(v, add(before, x), e)
    f = main(relay.Function([x], e))
    assert f.ret_type == x.type_annotation and f.body.var.type_annotation == x.type_annotation


def test_what_is_left_out_is_written_down():
    x, y = relay.var("x"), relay.var("y", shape=(5,))
    f = main(relay.Function([x, y], relay.Call(LIKE, [y, x])))
    assert f.params[0].type_annotation == relay.TensorType((5,)) and f.params[1] is y
    assert f.checked_type == relay.FuncType([relay.TensorType((5,))] * 2, relay.TensorType((5,)))


def test_functions_of_a_module_may_call_each_other_before_their_types_are_known():
    n, m = relay.var("n", I32), relay.var("m", I32)
    even, odd = relay.GlobalVar("even"), relay.GlobalVar("odd")
    small = relay.Call(LESS, [n, relay.const(1)])
    f = typed(
        even=relay.Function([n], relay.If(small, relay.const(True), odd(n))),
        odd=relay.Function([m], relay.If(relay.Call(LESS, [m, relay.const(1)]), relay.const(False), even(m))),
    )
    assert f["even"].ret_type == f["odd"].ret_type == BOOL


def test_a_bound_function_may_be_polymorphic_and_recursive():
    a, i, identity = relay.var("a", A), relay.var("i", I32), relay.var("id")
    both = relay.Tuple([identity(relay.const(1)), identity(relay.const(1.0))])
    assert main(relay.Function([], relay.Let(identity, relay.Function([a], a, A, [A]), both))).ret_type == (
        relay.TupleType([I32, F32])
    )
    loop = relay.var("loop")
    again = relay.If(relay.Call(LESS, [i, relay.const(1)]), i, loop(i))
    assert main(relay.Function([], relay.Let(loop, relay.Function([i], again), loop(relay.const(3))))).ret_type == I32


def test_lists_are_made_and_taken_apart():
    xs, rest = relay.var("xs", LIST(F32)), relay.var("rest")
    length = relay.GlobalVar("length")
    clauses = [
        relay.Clause(
            relay.PatternConstructor(CONS, [relay.PatternWildcard(), relay.PatternVar(rest)]),
            add(relay.const(1), length(rest)),
        ),
        relay.Clause(relay.PatternConstructor(NIL), relay.const(0)),
    ]
    empty = relay.Call(NIL, [])
    f = typed(
        relay.Function([], length(relay.Call(CONS, [relay.const(1.0), empty]))),
        length=relay.Function([xs], relay.Match(xs, clauses)),
        types=[LISTS],
    )
    assert f["length"].ret_type == I32
    bound = f["length"].body.clauses[0].lhs.patterns[1].var
    assert bound.type_annotation == LIST(F32)
    assert f["main"].body.args[0].args[1].type_args == (F32,)


def test_cells_and_branches():
    c, x, y = relay.var("c", BOOL), relay.var("x", shape=(2, 3)), relay.var("y", shape=(relay.Any(), 3))
    r = relay.var("r")
    body = relay.Let(r, relay.RefCreate(x), relay.Tuple([relay.RefRead(r), relay.RefWrite(r, x)]))
    assert main(relay.Function([x], body)).ret_type == relay.TupleType([x.type_annotation, relay.TupleType([])])
    assert main(relay.Function([c, x, y], relay.If(c, x, y))).ret_type == y.type_annotation
    assert main(relay.Function([x, y], relay.Function([y], y)(x))).body.args[0].checked_type == x.type_annotation


x23, x54 = relay.var("x", shape=(2, 3)), relay.var("z", shape=(5, 4))
CALLED = relay.Function([x23], x23)
SELF = relay.var("f")
WRONG = {
    "relation": (add(x23, x54), "test.add: Incompatible broadcast type", "argument 1 is Tensor[(5, 4), float32]"),
    "branches": (
        relay.If(relay.const(True), x23, x54),
        "dimension 0 conflicts: 2 does not match 5; dimension 1 conflicts: 3 does not match 4",
        "the false branch is Tensor[(5, 4), float32]",
    ),
    "condition": (relay.If(relay.const(1), x23, x23), "the condition of if: elements of bool", "the condition is int32"),
    "too many": (CALLED(x23, x23), "too many arguments: the callee takes 1, 2 are given", ""),
    "too few": (CALLED(), "too few arguments: the callee takes 1, 0 are given", ""),
    "operator": (relay.Call(ADD, [x23]), "too few arguments: the callee takes 2, 1 are given", ""),
    "no function": (relay.const(1)(x23), "only expressions with function types can be called, this is int32", ""),
    "type arguments": (relay.Call(CALLED, [x23], None, [F32]), "1 type arguments are given, the callee takes 0", ""),
    "argument": (CALLED(x54), "argument 0 of the call: dimension 0 conflicts", "the parameter is Tensor[(2, 3), float32]"),
    "global": (relay.GlobalVar("nobody")(x23), "Cannot find global var @nobody", ""),
    "field": (relay.TupleGetItem(relay.Tuple([x23]), 1), "index 1 is out of range of a tuple of 1 fields", ""),
    "no tuple": (relay.TupleGetItem(x23, 0), "Tensor[(2, 3), float32] is no tuple", ""),
    "unknown": (relay.Function([relay.var("u")], relay.const(1)), "unable to infer a type for this expression", ""),
    "infinite": (relay.Function([SELF], SELF(SELF)), "a type would contain itself", ""),
    "cases": (
        relay.Match(relay.Tuple([x23]), [], True), "match expression does not handle the following cases: _", ""
    ),
    "fields": (
        relay.Match(relay.Call(NIL, [], None, [F32]), [relay.Clause(relay.PatternConstructor(CONS), relay.const(1))]),
        "Not enough inputs for the constructor Cons: it has 2, the pattern 0",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_with_both_sides(case):
    body, message, note = WRONG[case]
    with pytest.raises(TypeInferenceError) as caught:
        typed(relay.Function([x23, x54], body), types=[LISTS])
    assert message in caught.value.message
    assert not note or note in [n.message for n in caught.value.notes]


def test_all_errors_are_shown_at_once():
    with pytest.raises(CompassError) as caught:
        typed(relay.Function([x23, x54], relay.Tuple([add(x23, x54), add(x54, x23)])))
    assert str(caught.value).count("Incompatible broadcast type") == 2


def test_one_expression_is_typed_by_the_types_of_its_parts():
    x = relay.var("x", shape=(4,))
    x.typed(relay.TensorType((4,)))
    assert infer_local(add(x, x), Program({})) == relay.TensorType((4,))


DIMS = st.one_of(st.integers(1, 3), st.builds(relay.Any))
TENSORS = st.builds(relay.TensorType, st.lists(DIMS, max_size=2), st.sampled_from(["float32", "int8"]))
TYPES = st.recursive(
    TENSORS,
    lambda inner: st.one_of(st.builds(relay.TupleType, st.lists(inner, max_size=2)), st.builds(relay.RefType, inner)),
)


def _unified(a, b):
    try:
        return Unifier().unify(a, b)
    except Mismatch:
        return None


@given(TYPES, TYPES)
def test_unification_is_symmetric_and_finds_holes(a, b):
    assert Unifier().unify(a, a) is a
    assert _unified(a, b) == _unified(b, a)
    unifier, hole = Unifier(), relay.IncompleteType()
    unifier.unify(relay.TupleType([hole, hole]), relay.TupleType([a, a]))
    assert unifier.resolved(hole) == a


def test_symbolic_extents_become_numbers():
    n, unifier = te.size_var("n"), Unifier()
    unifier.unify(relay.TensorType((n, 2)), relay.TensorType((3, 2)))
    assert unifier.resolved(relay.TensorType((n, n))) == relay.TensorType((3, 3))
    with pytest.raises(Mismatch, match="dimension 0 conflicts"):
        unifier.unify(relay.TensorType((n,)), relay.TensorType((4,)))


LEAF, NODE = relay.Constructor("Leaf", [], LIST), relay.Constructor("Node", [LIST(), LIST()], LIST)
WILD = st.builds(relay.PatternWildcard)
PATTERNS = st.recursive(
    st.one_of(WILD, st.just(relay.PatternConstructor(LEAF))),
    lambda p: st.builds(lambda a, b: relay.PatternConstructor(NODE, [a, b]), p, p),
    max_leaves=4,
)


def _values(depth: int):
    """Trees as nested tuples, () for a leaf."""
    if depth == 0:
        return [()]
    below = _values(depth - 1)
    return [(), *itertools.product(below, below)]


def _takes(pattern: Pattern, value) -> bool:
    if not isinstance(pattern, relay.PatternConstructor):
        return True
    if (pattern.constructor is LEAF) != (value == ()):
        return False
    return all(_takes(p, v) for p, v in zip(pattern.patterns, value))


@given(st.lists(PATTERNS, max_size=4))
def test_the_cases_left_out_are_those_that_no_clause_takes(patterns):
    match = relay.Match(relay.const(1), [relay.Clause(p, relay.const(1)) for p in patterns])
    left = unmatched_cases(match, lambda constructor: [LEAF, NODE])
    for value in some(_values(3)):
        assert any(_takes(p, value) for p in left) != any(_takes(p, value) for p in patterns)


def test_cases_of_tuples():
    pair = PatternTuple([relay.PatternConstructor(LEAF), relay.PatternWildcard()])
    left = unmatched_cases(relay.Match(relay.const(1), [relay.Clause(pair, relay.const(1))]), lambda c: [LEAF, NODE])
    assert [[type(f) for f in case.patterns] for case in left] == [[relay.PatternConstructor, relay.PatternWildcard]]


def test_kinds():
    program = Program({}, LISTS)
    assert check_kind(relay.FuncType([LIST(F32)], relay.TupleType([A])), program) is relay.TypeKind.Type
    assert check_kind(LISTS, program) is relay.TypeKind.TypeData
    for wrong in (relay.TupleType([LIST]), LIST(), LIST(F32, F32), relay.TypeCall(A, [F32]), relay.RefType(LISTS)):
        with pytest.raises(CompassError):
            check_kind(wrong, program)
    with pytest.raises(CompassError, match="does not define"):
        check_kind(relay.GlobalTypeVar("Tree")(), program)


def test_relations_name_the_operator_once():
    def refuse(types, attrs):
        raise RelationError("test.no takes nothing")

    with pytest.raises(TypeInferenceError) as caught:
        typed(relay.Function([x23], relay.Call(Op("test.no", num_inputs=1, relation=refuse), [x23])))
    assert caught.value.message == "test.no takes nothing"


def test_variables_of_expressions_are_extents():
    n, m = te.size_var("n"), te.var("m")
    x = relay.var("x", shape=(n, m, 10))
    found = main(relay.Function([x], relay.expand_dims(relay.nn.relu(x), axis=2))).body
    assert found.checked_type == relay.TensorType((n, m, 1, 10))
    assert found.checked_type != relay.TensorType((n, te.var("m"), 1, 10))


def test_errors_name_the_line_that_made_a_call(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""from compassc import relay
x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 5))
y = relay.nn.relu(x)
z = relay.nn.dense(
    y, w)
f = relay.Function([x, w], relay.nn.relu(z))
g = relay.Function([x], relay.GlobalVar("g")(x, x))
""")
    scope = runpy.run_path(str(program))
    for name, line in (("f", 4), ("g", 7)):
        with pytest.raises(TypeInferenceError) as error:
            make("InferType")(IRModule({name: scope[name]}))
        assert error.value.span.file == str(program) and error.value.span.line == line
    text = scope["f"].astext()
    assert "program.py" not in text and scope["f"].body.replace().made_at_ == scope["f"].body.made_at_


def test_offsets_of_a_moved_convolution_are_found():
    d, offset, weight = relay.var("d", shape=(1, 4, 16, 16)), relay.var("offset"), relay.var("weight")
    moved = build(
        "nn.deformable_conv2d", d, offset, weight, padding=(1, 1), kernel_size=(3, 3), deformable_groups=4, channels=6
    )
    f = infer_functions({"f": relay.Function([d, offset, weight], moved)}, IRModule())["f"]
    assert [p.checked_type.concrete_shape for p in f.params[1:]] == [(1, 72, 16, 16), (6, 4, 3, 3)]

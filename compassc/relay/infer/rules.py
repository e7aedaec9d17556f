"""What the type of each kind of expression is. Rules are generators: they yield the expressions whose types they ask, and
are given these, so that programs may be as deep as they like."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache, partial
from typing import Protocol

from compassc.relay.attributes import Attrs
from compassc.relay.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.infer.errors import error
from compassc.relay.infer.patterns import text, unmatched_cases
from compassc.relay.infer.solver import Solver
from compassc.relay.operators import ANY_NUMBER, Op
from compassc.relay.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    RelationError,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
    scalar_type,
)

Rule = Generator[Expr, Type, Type]


class Definitions(Protocol):
    """What a program says of names."""

    def function(self, name: str) -> Function | None:
        """The function of a global name; None where it is not known."""

    def type_definition(self, header: GlobalTypeVar) -> TypeData | None:
        """The definition of a type; None where it is not known."""


class Typing:
    """The types of expressions. `types`: what was found so far, by expression; `type_args`: what calls of polymorphic
    functions, and of operators, are instantiated with."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.solver = Solver()
        self.types: dict[Expr, Type] = {}
        self.type_args: dict[Call, Sequence[Type]] = {}
        self.signatures: dict[str, Type] = {}
        self.matches: list[Match] = []

    def type_of(self, root: Expr) -> Type:
        """The type of an expression as far as it is known; `solver.solve()` finds the rest."""
        types = self.types
        if root in types:
            return types[root]
        stack: list[tuple[Expr, Rule]] = [(root, self._rule(root))]
        given: Type | None = None
        while stack:
            e, rule = stack[-1]
            try:
                asked = rule.send(given)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as done:
                given = types[e] = done.value
                stack.pop()
                continue
            given = types.get(asked)
            if given is None:
                if (leaf := _LEAVES.get(type(asked))) is not None:
                    given = types[asked] = leaf(self, asked)
                else:
                    stack.append((asked, self._rule(asked)))
        return types[root]

    def resolved(self, e: Expr) -> Type:
        """The type of an expression that was looked at, with all that is known."""
        return self.solver.unifier.resolved(self.types[e])

    def check_matches(self) -> None:
        """Refuse matches that are said to be complete and are not."""
        for match in self.matches:
            left = unmatched_cases(match, partial(self._constructors, match))
            if left:
                cases = ", ".join(map(text, left))
                raise error(
                    match,
                    f"match expression does not handle the following cases: {cases}",
                    help="add clauses for them, or write `match?`",
                )

    def _rule(self, e: Expr) -> Rule:
        rule = _RULES.get(type(e))
        if rule is not None:
            return rule(self, e)
        leaf = _LEAVES.get(type(e))
        if leaf is None:
            raise error(e, f"a {type(e).__name__} has no type")
        return _known(leaf(self, e))

    # ------------------------------------------------------------------------------------------------------------- leaves

    def variable(self, e: Var) -> Type:
        """Its annotation, or a hole."""
        return e.type_annotation if e.type_annotation is not None else IncompleteType()

    def constant(self, e: Constant) -> Type:
        """The type of its tensor."""
        return e.tensor_type

    def operator(self, e: Op) -> Type:
        """A function that is polymorphic in its arguments and its result."""
        return op_type(e)

    def constructor(self, e: Constructor) -> Type:
        """A function that is polymorphic as the type that it makes."""
        return self.constructor_type(e, e)

    def constructor_type(self, e: Expr, constructor: Constructor) -> FuncType:
        """The type of a constructor that `e` mentions."""
        definition = self._definition(e, constructor)
        result = TypeCall(definition.header, definition.type_vars)
        return FuncType(constructor.inputs, result, definition.type_vars)

    def _constructors(self, e: Expr, constructor: Constructor) -> Sequence[Constructor]:
        return self._definition(e, constructor).constructors

    def _definition(self, e: Expr, constructor: Constructor) -> TypeData:
        found = self.definitions.type_definition(constructor.belong_to)
        if found is None:
            name = constructor.belong_to.name_hint
            raise error(e, f"the module does not define the type {name} of {constructor.name_hint}")
        return found

    # -------------------------------------------------------------------------------------------------------------- nodes

    def global_variable(self, e: GlobalVar) -> Rule:
        """The type of the function of that name: while that is looked at, what it declares."""
        name = e.name_hint
        if name not in self.signatures:
            function = self.definitions.function(name)
            if function is None:
                if e.checked_type_ is None:
                    raise error(e, f"Cannot find global var @{name}", help="add a function of that name to the module")
                return e.checked_type_
            self.signatures[name] = declared = _declared(function)
            found = yield function
            names = ("what is declared", "what it is")
            self.signatures[name] = self.solver.unify(function, declared, found, f"the type of @{name}", names)
        return self.signatures[name]

    def tuple(self, e: Tuple) -> Rule:
        """The types of its fields."""
        fields = []
        for f in e.fields:
            fields.append((yield f))
        return TupleType(fields)

    def field(self, e: TupleGetItem) -> Rule:
        """The type of one field."""
        of = self.solver.unifier.find((yield e.tuple_value))
        return self.solver.apply(e, "TupleGetItem", partial(_field, e.index), [of], None)

    def call(self, e: Call) -> Rule:
        """Of operators what their relation says, else the result of the callee."""
        op = e.op
        args = []
        for a in e.args:
            args.append((yield a))
        if isinstance(op, Op) and op.relation is not None and op.num_inputs in (len(args), ANY_NUMBER):
            self.type_args[e] = args
            return self.solver.apply(e, op.name, op.relation, args, e.attrs)
        callee = self.solver.unifier.find((yield op))
        if isinstance(callee, IncompleteType):
            result = IncompleteType()
            wanted = FuncType(args, result)
            self.solver.unify(e, callee, wanted, "the call", ("the callee", "what is called"))
            return result
        if not isinstance(callee, FuncType):
            raise error(e, f"only expressions with function types can be called, this is {callee}")
        return self._applied(e, callee, args)

    def _applied(self, e: Call, callee: FuncType, args: list[Type]) -> Type:
        if len(e.type_args) > len(callee.type_params):
            raise error(e, f"{len(e.type_args)} type arguments are given, the callee takes {len(callee.type_params)}")
        if len(args) != len(callee.arg_types):
            much = "many" if len(args) > len(callee.arg_types) else "few"
            raise error(e, f"too {much} arguments: the callee takes {len(callee.arg_types)}, {len(args)} are given")
        made, type_args = self.solver.unifier.instantiated(callee, e.type_args)
        if type_args or e.type_args:
            self.type_args[e] = type_args
        for i, (wanted, given) in enumerate(zip(made.arg_types, args)):
            names = ("the parameter", "the argument")
            self.solver.unify(e, wanted, given, f"argument {i} of the call", names, keep_b=True)
        return made.ret_type

    def function(self, e: Function) -> Rule:
        """From its parameters to its body."""
        params = []
        for p in e.params:
            params.append((yield p))
        body = self.solver.unifier.find((yield e.body))
        if isinstance(body, FuncType) and body.type_params:
            body = self.solver.unifier.instantiated(body)[0]
        if e.ret_type is not None:
            names = ("what is declared", "the body")
            body = self.solver.unify(e, e.ret_type, body, "the result of the function", names)
        return FuncType(params, body, e.type_params)

    def let(self, e: Let) -> Rule:
        """The type of its body, in which the variable is the value. A function knows its declared type inside itself."""
        if isinstance(e.value, Function):
            declared: Type = _declared(e.value)
            if e.var.type_annotation is not None:
                names = ("the annotation", "the function")
                declared = self.solver.unify(e, e.var.type_annotation, declared, f"%{e.var.name_hint}", names)
            self.types[e.var] = declared
        else:
            yield e.var
        value = yield e.value
        names = ("the variable", "the value")
        bound = self.solver.unify(e, self.types[e.var], value, f"let %{e.var.name_hint}", names)
        self.types[e.var] = bound
        return (yield e.body)

    def branches(self, e: If) -> Rule:
        """What both branches are."""
        cond = yield e.cond
        self.solver.unify(e, scalar_type("bool"), cond, "the condition of if", ("what is asked", "the condition"))
        yes = yield e.true_branch
        no = yield e.false_branch
        return self.solver.unify(e, yes, no, "the branches of if", ("the true branch", "the false branch"))

    def ref_create(self, e: RefCreate) -> Rule:
        """A cell of its value."""
        return RefType((yield e.value))

    def ref_read(self, e: RefRead) -> Rule:
        """What the cell holds."""
        value = IncompleteType()
        ref = yield e.ref
        self.solver.unify(e, RefType(value), ref, "ref_read", ("what is asked", "the reference"))
        return value

    def ref_write(self, e: RefWrite) -> Rule:
        """The empty tuple."""
        ref = yield e.ref
        value = yield e.value
        self.solver.unify(e, ref, RefType(value), "ref_write", ("the reference", "what is written"))
        return TupleType(())

    def match(self, e: Match) -> Rule:
        """What all clauses are."""
        data = yield e.data
        result: Type = IncompleteType()
        for clause in e.clauses:
            self._bind(e, clause.lhs, data)
            rhs = yield clause.rhs
            result = self.solver.unify(e, result, rhs, "the clauses of match", ("clauses before", "this clause"))
        if e.complete:
            self.matches.append(e)
        return result

    def _bind(self, e: Match, pattern: Pattern, data: Type) -> None:
        """The variables of a pattern have the types of the parts of the data that they stand for."""
        names = ("the pattern", "the data")
        if isinstance(pattern, PatternVar):
            annotation = pattern.var.type_annotation
            if annotation is not None:
                data = self.solver.unify(e, annotation, data, f"%{pattern.var.name_hint}", names)
            self.types[pattern.var] = data
        elif isinstance(pattern, PatternConstructor):
            constructor = pattern.constructor
            made = self.solver.unifier.instantiated(self.constructor_type(e, constructor))[0]
            if len(pattern.patterns) != len(made.arg_types):
                few = "Not enough" if len(pattern.patterns) < len(made.arg_types) else "Too many"
                raise error(
                    e,
                    f"{few} inputs for the constructor {constructor.name_hint}: it has {len(made.arg_types)}, the "
                    f"pattern {len(pattern.patterns)}",
                )
            self.solver.unify(e, made.ret_type, data, f"the pattern {text(pattern)}", names)
            for p, t in zip(pattern.patterns, made.arg_types):
                self._bind(e, p, t)
        elif isinstance(pattern, PatternTuple):
            known = self.solver.unifier.find(data)
            holes: list[Type] = [IncompleteType() for _ in pattern.patterns]
            fits = isinstance(known, TupleType) and len(known.fields) == len(holes)
            fields = known.fields if isinstance(known, TupleType) and fits else holes
            if not fits:
                self.solver.unify(e, TupleType(holes), data, f"the pattern {text(pattern)}", names)
            for p, t in zip(pattern.patterns, fields):
                self._bind(e, p, t)


@cache
def op_type(op: Op) -> FuncType:
    """The type of an operator: polymorphic in its arguments and its result, which its relation relates."""
    args = [TypeVar(f"in{i}") for i in range(max(op.num_inputs, 0))]
    result = TypeVar("out")
    constraints = [TypeRelation(op.relation, [*args, result], len(args))] if op.relation is not None else []
    return FuncType(args, result, [*args, result], constraints)


def _known(t: Type) -> Rule:
    return t
    yield  # a generator


def _declared(f: Function) -> FuncType:
    """The type of a function as far as it declares it."""
    params = [p.type_annotation if p.type_annotation is not None else IncompleteType() for p in f.params]
    return FuncType(params, f.ret_type if f.ret_type is not None else IncompleteType(), f.type_params)


def _field(index: int, types: Sequence[Type], attrs: Attrs | None) -> Type | None:
    of = types[0]
    if isinstance(of, IncompleteType):
        return None
    if not isinstance(of, TupleType):
        raise RelationError(f"{of} is no tuple")
    if not 0 <= index < len(of.fields):
        raise RelationError(f"index {index} is out of range of a tuple of {len(of.fields)} fields")
    return of.fields[index]


_LEAVES: Mapping[type, Callable[..., Type]] = {
    Var: Typing.variable,
    Constant: Typing.constant,
    Op: Typing.operator,
    Constructor: Typing.constructor,
}
_RULES: Mapping[type, Callable[..., Rule]] = {
    Call: Typing.call,
    Function: Typing.function,
    GlobalVar: Typing.global_variable,
    If: Typing.branches,
    Let: Typing.let,
    Match: Typing.match,
    RefCreate: Typing.ref_create,
    RefRead: Typing.ref_read,
    RefWrite: Typing.ref_write,
    Tuple: Typing.tuple,
    TupleGetItem: Typing.field,
}

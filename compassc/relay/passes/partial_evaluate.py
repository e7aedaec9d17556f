"""Evaluate what is known before a program runs.

Before: any module; functions of other compilers and kernels stay as they are.
After: A-normal form, in which constants are atoms. No operator is called with constants only (as after `FoldConstant`), no branch is
taken by a known condition, no clause fits a known value, no field is taken of a known tuple; calls of known functions are their
bodies, where that comes to an end. Cells are made and written as before, but not read where it is known what they hold. Values
are made where they are needed first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.ir.rules import method, table
from compassc.relay.bind import bind
from compassc.relay.expr import (
    Call,
    Clause,
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
from compassc.relay.interpreter import made_by
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes import fold_constant, infer_type, to_a_normal_form
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._known import Activation, Cell, Closure, Data, Frame, Known, Region, known
from compassc.relay.steps import Steps, Unwind
from compassc.relay.steps import run as run_steps
from compassc.relay.type_visit import holes
from compassc.relay.types import IncompleteType, Type, TypeVar
from compassc.relay.variables import free_vars

NAME = "PartialEvaluate"
LEVEL = 1
REQUIRED = ("InferType",)
MOST_CALLS = 500
"""Calls that are followed within one call before that one is left to the program."""
_OPAQUE = ("Primitive", "Compiler", "Extern", "SkipOptimization")


def run(module: IRModule) -> IRModule:
    named = to_a_normal_form.run(infer_type.run(module))
    evaluator = _Evaluator({v.name_hint: f for v, f in named.functions.items() if isinstance(f, Function)})
    return on_functions(named, lambda f, _: evaluator.function(f))


class _Again(Unwind):
    """A call within an activation comes to no end: the call of that one stays."""

    def __init__(self, of: Activation) -> None:
        super().__init__("a call is met again")
        self.of = of


def _opaque(f: Function) -> bool:
    return any(map(f.attrs.get, _OPAQUE))


class _Evaluator:
    """Evaluates in the order of the program. `store`: what cells are known to hold."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        outermost = Frame()
        self._globals = {n: Closure(f, outermost) for n, f in functions.items() if not _opaque(f)}
        self.region = Region()
        self.store: dict[Known, Known] = {}
        self.active: list[Activation] = []
        self.left = MOST_CALLS

    def function(self, f: Function) -> Function:
        """A function of the module, evaluated."""
        frame, params = Frame(), [Known(atom=p) for p in f.params]
        frame.values.update({id(p): value for p, value in zip(f.params, params)})
        self.region, self.active = Region(), [Activation(f, params, 1, False)]
        return f.replace(body=run_steps(self._apart(f.body, frame, {})))

    def _emitted(self, e: Expr, name: str) -> Known:
        """The value of an expression that is left to the program."""
        v = Var(name)
        self.region.bindings.append((v, e))
        return Known(atom=v, region=self.region)

    def _apart(self, e: Expr, frame: Frame, store: dict[Known, Known]) -> Steps[Expr]:
        """The program of an expression that may not run, in a region of its own; `store` becomes what cells hold behind it."""
        before, outer = self.region, self.store
        self.region, self.store = Region(before, before.depth + 1), store
        found = yield self._value(e, frame)
        body = yield self._atom(found)
        made = self.region.around(body)
        if self.store is not store:
            left = dict(self.store)
            store.clear()
            store.update(left)
        self.region, self.store = before, outer
        return made

    # ----------------------------------------------------------------------------------------------------- values as atoms

    def _atom(self, value: Known, name: str = "x") -> Steps[Expr]:
        """The atom of a value here, which is made where there is none."""
        there = value.atom_in(self.region)
        if there is not None:
            return there
        kind = value.static
        if isinstance(kind, Closure):
            literal: Expr = yield self._literal(kind, value, name)
            return literal
        assert isinstance(kind, (tuple, Data)), "other values have atoms everywhere they are met"
        fields: list[Expr] = []
        for f in kind if isinstance(kind, tuple) else kind.fields:
            fields.append((yield self._atom(f)))
        made: Expr = Tuple(fields)
        if isinstance(kind, Data):
            assert kind.constructor is not None
            made = Call(kind.constructor, fields, None, kind.types)
        v = Var(name)
        self.region.bindings.append((v, made))
        value.atom, value.region = v, self.region
        return v

    def _literal(self, closure: Closure, value: Known, name: str) -> Steps[Expr]:
        """The variable of a function that is written down. It stands for the function in the function itself, too."""
        f, region = closure.function, self.region
        fresh = [TypeVar(t.name_hint, t.kind) for t in f.type_params]
        frame = Frame(closure.frame, {id(t): new for t, new in zip(f.type_params, fresh)})
        params = [Var(p.name_hint, frame.typed(p.checked_type)) for p in f.params]
        values = [Known(atom=p) for p in params]
        frame.values.update({id(p): v for p, v in zip(f.params, values)})
        v = Var(name)
        value.atom, value.region = v, region
        self.active.append(Activation(f, values, region.depth + 1, False))
        body = yield self._apart(f.body, frame, {})
        self.active.pop()
        ret_type = frame.typed(f.ret_type) if f.ret_type is not None else None
        region.bindings.append((v, Function(params, body, ret_type, fresh, f.attrs, f.span)))
        return v

    # ---------------------------------------------------------------------------------------------------------- expressions

    def _value(self, e: Expr, frame: Frame, name: str = "x") -> Steps[Known]:
        while isinstance(e, Let):
            frame.values[id(e.var)] = yield self._value(e.value, frame, e.var.name_hint)
            e = e.body
        made = yield _FORMS[type(e)](self, e, frame, name)
        assert isinstance(made, Known)
        return made

    def _variable(self, e: Var, frame: Frame, name: str) -> Steps[Known]:
        yield from ()
        return frame.find(e) or Known(atom=e)

    def _itself(self, e: Constant | Op | Constructor, frame: Frame, name: str) -> Steps[Known]:
        yield from ()
        return Known(e, e)

    def _global(self, e: GlobalVar, frame: Frame, name: str) -> Steps[Known]:
        yield from ()
        return Known(self._globals.get(e.name_hint), e)

    def _closure(self, e: Function, frame: Frame, name: str) -> Steps[Known]:
        if not _opaque(e):
            return Known(Closure(e, frame))
        atoms: dict[Var, object] = {}
        for v in free_vars(e):
            atoms[v] = yield self._atom(frame.find(v) or Known(atom=v))
        return self._emitted(bind(e, atoms) if atoms else e, name)

    def _tuple(self, e: Tuple, frame: Frame, name: str) -> Steps[Known]:
        fields: list[Known] = []
        for f in e.fields:
            fields.append((yield self._value(f, frame)))
        return Known(tuple(fields))

    def _item(self, e: TupleGetItem, frame: Frame, name: str) -> Steps[Known]:
        whole: Known = yield self._value(e.tuple_value, frame)
        if isinstance(whole.static, tuple):
            return whole.static[e.index]
        atom = yield self._atom(whole)
        return self._emitted(TupleGetItem(atom, e.index, e.span), name)

    def _if(self, e: If, frame: Frame, name: str) -> Steps[Known]:
        cond = yield self._value(e.cond, frame)
        if isinstance(cond.static, Constant):
            taken: Known = yield self._value(e.true_branch if bool(cond.static.array) else e.false_branch, frame, name)
            return taken
        atom = yield self._atom(cond)
        true, false = yield self._branches([e.true_branch, e.false_branch], frame)
        return self._emitted(If(atom, true, false, e.span), name)

    def _branches(self, branches: Sequence[Expr], frame: Frame) -> Steps[list[Expr]]:
        """The programs of expressions of which one runs. Behind them is known what cells hold after each."""
        stores = [dict(self.store) for _ in branches]
        made: list[Expr] = []
        for e, store in zip(branches, stores):
            made.append((yield self._apart(e, frame, store)))
        self.store = {c: v for c, v in self.store.items() if all(s.get(c) is v for s in stores)}
        return made

    def _match(self, e: Match, frame: Frame, name: str) -> Steps[Known]:
        data = yield self._value(e.data, frame)
        for clause in e.clauses:
            bound: dict[int, Known] = {}
            fits = _fits(clause.lhs, data, bound)
            if fits:
                frame.values.update(bound)
                taken: Known = yield self._value(clause.rhs, frame, name)
                return taken
            if fits is None:
                break
        atom = yield self._atom(data)
        patterns = [_fresh(c.lhs, frame) for c in e.clauses]
        sides = yield self._branches([c.rhs for c in e.clauses], frame)
        clauses = [Clause(p, rhs, c.span) for p, rhs, c in zip(patterns, sides, e.clauses)]
        return self._emitted(Match(atom, clauses, e.complete, e.span), name)

    # ----------------------------------------------------------------------------------------------------------- references

    def _ref_create(self, e: RefCreate, frame: Frame, name: str) -> Steps[Known]:
        value = yield self._value(e.value, frame)
        atom = yield self._atom(value)
        made = self._emitted(RefCreate(atom, e.span), name)
        cell = Known(Cell(), made.atom, made.region)
        self.store[cell] = value
        return cell

    def _ref_read(self, e: RefRead, frame: Frame, name: str) -> Steps[Known]:
        cell = yield self._value(e.ref, frame)
        if cell in self.store:
            return self.store[cell]
        atom = yield self._atom(cell)
        value = self._emitted(RefRead(atom, e.span), name)
        if isinstance(cell.static, Cell):
            self.store[cell] = value
        return value

    def _ref_write(self, e: RefWrite, frame: Frame, name: str) -> Steps[Known]:
        cell = yield self._value(e.ref, frame)
        value = yield self._value(e.value, frame)
        ref = yield self._atom(cell)
        atom = yield self._atom(value)
        self._emitted(RefWrite(ref, atom, e.span), name)
        if isinstance(cell.static, Cell):
            self.store[cell] = value
        else:  # it may be any of them
            self.store.clear()
        return Known(())

    # ---------------------------------------------------------------------------------------------------------------- calls

    def _call(self, e: Call, frame: Frame, name: str) -> Steps[Known]:
        callee = yield self._value(e.op, frame)
        args: list[Known] = []
        for a in e.args:
            args.append((yield self._value(a, frame)))
        types = [frame.typed(t) for t in e.type_args]
        if any(map(holes, types)):
            types = []
        kind = callee.static
        if isinstance(kind, Constructor):
            return Known(Data(kind, args, types))
        if isinstance(kind, Op):
            constants = [c for c in (a.constant() for a in args) if c is not None]
            found = fold_constant.computed(Call(kind, constants, e.attrs)) if len(constants) == len(args) else None
            if found is not None:
                return known(found)
        elif isinstance(kind, Closure) and self._follows(kind, args):
            unfolded: Known | None = yield self._unfolded(kind, args, types, name)
            if unfolded is not None:
                return unfolded
        atoms: list[Expr] = []
        for value in (callee, *args):
            atoms.append((yield self._atom(value)))
        if not isinstance(kind, Op):
            self.store.clear()
        return self._emitted(Call(atoms[0], atoms[1:], e.attrs, types, e.span), name)

    def _follows(self, closure: Closure, args: Sequence[Known]) -> bool:
        """Whether the body of a function takes the place of a call. Raises `_Again` where a call that is being followed comes to no
        end by this one."""
        f = closure.function
        for a in self.active:
            if a.met_again(f, args, self.region.depth):
                if a.unfolds:
                    raise _Again(a)
                return False
        first = next((a for a in self.active if a.unfolds), None)
        if first is None:
            self.left = MOST_CALLS
        elif self.left <= 0:
            raise _Again(first)
        self.left -= 1
        return True

    def _unfolded(
        self, closure: Closure, args: Sequence[Known], types: Sequence[Type], name: str
    ) -> Steps[Known | None]:
        """The value of a call; None where following it comes to no end, and everything is as before."""
        f, before, store, count = closure.function, self.region, dict(self.store), len(self.active)
        now = Activation(f, args, before.depth, True)
        given = types if len(types) == len(f.type_params) else [IncompleteType() for _ in f.type_params]
        frame = Frame(closure.frame, {id(t): one for t, one in zip(f.type_params, given)})
        frame.values.update({id(p): a for p, a in zip(f.params, args)})
        inner = self.region = Region(before, before.depth)
        self.active.append(now)
        try:
            found: Known = yield self._value(f.body, frame, name)
        except _Again as again:
            if again.of is not now:
                raise
            self.region, self.store = before, store
            del self.active[count:]
            return None
        del self.active[count:]
        before.bindings += inner.bindings
        inner.part_of = self.region = before
        return found


def _fits(pattern: Pattern, value: Known, bound: dict[int, Known]) -> bool | None:
    """Whether a value fits a pattern, None where that is not known; notes the values of its variables."""
    todo, sure = [(pattern, value)], True
    while todo:
        p, at = todo.pop()
        if isinstance(p, PatternVar):
            bound[id(p.var)] = at
        elif isinstance(p, PatternTuple):
            if isinstance(at.static, tuple):
                todo.extend(zip(p.patterns, at.static))
            else:
                sure = False
        elif isinstance(p, PatternConstructor):
            if not isinstance(at.static, Data):
                sure = False
            elif not made_by(at.static, p.constructor):
                return False
            else:
                todo.extend(zip(p.patterns, at.static.fields))
    return True if sure else None


def _fresh(pattern: Pattern, frame: Frame) -> Pattern:
    """A pattern with variables of its own, which are the values of those that it had."""
    if isinstance(pattern, PatternVar):
        v = Var(pattern.var.name_hint)
        frame.values[id(pattern.var)] = Known(atom=v)
        return PatternVar(v, pattern.span)
    if isinstance(pattern, (PatternConstructor, PatternTuple)):
        return pattern.replace(patterns=[_fresh(p, frame) for p in pattern.patterns])
    return pattern


_FORMS: Mapping[type, Callable[[_Evaluator, Expr, Frame, str], Steps[Known]]] = table(
    method(Var, _Evaluator._variable),
    method(Constant, _Evaluator._itself),
    method(Op, _Evaluator._itself),
    method(Constructor, _Evaluator._itself),
    method(GlobalVar, _Evaluator._global),
    method(Function, _Evaluator._closure),
    method(Tuple, _Evaluator._tuple),
    method(TupleGetItem, _Evaluator._item),
    method(If, _Evaluator._if),
    method(Match, _Evaluator._match),
    method(RefCreate, _Evaluator._ref_create),
    method(RefRead, _Evaluator._ref_read),
    method(RefWrite, _Evaluator._ref_write),
    method(Call, _Evaluator._call),
)

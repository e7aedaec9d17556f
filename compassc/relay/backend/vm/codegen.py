"""From functions in A-normal form, without function literals, to instructions. Programs of any depth take no stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from compass_runtime.ndarray import NDArray
from compassc.ir.rules import method, table
from compassc.relay.backend.regions import is_region
from compassc.relay.backend.vm import instructions as vm
from compassc.relay.backend.vm.executable import Executable, VMFunction
from compassc.relay.backend.vm.primitives import Primitives, Reshape
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
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.infer.errors import error
from compassc.relay.module import IRModule
from compassc.relay.steps import Steps, run
from compassc.relay.visit import is_primitive

T = TypeVar("T")
UNKNOWN = -1
"""A place that is not known yet."""


class Program:
    """The functions of a module as instructions, and what these have numbers for."""

    def __init__(self, module: IRModule, primitives: Primitives) -> None:
        self.primitives = primitives
        self.constants: list[NDArray] = []
        self._numbers: dict[int, int] = {}
        self.constructors: list[Constructor] = []
        self.by_name = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)}
        self.functions = {name: i for i, name in enumerate(self.by_name)}
        self._wrappers: list[VMFunction] = []
        made = [FunctionCode(self, name, f).function for name, f in self.by_name.items()]
        self.executable = Executable([*made, *self._wrappers], self.constants, primitives.found, self.constructors)

    def constant(self, data: NDArray) -> int:
        """The number of a constant."""
        return self._number(data, self.constants)

    def constructor(self, constructor: Constructor) -> int:
        """The number of a constructor."""
        return self._number(constructor, self.constructors)

    def _number(self, thing: T, table: list[T]) -> int:
        if id(thing) not in self._numbers:
            self._numbers[id(thing)] = len(table)
            table.append(thing)
        return self._numbers[id(thing)]

    def makes_closures(self, name: str) -> bool:
        """Whether a function only makes another one, with values that are its first parameters here."""
        return bool(self.by_name[name].attrs.get("Closure"))

    def wrapper(self, f: Function) -> int:
        """The number of a function that computes a primitive, for programs that use it as a value."""
        count = len(f.params)
        code = (vm.InvokePacked(self.primitives.index_of(f), tuple(range(count)), count), vm.Ret(count))
        self._wrappers.append(VMFunction(f"primitive_{len(self._wrappers)}", tuple(f.params), count + 1, code))
        return len(self.functions) + len(self._wrappers) - 1


class FunctionCode:
    """The instructions of one function."""

    def __init__(self, program: Program, name: str, f: Function) -> None:
        self.program = program
        self.code: list[vm.Instruction] = []
        self.count = 0
        self._registers: dict[int, int] = {}
        self._callees: dict[int, Expr] = {}
        """Variables that are names of functions and primitives, which take no register."""
        if program.makes_closures(name):
            inner = f.body
            assert isinstance(inner, Function), "a function that makes closures is nothing else"
            params, body = (*f.params, *inner.params), inner.body
        else:
            params, body = tuple(f.params), f.body
        for p in params:
            self._registers[id(p)] = self._new()
        run(self._value(body, last=True))
        self.function = VMFunction(name, params, self.count, tuple(self.code))

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def _emit(self, make: Callable[[int], vm.Instruction]) -> int:
        dst = self._new()
        self.code.append(make(dst))
        return dst

    def _land(self, places: Iterable[int]) -> None:
        """Let jumps that were emitted before lead to here."""
        for place in places:
            jump = self.code[place]
            name = "place" if isinstance(jump, vm.Goto) else "otherwise"
            self.code[place] = replace(jump, **{name: len(self.code)})

    # ------------------------------------------------------------------------------------------------------- expressions

    def _value(self, e: Expr, last: bool = False) -> Steps[int]:
        """The register with the value of an expression. `last`: the function gives it, and instructions leave it."""
        while isinstance(e, Let):
            if isinstance(e.value, GlobalVar) or is_primitive(e.value):
                self._callees[id(e.var)] = e.value
            elif e.body is e.var:
                e = e.value
                continue
            else:
                self._registers[id(e.var)] = yield self._value(e.value)
            e = e.body
        if isinstance(e, (If, Match)):
            branch = self._if(e, last) if isinstance(e, If) else self._match(e, last)
            merged: int = yield branch
            return merged
        write = _FORMS.get(type(e))
        if write is None:
            raise error(e, f"the virtual machine has no instructions for a {type(e).__name__} here")
        register: int = yield write(self, e)
        if last:
            self.code.append(vm.Ret(register))
        return register

    def _all(self, parts: Iterable[Expr]) -> Steps[tuple[int, ...]]:
        found: list[int] = []
        for part in parts:
            found.append((yield self._value(part)))
        return tuple(found)

    def _branch(self, e: Expr, last: bool, merge: int, ends: list[int]) -> Steps[None]:
        """The value of a branch in the register of the whole, and a jump behind it."""
        register = yield self._value(e, last)
        if not last:
            self.code.append(vm.Move(register, merge))
            ends.append(len(self.code))
            self.code.append(vm.Goto(UNKNOWN))

    def _if(self, e: If, last: bool) -> Steps[int]:
        test = yield self._value(e.cond)
        merge = UNKNOWN if last else self._new()
        ends: list[int] = []
        place = len(self.code)
        self.code.append(vm.If(test, UNKNOWN))
        yield self._branch(e.true_branch, last, merge, ends)
        self._land([place])
        yield self._branch(e.false_branch, last, merge, ends)
        self._land(ends)
        return merge

    def _match(self, e: Match, last: bool) -> Steps[int]:
        data = yield self._value(e.data)
        merge = UNKNOWN if last else self._new()
        ends: list[int] = []
        for clause in e.clauses:
            misses = self._pattern(clause.lhs, data)
            yield self._branch(clause.rhs, last, merge, ends)
            self._land(misses)
            if not misses:
                break
        else:
            self.code.append(vm.Fatal(data))
        self._land(ends)
        return merge

    def _pattern(self, pattern: Pattern, data: int) -> list[int]:
        """Tests of a pattern, whose variables get registers; the jumps where it does not fit."""
        misses: list[int] = []
        todo = [(pattern, data)]
        while todo:
            p, register = todo.pop()
            if isinstance(p, PatternVar):
                self._registers[id(p.var)] = register
            elif isinstance(p, (PatternTuple, PatternConstructor)):
                if isinstance(p, PatternConstructor):
                    misses.append(len(self.code))
                    self.code.append(vm.IfTag(register, self.program.constructor(p.constructor), UNKNOWN))
                for i, inner in enumerate(p.patterns):
                    if not isinstance(inner, PatternWildcard):
                        todo.append((inner, self._emit(lambda dst, i=i, of=register: vm.GetField(of, i, dst))))  # type: ignore[misc]  # mypy takes no defaults of a lambda
        return misses

    # -------------------------------------------------------------------------------------------- values of one instruction

    def _variable(self, e: Var) -> Steps[int]:
        callee = self._callees.get(id(e))
        if callee is not None:
            register: int = yield self._value(callee)
            return register
        if id(e) not in self._registers:
            raise error(e, f"variable {e.name_hint} has no value here")
        return self._registers[id(e)]

    def _constant(self, e: Constant) -> Steps[int]:
        yield from ()
        return self._emit(lambda dst: vm.LoadConst(self.program.constant(e.data), dst))

    def _named(self, e: GlobalVar) -> Steps[int]:
        yield from ()
        index = self._index(e, e.name_hint)
        return self._emit(lambda dst: vm.AllocClosure(index, (), dst))

    def _function(self, e: Function) -> Steps[int]:
        yield from ()
        if not is_primitive(e):
            raise error(e, "a function within a function is left over", help="run LambdaLift before")
        index = self.program.wrapper(e)
        return self._emit(lambda dst: vm.AllocClosure(index, (), dst))

    def _tuple(self, e: Tuple) -> Steps[int]:
        fields = yield self._all(e.fields)
        return self._emit(lambda dst: vm.AllocTuple(fields, dst))

    def _item(self, e: TupleGetItem) -> Steps[int]:
        whole = yield self._value(e.tuple_value)
        return self._emit(lambda dst: vm.GetField(whole, e.index, dst))

    def _ref_create(self, e: RefCreate) -> Steps[int]:
        value = yield self._value(e.value)
        return self._emit(lambda dst: vm.AllocRef(value, dst))

    def _ref_read(self, e: RefRead) -> Steps[int]:
        ref = yield self._value(e.ref)
        return self._emit(lambda dst: vm.ReadRef(ref, dst))

    def _ref_write(self, e: RefWrite) -> Steps[int]:
        ref = yield self._value(e.ref)
        value = yield self._value(e.value)
        return self._emit(lambda dst: vm.WriteRef(ref, value, dst))

    def _call(self, e: Call) -> Steps[int]:
        callee = self._callees.get(id(e.op), e.op)
        if isinstance(callee, GlobalVar):
            index = self._index(e, callee.name_hint)
            kind: Callable[[int, tuple[int, ...], int], vm.Instruction] = (
                vm.AllocClosure if self.program.makes_closures(callee.name_hint) else vm.Invoke
            )
        elif isinstance(callee, Constructor):
            index, kind = self.program.constructor(callee), vm.AllocADT
        elif is_primitive(callee):
            assert isinstance(callee, Function)
            if "Compiler" in callee.attrs and not (self.program.primitives.on_npu and is_region(callee)):
                raise error(e, f"a function is for the compiler {callee.attrs['Compiler']}, not for the machine")
            index = self.program.primitives.index_of(callee)
            view = isinstance(self.program.primitives.found[index], Reshape)
            kind = vm.ReshapeTensor if view else vm.InvokePacked
        else:
            index, kind = (yield self._value(callee)), vm.InvokeClosure
        args = yield self._all(e.args)
        return self._emit(lambda dst: kind(index, args, dst))

    def _index(self, e: Expr, name: str) -> int:
        if name not in self.program.functions:
            raise error(e, f"the module has no function @{name} of Relay")
        return self.program.functions[name]


_FORMS: Mapping[type, Callable[[FunctionCode, Expr], Steps[int]]] = table(
    method(Var, FunctionCode._variable),
    method(Constant, FunctionCode._constant),
    method(GlobalVar, FunctionCode._named),
    method(Function, FunctionCode._function),
    method(Tuple, FunctionCode._tuple),
    method(TupleGetItem, FunctionCode._item),
    method(RefCreate, FunctionCode._ref_create),
    method(RefRead, FunctionCode._ref_read),
    method(RefWrite, FunctionCode._ref_write),
    method(Call, FunctionCode._call),
)

"""C text of plain IR: expressions and statements that every C compiler takes in the same way.

Types are called as the IR calls them (`int8`, `float32`): a prelude defines them. Arithmetic of whole numbers wraps around,
narrow results are cut to their type, and dividing by 0 gives 0, as on the NPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from compass_core.errors import CompassError
from compass_core.operators import OPERATORS
from compassc.codegen.names import KEYWORDS
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import DataType, PointerType, Type
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.names import NamePool
from compassc.ir.rules import rule, table

SCALARS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64".split()
_NAMES = (
    "main memcpy malloc free aligned_alloc abs div exp log sin cos sqrt floor ceil pow erf tanh rint min max".split()
)
RESERVED = KEYWORDS | frozenset((*SCALARS, *_NAMES, "blockIdx", "threadIdx", "blockDim", "gridDim", "arguments"))
_SHORT = {"int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
          "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
          "float32": "float", "float64": "double"}  # fmt: skip
_NARROW = frozenset(("add", "sub", "mul", "div", "shl", "bitnot"))
FUNCTIONS = frozenset("exp exp2 log tanh sin cos sqrt rsqrt floor ceil rint erf pow abs".split())


class NoForm(CompassError):
    """A module has something that the target's code cannot say."""

    def __init__(self, what: str, help: str = "") -> None:
        super().__init__(what, code="target-form", help=help)


def typedefs() -> list[str]:
    """The types that C has anywhere."""
    return [f"typedef {c} {name};" for name, c in _SHORT.items()]


_SUFFIXES = {"float32": "f", "float64": ""}


def helpers(
    inline: str,
    prefix: str,
    spelt: Mapping[str, str],
    kinds: Sequence[str] = SCALARS,
    suffixes: Mapping[str, str] = _SUFFIXES,
) -> list[str]:
    """The functions that expressions call: `max_int32`, `div_int32`, `exp_float32`, ... `prefix`, `spelt` and `suffixes`: how the
    compiler calls functions of reals; `inline`: the words before a function; `kinds`: the types that there are."""
    lines = []
    for kind in map(DataType, kinds):
        other = " || y != y" if kind.is_floating else ""
        for op, sign in (("max", ">"), ("min", "<")):
            lines.append(f"{inline} {kind} {op}_{kind}({kind} x, {kind} y) {{ return x {sign} y{other} ? x : y; }}")
        for op, sign, minus in (("div", "/", f"({kind})(0 - x)"), ("mod", "%", "0")) if kind.is_integer else ():
            least = f" : y == ({kind})-1 ? {minus}" if kind.is_int else ""
            lines.append(
                f"{inline} {kind} {op}_{kind}({kind} x, {kind} y) {{ return y == 0 ? 0{least} : x {sign} y; }}"
            )
    for real, suffix in suffixes.items():
        lines += [f"#define {op}_{real} {prefix}{spelt.get(op, op)}{suffix}" for op in sorted(FUNCTIONS - {"rsqrt"})]
        lines.append(f"#define rsqrt_{real}(x) (1 / {prefix}sqrt{suffix}(x))")
    return lines


def identifier(name: str) -> str:
    """A name as C takes it."""
    cleaned = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return f"v{cleaned}" if not cleaned or cleaned[0].isdigit() else cleaned


class CText:
    """Prints one function. Subclasses say what loops, calls, memory and types of their own are."""

    where = "this target"

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.pool = NamePool(RESERVED)
        self.lines: list[str] = []
        self.depth = 1
        self._exprs: dict[type, Callable[[E.Expr], str]] = table(
            rule(Var, self.name),
            rule(IntImm, self.integer),
            rule(E.FloatImm, self.real),
            rule(E.Cast, self.cast),
            rule(E.Binary, self.binary),
            rule(E.Unary, self.unary),
            rule(E.Select, self.select),
            rule(E.BufferLoad, self.load),
            rule(E.Call, self.call),
        )
        self._stmts: dict[type, Callable[[S.Stmt], None]] = table(
            rule(S.Let, self.let),
            rule(S.BufferStore, self.store),
            rule(S.IfThenElse, self.if_),
            rule(S.For, self.loop),
            rule(S.While, lambda s: self.block(f"while ({self.expr(s.condition)}) {{", s.body)),
            rule(S.Alloc, self.alloc),
            rule(S.AllocConst, self.table),
            rule(S.Evaluate, self.eval),
        )

    # -- names and lines

    def name(self, var: Var) -> str:
        if var not in self.names:
            raise NoForm(
                f"the variable '{var.name}' is used but not known",
                "add the variables of shapes to the arguments of the build",
            )
        return self.names[var]

    def define(self, var: Var) -> str:
        self.names[var] = self.pool.take(identifier(var.name))
        return self.names[var]

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def block(self, head: str, body: S.Body, tail: str = "}") -> None:
        self.line(head)
        self.depth += 1
        self.body(body)
        self.depth -= 1
        self.line(tail)

    # -- statements

    def body(self, body: S.Body) -> None:
        for s in body:
            form = self._stmts.get(type(s))
            if form is None:
                raise NoForm(f"a {type(s).__name__} has no form on {self.where}")
            form(s)

    def let(self, s: S.Let) -> None:
        value = self.expr(s.value)
        self.line(f"{self.type(s.var.dtype)} {self.define(s.var)} = {value};")

    def store(self, s: S.BufferStore) -> None:
        if s.mask is not None or s.value.dtype.is_vector:
            raise NoForm(f"vectors have no form on {self.where}")
        self.line(f"{self.element(s.buffer, s.indices)} = {self.expr(s.value)};")

    def if_(self, s: S.IfThenElse) -> None:
        self.block(f"if ({self.expr(s.condition)}) {{", s.then_case, "} else {" if s.else_case else "}")
        if s.else_case:
            self.depth += 1
            self.body(s.else_case)
            self.depth -= 1
            self.line("}")

    def loop(self, s: S.For) -> None:
        start, stop, step = map(self.expr, (s.min, s.stop, s.step))
        kind, name = self.type(s.loop_var.dtype), self.define(s.loop_var)
        self.block(f"for ({kind} {name} = {start}; {name} < {stop}; {name} += {step}) {{", s.body)

    def alloc(self, s: S.Alloc) -> None:
        raise NoForm(f"memory of a kernel's own has no form on {self.where}")

    def table(self, s: S.AllocConst) -> None:
        raise NoForm(f"tables have no form on {self.where}")

    def eval(self, s: S.Evaluate) -> None:
        raise NoForm(f"{s.value} has no form on {self.where}")

    # -- expressions

    def type(self, kind: Type) -> str:
        if isinstance(kind, PointerType):
            return f"{self.type(kind.elem)} *"
        return str(kind)

    def expr(self, e: Expr) -> str:
        form = self._exprs.get(type(e))
        if form is None:
            raise NoForm(f"{e} ({type(e).__name__}) has no form on {self.where}")
        return form(e)

    def integer(self, e: IntImm) -> str:
        kind, value = e.dtype, e.value
        if kind.is_bool:
            return str(int(bool(value)))
        if kind.bits == 64:
            least = value == -(1 << 63)
            text = f"({value + 1}LL - 1)" if least else f"{value}{'U' if kind.is_uint else ''}LL"
        elif kind.bits == 32:
            text = f"{value}U" if kind.is_uint else "(-2147483647 - 1)" if value == -(1 << 31) else str(value)
        else:
            return f"({kind}){value}" if value >= 0 else f"({kind})({value})"
        return f"({text})" if value < 0 and text[0] == "-" else text

    def real(self, e: E.FloatImm) -> str:
        kind, value = e.dtype, e.value
        if math.isnan(value):
            text = '__builtin_nanf("")'
        elif math.isinf(value):
            text = "__builtin_inff()" if value > 0 else "(-__builtin_inff())"
        else:
            shown = float.hex(float(value))
            text = f"{shown}{'' if kind.bits == 64 else 'f'}"
            text = f"({text})" if value < 0 or shown[0] == "-" else text
        return text if kind.bits >= 32 and math.isfinite(value) else f"(({kind}){text})"

    def cast(self, e: E.Cast) -> str:
        source, to = e.value.data_type, e.dtype
        text = self.expr(e.value)
        if to.is_bool:
            return f"({text} != 0)"
        if source.is_floating and to.is_integer and to.bits < 32:
            text = f"(int){text}"
        return f"(({to}){text})"

    def binary(self, e: Binary) -> str:
        kind, op = e.a.data_type, e.op
        a, b = self.expr(e.a), self.expr(e.b)
        if op in ("min", "max"):
            return f"{op}_{kind}({a}, {b})"
        if op in ("floordiv", "floormod"):
            assert isinstance(e.b, IntImm), "only powers of two divide so here"
            by = e.b.value
            return f"({a} >> {by.bit_length() - 1})" if op == "floordiv" else self.cut(f"({a} & {by - 1})", kind)
        if op in ("div", "mod") and kind.is_integer and not (isinstance(e.b, IntImm) and e.b.value not in (0, -1)):
            return f"{op}_{kind}({a}, {b})"
        sign = OPERATORS[op].c
        if op == "mod" and kind.is_floating:
            raise NoForm(f"the remainder of reals has no form on {self.where}")
        text = f"({a} {sign} {b})"
        return self.cut(text, kind) if op in _NARROW else text

    def cut(self, text: str, kind: DataType) -> str:
        """A result in its type, where C computes it in a wider one."""
        return f"(({kind}){text})" if kind.bits < 32 and not kind.is_bool else text

    def unary(self, e: E.Unary) -> str:
        a = self.expr(e.a)
        if e.op == "not" or e.a.dtype.is_bool:
            return f"(!{a})"
        if e.op != "bitnot":
            raise NoForm(f"{e} has no form on {self.where}")
        return self.cut(f"(~{a})", e.a.data_type)

    def select(self, e: E.Select) -> str:
        return f"({self.expr(e.condition)} ? {self.expr(e.true_value)} : {self.expr(e.false_value)})"

    def element(self, buffer: E.Buffer, indices: tuple[Expr, ...]) -> str:
        """The place of one element, in flat memory."""
        assert len(indices) == 1, "buffers are flat"
        return f"{self.name(buffer.data)}[{self.expr(indices[0])}]"

    def load(self, e: E.BufferLoad) -> str:
        if e.mask is not None or e.dtype.is_vector:
            raise NoForm(f"vectors have no form on {self.where}")
        return self.element(e.buffer, e.indices)

    def call(self, e: E.Call) -> str:
        if e.op not in FUNCTIONS or e.mask is not None or e.dtype.is_vector:
            raise NoForm(f"the operation '{e.op}' has no form on {self.where}", "it is an operation of the NPU")
        return self.function(e.op, e.data_type, [self.expr(a) for a in e.args])

    def function(self, op: str, kind: DataType, args: list[str]) -> str:
        """A function of reals; of narrow ones in float32."""
        if op == "abs" and kind.is_integer:
            return self.cut(f"({args[0]} < 0 ? -{args[0]} : {args[0]})", kind)
        if kind.bits == 16:
            return f"(({kind}){self.function(op, E.FloatImm(DataType('float32'), 0.0).dtype, args)})"
        return f"{op}_{kind}({', '.join(args)})"

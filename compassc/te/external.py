"""Functions of C in expressions and statements: called by name, declared by their first call, linked by the target."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from compassc.ir import exprs as E
from compassc.ir.dtypes import VOID, PointerType, Type
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr, Var
from compassc.ir.operators import as_expr, data_type
from compassc.ir.stmts import Body, PrimFunc
from compassc.ir.visit import Rewriter, rewrites
from compassc.te import inverse, math
from compassc.te.buffers import View
from compassc.te.errors import LowerError
from compassc.te.intrinsics import is_added, with_rules
from compassc.te.machine import Machine
from compassc.te.packed import PACKED, text_of
from compassc.te.schedule.schedule import Schedule

EXTERN = "extern"
"""The attribute of a function of a module that has no body here: its name in C."""
INTRINSICS = tuple(
    """acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 floor fmod log log10 log2 nearbyint popcount rsqrt
    sigmoid sin sinh sqrt tan tanh trunc""".split()
)
"""What `call_intrin` calls."""
IMPORTED = {"import_c": "C", "import_llvm": "LLVM"}
"""The pragmas whose value is the text of functions, which become attributes of the kernel."""


def call_extern(dtype: object, func_name: str, *args: object) -> Expr:
    """The value of a function of C, of type `dtype` (`"void"`: none). Arguments are values of the types that the function
    takes, and views or addresses (`view.access_ptr("r")`). The host has those of its C library and those that the pragmas
    `import_c` and `import_llvm` bring; CUDA devices have theirs, without addresses. LowerError on NPUs."""
    if not isinstance(func_name, str) or not func_name.isidentifier() or not func_name.isascii():
        raise ExpressionError(f"{func_name!r} is no name of a function of C")
    kind: Type = VOID if dtype == "void" else data_type(dtype)
    return E.FuncCall(func_name, tuple(_argument(func_name, a) for a in args), kind)


call_pure_extern = call_extern


def call_intrin(dtype: object, func_name: str, *args: object) -> Expr:
    """The function of `te` of a name (`exp`, or `tir.exp`), whose value is of type `dtype`, or an operation that was added
    (`register_op_attr`). ExpressionError for others."""
    name = func_name.removeprefix("tir.") if isinstance(func_name, str) else ""
    if is_added(name):
        return E.Call(name, tuple(map(as_expr, args)), data_type(dtype))
    if name not in INTRINSICS:
        raise ExpressionError(f"{func_name!r} is no operation of all targets", f"known are {', '.join(INTRINSICS)}")
    made: Expr = getattr(inverse if hasattr(inverse, name) else math, name)(*args)
    if made.dtype is not data_type(dtype):
        raise ExpressionTypeError(f"'{name}' of these arguments is {made.dtype}, asked for is {dtype}", "cast them")
    return made


def _argument(function: str, given: object) -> Expr:
    if isinstance(given, str):
        raise ExpressionTypeError(f"call of '{function}': texts are not passed to functions of C, got {given!r}")
    return given.ptr() if isinstance(given, View) else given if isinstance(given, Expr) else as_expr(given)


def with_declarations(body: Body, kernels: Container[str], machine: Machine) -> tuple[Body, list[PrimFunc]]:
    """Statements and the functions of C that they call: all but `kernels`. LowerError where the machine has none, and where calls of one
    name do not agree."""
    found = _Declared(kernels, machine)
    return found.body(with_rules(body, machine.kinds)), list(found.functions.values())


class _Declared(Rewriter):
    """Calls by the names of declared functions: one for each memory that addresses are in, which C does not tell apart."""

    interest = E.F_FUNC

    def __init__(self, kernels: Container[str], machine: Machine) -> None:
        super().__init__()
        self.kernels, self.machine = kernels, machine
        self.functions: dict[tuple[str, tuple[Type, ...]], PrimFunc] = {}

    @rewrites(E.FuncCall)
    def rewrite_func_call(self, e: E.FuncCall) -> Expr:
        e = self.default(e)
        if e.func in self.kernels:
            return e
        types = tuple(a.dtype for a in e.args)
        if signature := text_of(e.func):
            return e.replace(func=self._packed(signature, types, e.dtype))
        if not self.machine.externals:
            raise LowerError(
                f"'{e.func}' is a function of C, {self.machine.name} has none",
                "write it in the kernel language and call it with te.call_kernel",
            )
        if self.machine.externals == "values" and any(isinstance(t, PointerType) for t in types):
            raise LowerError(f"'{e.func}' is given an address, functions of C on {self.machine.name} take values")
        for (name, other), function in self.functions.items():
            if name == e.func and (_in_c(other), function.ret_type) != (_in_c(types), e.dtype):
                raise LowerError(
                    f"'{e.func}' is called as {_signature(e.dtype, types)} and as {_signature(function.ret_type, other)}",
                    "a function of C has one type; cast the arguments",
                )
        if (e.func, types) not in self.functions:
            same = sum(name == e.func for name, _ in self.functions)
            params = tuple(Var(f"x{i}", t) for i, t in enumerate(types))
            label = f"{e.func}__{same}" if same else e.func
            self.functions[e.func, types] = PrimFunc(label, params, (), e.dtype, ((EXTERN, e.func),))
        return e.replace(func=self.functions[e.func, types].name)

    def _packed(self, signature: str, types: tuple[Type, ...], kind: Type) -> str:
        """The name of the function of C that calls a packed one. LowerError for devices."""
        if self.machine.externals != "all":
            raise LowerError(
                f"{self.machine.name} calls no packed functions: {signature}", "they are called by the host"
            )
        if (signature, types) not in self.functions:
            params = tuple(Var(f"x{i}", t) for i, t in enumerate(types))
            name = f"packed_{sum(f.attr(PACKED) is not None for f in self.functions.values())}"
            attrs = ((EXTERN, name), (PACKED, signature))
            self.functions[signature, types] = PrimFunc(name, params, (), kind, attrs)
        return self.functions[signature, types].name


def _in_c(types: tuple[Type, ...]) -> list[object]:
    return [("address", t.elem) if isinstance(t, PointerType) else t for t in types]


def _signature(result: Type, types: tuple[Type, ...]) -> str:
    shown = [f"{t.elem} *" if isinstance(t, PointerType) else str(t) for t in types]
    return f"{result} ({', '.join(shown)})"


def imported(schedule: Schedule, machine: Machine) -> tuple[tuple[str, object], ...]:
    """The texts that pragmas bring, as attributes of the kernel. LowerError where the machine does not take them."""
    found: dict[str, list[str]] = {}
    for stage in schedule.stages:
        for leaf in stage.leaf_iter_vars:
            note = stage.annotations.get(leaf)
            for kind in (k for k in IMPORTED if note is not None and k in note.pragmas):
                if kind not in machine.imports:
                    raise LowerError(
                        f"pragma of '{stage.label}': '{kind}' brings functions in {IMPORTED[kind]}, {machine.name} takes none",
                        "write a kernel, and call it with te.call_kernel",
                    )
                assert note is not None
                texts = found.setdefault(kind, [])
                texts += [t for t in (_text(stage.label, kind, str(note.pragmas[kind])),) if t not in texts]
    return tuple((kind, tuple(texts)) for kind, texts in found.items())


def _text(label: str, kind: str, given: str) -> str:
    """The text itself, or that of the file it names. LowerError where there is no such file."""
    if any(c in given for c in "{\n;"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LowerError(f"pragma of '{label}': '{kind}' names '{given}', which cannot be read: {error}") from None

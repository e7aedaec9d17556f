"""C text of a lowered loop nest for the host: vectors of clang's extension, parallel loops as functions of their own.

A library has one entry, `compass_entry(arguments, parallel)`: a pointer for each parameter (to the elements, or to the
number), and the function that runs the turns of a parallel loop. It returns 0, or 1 where there was no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.operators import OPERATORS
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import FLOAT32, INT32, DataType, PointerType, Type
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.rules import rule, table
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.targets import host_math
from compassc.targets.ctext import CText, NoForm, helpers, identifier, typedefs
from compassc.te.external import EXTERN
from compassc.te.packed import PACKED, trampoline

ON_STACK = 32 << 10
"""Bytes of one array up to which it lies on the stack."""
ALIGN = 64
LARGEST = (1 << 31) - 1
"""Elements of an array at most: positions count in 32 bits."""
_ELEMENTWISE = frozenset("exp exp2 log tanh sin cos sqrt floor ceil rint abs pow".split())


def _prelude() -> list[str]:
    lines = [
        *typedefs(),
        "typedef _Float16 float16;",
        "typedef __bf16 bfloat16;",
        "typedef int (*compass_body)(void *captured, long begin, long end);",
        "typedef int (*compass_parallel)(compass_body body, void *captured, long turns);",
        "void *aligned_alloc(unsigned long alignment, unsigned long size);",
        "void free(void *memory);",
        '#define PUBLIC __attribute__((visibility("default")))',
        "#define INLINE static inline __attribute__((always_inline, unused))",
    ]
    lines += helpers("INLINE", "__builtin_", {"abs": "fabs"})
    return lines


PRELUDE = "\n".join(_prelude())


@dataclass
class Unit:
    """What functions of one library share: further functions, types of vectors, tables."""

    types: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    parallel: bool = False
    externals: dict[str, S.PrimFunc] = field(default_factory=dict)


def text_of(module: S.IRModule) -> tuple[str, bool]:
    """The C text of a module that went through the host's passes, and whether it has parallel loops."""
    function = module.entry_func
    unit = Unit(externals={f.name: f for f in module.functions if f is not function})
    arrays = [s for s in walk_stmts(function.body) if isinstance(s, S.Alloc)]
    printer = HostText(unit, arrays, _homes(function.body))
    head = [
        f"/* {identifier(function.name)} */",
        "PUBLIC int compass_entry(void **restrict arguments, compass_parallel parallel) {",
    ]
    for i, p in enumerate(function.params):
        kind, name = p.dtype, printer.define(p)
        if isinstance(kind, PointerType):
            held = printer.type(kind.elem)
            head.append(f"  {held} *restrict {name} = ({held} *)arguments[{i}];")
        else:
            head.append(f"  {printer.type(kind)} {name} = *({printer.type(kind)} *)arguments[{i}];")
    printer.line("int failed = 0;")
    printer.arrays([s for s in arrays if printer.homes.get(s.buffer.data) is None])
    printer.body(function.body)
    printer.finish()
    unit.functions.append("\n".join([*head, *printer.lines, "}"]))
    imported = function.attr("import_c", ())
    others = [f for f in unit.externals.values() if f.attr(PACKED) is None]
    prototypes = [_prototype(f, printer) for f in others if not _is_named(f.attr(EXTERN), imported)]
    types = "\n".join(unit.types.values())
    calls = _packed_calls(packed_functions(module), printer)
    parts = [PRELUDE, *imported, types, "\n".join(dict.fromkeys(prototypes)), *calls, *unit.tables, *unit.functions]
    return "\n\n".join(p for p in parts if p) + "\n", unit.parallel


def _is_named(symbol: str, texts: Sequence[str]) -> bool:
    """Whether a text of C that was brought in is about a function, which has its type from there then."""
    return any(re.search(rf"\b{symbol}\b", text) for text in texts)


def _prototype(function: S.PrimFunc, printer: HostText) -> str:
    """The declaration of a function of C."""
    taken = ", ".join(printer.type(p.dtype) for p in function.params) or "void"
    return f"{printer.type(function.ret_type)} {function.attr(EXTERN)}({taken});"


def packed_functions(module: S.IRModule) -> list[S.PrimFunc]:
    """The functions of a module that call packed ones, by their numbers."""
    return [f for f in module.functions if f.attr(PACKED) is not None]


def _packed_calls(functions: Sequence[S.PrimFunc], printer: HostText) -> list[str]:
    """The functions that call packed ones, and the pointer that the runtime sets."""
    head = ["PUBLIC int (*compass_packed)(int number, void **values, long *sizes);"] if functions else []
    return head + [
        trampoline(i, f.attr(PACKED), f.attr(EXTERN), [printer.type(p.dtype) for p in f.params])
        for i, f in enumerate(functions)
    ]


def _used(body: S.Body) -> Iterator[Var]:
    """The variables that statements use, those of memory among them."""
    for s in walk_stmts(body):
        if isinstance(s, S.BufferStore):
            yield s.buffer.data
        sizes = s.buffer.shape if isinstance(s, S.Alloc) else ()
        for root in (*sizes, *s.exprs()):
            for e in walk_exprs(root):
                if isinstance(e, Var):
                    yield e
                elif isinstance(e, E.BufferLoad):
                    yield e.buffer.data


def _homes(body: S.Body) -> dict[Var, S.For]:
    """The parallel loop of each array that one such loop alone uses: every turn computes what it reads of it, so that
    the turns can have one of their own each."""
    arrays = {s.buffer.data for s in walk_stmts(body) if isinstance(s, S.Alloc)}
    users: dict[Var, set[S.For | None]] = {}
    for loop, part in _parts(body):
        for var in _used(part):
            if var in arrays:
                users.setdefault(var, set()).add(loop)
    return {var: loop for var, (loop, *others) in users.items() if loop is not None and not others}


def _parts(body: S.Body) -> Iterator[tuple[S.For | None, S.Body]]:
    """Statements by the outermost parallel loop that they are in; what is in none comes without its inner statements."""
    for s in body:
        if isinstance(s, S.For) and s.kind == "parallel":
            yield s, s.body
            yield None, (S.For(s.loop_var, "serial", s.min, s.stop, s.step, ()),)
        elif s.bodies():
            yield None, (s.map(lambda e: e, lambda inner: ()),)
            for inner in s.bodies():
                yield from _parts(inner)
        else:
            yield None, (s,)


class HostText(CText):
    """Prints one function: the entry, or the body of a parallel loop."""

    where = "the host"

    def __init__(self, unit: Unit, allocated: Sequence[S.Alloc] = (), homes: dict[Var, S.For] | None = None) -> None:
        super().__init__()
        self.unit, self.allocated, self.homes, self.inside = unit, allocated, homes or {}, homes is None
        self.taken: list[str] = []  # what lies on the heap
        self._exprs |= table(
            rule(E.Reinterpret, self.reinterpret),
            rule(E.Broadcast, lambda e: f"(({self.type(e.dtype)})({self.expr(e.value)}))"),
            rule(E.VectorLiteral, self.literal),
            rule(E.TailMask, self.tail),
            rule(E.ConstMask, self.const_mask),
            rule(E.Ramp, self.ramp),
            rule(E.FuncCall, self.external),
            rule(E.Pointer, lambda e: f"({self.expr(e.base)} + {self.expr(e.offset)})"),
        )

    # -- functions

    def finish(self) -> None:
        """What ends a function."""
        if self.taken:
            self.lines.append("end:;")
        for name in reversed(self.taken):
            self.line(f"free({name});")
        self.line("return failed;")

    def arrays(self, found: list[S.Alloc]) -> None:
        """The arrays of a function: small ones on the stack, others on the heap."""
        heap = []
        for s in found:
            (count,) = s.buffer.shape
            size, bytes_of = self._bytes(s.buffer, count)
            kind, name = self.type(s.buffer.dtype), self.define(s.buffer.data)
            if size is not None and size <= ON_STACK:
                self.line(f"__attribute__((aligned({ALIGN}))) {kind} {name}[{self.expr(count)}];")
            else:
                self.taken.append(name)
                self.line(f"{kind} *restrict {name} = ({kind} *)0;")
                many = "" if size is not None else f"{self._wide(count)} > {LARGEST} || "
                heap.append(f"{many}!({name} = ({kind} *)aligned_alloc({ALIGN}, {bytes_of}))")
        for fails in heap:
            self.line(f"if ({fails}) {{ failed = 1; goto end; }}")

    def _wide(self, size: Expr) -> str:
        """A size in 64 bits."""
        if isinstance(size, Binary) and size.op in ("add", "sub", "mul"):
            return f"({self._wide(size.a)} {OPERATORS[size.op].c} {self._wide(size.b)})"
        return f"((long){self.expr(size)})"

    def _bytes(self, array: Buffer, count: Expr) -> tuple[int | None, str]:
        """The bytes of an array, None where only the call knows them, and as text: a multiple of ALIGN. NoForm for too
        many elements."""
        element = array.dtype.bytes
        if isinstance(count, IntImm):
            if count.value > LARGEST:
                raise NoForm(
                    f"'{array.data.name}' has {count.value:,} elements, arrays on the host have {LARGEST:,} at most",
                    "compute the stage at a loop of its reader, so that it needs a part at a time, or inline it",
                )
            size = count.value * element
            return size, f"{-(-size // ALIGN) * ALIGN}UL"
        return None, f"((unsigned long)({self.expr(count)}) * {element} / {ALIGN} + 1) * {ALIGN}"

    def external(self, e: E.FuncCall) -> str:
        """The call of a function of C."""
        return f"{self.unit.externals[e.func].attr(EXTERN)}({', '.join(map(self.expr, e.args))})"

    def eval(self, s: S.Evaluate) -> None:
        if isinstance(s.value, E.FuncCall):
            self.line(f"{self.expr(s.value)};")
        else:
            super().eval(s)

    def alloc(self, s: S.Alloc) -> None:
        """Arrays are made at the beginning of a function."""

    def table(self, s: S.AllocConst) -> None:
        name = self.define(s.buffer.data)
        data = ", ".join(map(str, s.data))
        self.unit.tables.append(
            f"static const __attribute__((aligned({ALIGN}))) unsigned char {name}_bytes[] = {{{data}}};"
        )
        kind = self.type(s.buffer.dtype)
        self.line(f"const {kind} *{name} = (const {kind} *){name}_bytes;")

    def loop(self, s: S.For) -> None:
        if s.kind == "parallel" and not self.inside:
            self.parallel(s)
            return
        if s.kind == "unrolled":
            constant = all(isinstance(e, IntImm) for e in (s.min, s.stop, s.step))
            self.line(f"#pragma clang loop unroll({'full' if constant else 'enable'})")
        elif s.kind not in ("serial", "parallel"):
            raise NoForm(f"a loop of kind {s.kind} has no form on {self.where}")
        super().loop(s)

    def parallel(self, s: S.For) -> None:
        """A loop whose body is a function: it gets what it uses of the outside in a structure."""
        unit, own = self.unit, [var for var, home in self.homes.items() if home is s]
        unit.parallel = True
        number = len(unit.functions)
        inner = HostText(unit)
        arrays = [a for a in self.allocated if a.buffer.data in own]
        fields = [(v, inner.define(v)) for v in dict.fromkeys(_used((*arrays, s))) if v in self.names]
        inner.line("int failed = 0;")
        inner.arrays(arrays)
        kind, start, step = inner.type(s.loop_var.dtype), inner.expr(s.min), inner.expr(s.step)
        inner.line("for (long turn_ = begin_; turn_ < end_; turn_++) {")
        inner.depth += 1
        inner.line(f"{kind} {inner.define(s.loop_var)} = {start} + ({kind})turn_ * {step};")
        inner.body(s.body)
        inner.depth -= 1
        inner.line("}")
        inner.finish()
        members = " ".join(f"{self.type(v.dtype)} {name};" for v, name in fields)
        head = [
            f"struct captured_{number} {{ {members or 'char none;'} }};",
            f"static int turns_{number}(void *captured_, long begin_, long end_) {{",
            f"  struct captured_{number} *from_ = (struct captured_{number} *)captured_;",
        ]
        for v, name in fields:
            restrict = "restrict " if isinstance(v.dtype, PointerType) else ""
            head.append(f"  {self.type(v.dtype)} {restrict}{name} = from_->{name};")
        unit.functions.append("\n".join([*head, *inner.lines, "}"]))
        given = ", ".join(self.names[v] for v, _ in fields)
        first, last, by = self.expr(s.min), self.expr(s.stop), self.expr(s.step)
        self.line("{")
        self.line(f"  struct captured_{number} captured_ = {{{given or 0}}};")
        self.line(f"  failed |= parallel(turns_{number}, &captured_, ({last} - {first} + {by} - 1) / {by});")
        self.line("}")

    # -- vectors

    def type(self, kind: Type) -> str:
        if isinstance(kind, DataType) and kind.is_bool:
            return "_Bool" if kind.is_scalar else self._vector(f"boolx{kind.lanes}", "_Bool", kind.lanes, 0)
        if isinstance(kind, DataType) and kind.is_vector:
            return self._vector(str(kind), str(kind.element_of), kind.lanes, kind.bytes)
        return super().type(kind)

    def _vector(self, name: str, element: str, lanes: int, align: int) -> str:
        aligned = f", aligned({align})" if align else ""
        self.unit.types[name] = f"typedef {element} {name} __attribute__((ext_vector_type({lanes}){aligned}));"
        return name

    def literal(self, e: E.VectorLiteral) -> str:
        return f"(({self.type(e.dtype)}){{{', '.join(map(self.expr, e.elems))}}})"

    def ramp(self, e: E.Ramp) -> str:
        kind = self.type(e.dtype)
        steps = ", ".join(str(i) for i in range(e.lanes))
        return f"(({kind})({self.expr(e.base)}) + ({kind}){{{steps}}} * ({kind})({self.expr(e.stride)}))"

    def tail(self, e: E.TailMask) -> str:
        """By a function that is written where masks of so many lanes are first used."""
        lanes, mask = self.type(DataType("int32").with_lanes(e.lanes)), self._mask_type(e.lanes)
        name = f"first_of_{e.lanes}"
        steps = ", ".join(map(str, range(e.lanes)))
        compared = self._mask(f"(({lanes}){{{steps}}} < ({lanes})(count))", e.lanes)
        self.unit.types[name] = f"INLINE {mask} {name}(int32 count) {{ return {compared}; }}"
        return f"{name}({self.expr(e.count)})"

    def const_mask(self, e: E.ConstMask) -> str:
        bits = ", ".join(str(e.bits >> i & 1) for i in range(e.lanes))
        return f"(({self._mask_type(e.lanes)}){{{bits}}})"

    def _mask_type(self, lanes: int) -> str:
        return self.type(DataType("bool").with_lanes(lanes))

    def _mask(self, compared: str, lanes: int) -> str:
        return f"__builtin_convertvector({compared}, {self._mask_type(lanes)})"

    def _where(self, mask: str, kind: DataType, a: str, b: str) -> str:
        """Lanes of `a` where a mask is set, else of `b`."""
        bits = self.type(DataType(f"int{kind.bits}").with_lanes(kind.lanes))
        return f"((-__builtin_convertvector({mask}, {bits})) ? {a} : {b})"

    def binary(self, e: Binary) -> str:
        kind = e.a.data_type
        if kind.is_scalar:
            return super().binary(e)
        a, b, op = self.expr(e.a), self.expr(e.b), e.op
        if op in ("min", "max"):
            return self._extreme(op, kind, a, b)
        if op in E.COMPARISON and not kind.is_bool:
            return self._mask(f"({a} {OPERATORS[op].c} {b})", kind.lanes)
        sign = {"and": "&", "or": "|"}.get(op, OPERATORS[op].c)
        if op in ("div", "mod") and kind.is_integer:
            return self._lanes(e, kind, f"{op}_{kind.element_of}", (a, b))
        if not sign or op == "mod" or (kind.is_bool and op in E.COMPARISON):
            raise NoForm(f"{e} has no form on {self.where}")
        return f"({a} {sign} {b})"

    def _extreme(self, op: str, kind: DataType, a: str, b: str) -> str:
        vector, sign = self.type(kind), ">" if op == "max" else "<"
        number = " | (y_ != y_)" if kind.is_floating else ""
        return f"({{ {vector} x_ = {a}, y_ = {b}; (x_ {sign} y_){number} ? x_ : y_; }})"

    def _lanes(self, e: Expr, kind: DataType, function: str, args: tuple[str, ...]) -> str:
        """A function of scalars, lane by lane."""
        vector, named = self.type(kind), [f"x{i}_" for i in range(len(args))]
        given = ", ".join(f"{n} = {a}" for n, a in zip(named, args))
        one = ", ".join(f"{n}[l_]" for n in named)
        return (
            f"({{ {vector} {given}, r_; for (int l_ = 0; l_ < {kind.lanes}; l_++) r_[l_] = {function}({one}); r_; }})"
        )

    def unary(self, e: E.Unary) -> str:
        return super().unary(e) if e.a.dtype.is_scalar else f"(~{self.expr(e.a)})"

    def select(self, e: E.Select) -> str:
        if e.condition.dtype.is_scalar:
            return super().select(e)
        kind = e.true_value.data_type
        if kind.is_bool:
            mask, a, b = map(self.expr, (e.condition, e.true_value, e.false_value))
            return f"(({mask} & {a}) | (~{mask} & {b}))"
        return self._where(self.expr(e.condition), kind, self.expr(e.true_value), self.expr(e.false_value))

    def reinterpret(self, e: E.Reinterpret) -> str:
        """The bits of a value as another type; of vectors by a cast, which changes no bit."""
        kind, text = self.type(e.dtype), self.expr(e.value)
        if isinstance(e.dtype, PointerType) or e.data_type.is_vector:
            return f"(({kind})({text}))"
        return f"((union {{ {self.type(e.value.dtype)} from; {kind} to; }}){{ .from = {text} }}).to"

    def call(self, e: E.Call) -> str:
        kind = e.data_type
        if kind.is_scalar:
            return super().call(e)
        if e.op == "vload_gather" and isinstance(e.args[0], E.Pointer):
            return self._gathered(e, e.args[0].base, e.args[0].offset, e.args[1])
        args = [self.expr(a) for a in e.args]
        if e.op == "vrevs" and e.mask is None:
            order = ", ".join(map(str, reversed(range(kind.lanes))))
            return f"({{ {self.type(kind)} x_ = {args[0]}; __builtin_shufflevector(x_, x_, {order}); }})"
        if e.op == "cast" and e.mask is None:
            return self._converted(e.args[0].data_type, kind, args[0])
        if e.op not in _ELEMENTWISE | {"rsqrt", "erf"} or e.mask is not None:
            raise NoForm(f"the operation '{e.op}' has no form on {self.where}", "it is an operation of the NPU")
        if kind.bits == 16:
            wide = FLOAT32.with_lanes(kind.lanes)
            args = [self._converted(kind, wide, a) for a in args]
            return self._converted(wide, kind, self._real(e, wide, args))
        return self._real(e, kind, args)

    def _gathered(self, e: E.Call | E.BufferLoad, base: Expr, offset: Expr, places: Expr) -> str:
        """Elements at so many places each from an address on; 0 where a mask is not set."""
        lanes, kind, at = e.data_type.lanes, self.type(e.dtype), self.type(places.dtype)
        mask = f"{self._mask_type(lanes)} m_ = {self.expr(e.mask)}; " if e.mask is not None else ""
        return (
            f"({{ const {self.type(e.data_type.element_of)} *p_ = &{self.expr(base)}[{self.expr(offset)}]; "
            f"{at} i_ = {self.expr(places)}; {mask}{kind} r_ = 0; "
            f"for (int l_ = 0; l_ < {lanes}; l_++) {'if (m_[l_]) ' if mask else ''}r_[l_] = p_[i_[l_]]; r_; }})"
        )

    def _real(self, e: E.Call, kind: DataType, args: list[str]) -> str:
        if e.op in host_math.FUNCTIONS and kind.element_of == FLOAT32:
            vector = self.type(kind)
            self.unit.types |= host_math.texts_of(e.op, vector, self.type(INT32.with_lanes(kind.lanes)))
            return f"{e.op}_{vector}({args[0]})"
        if e.op == "erf":
            return self._lanes(e, kind, f"erf_{kind.element_of}", tuple(args))
        if e.op == "rsqrt":
            return f"(({self.type(kind)})(1) / __builtin_elementwise_sqrt({args[0]}))"
        return f"__builtin_elementwise_{e.op}({', '.join(args)})"

    def _converted(self, source: DataType, to: DataType, text: str) -> str:
        if to.is_integer and source.is_integer and to.is_bool:
            return self._mask(f"({text} != 0)", to.lanes)
        return f"__builtin_convertvector({text}, {self.type(to)})"

    # -- memory

    def _at(self, buffer: E.Buffer, index: Expr) -> tuple[str, int, int]:
        """Address of the first element of an access, its step, and its lanes. Clang accesses four where a vector has
        three."""
        assert isinstance(index, E.Ramp) and isinstance(index.stride, IntImm), "vectors are accessed by ramps"
        return f"&{self.name(buffer.data)}[{self.expr(index.base)}]", index.stride.value, index.lanes

    def load(self, e: E.BufferLoad) -> str:
        if e.dtype.is_scalar:
            return super().load(e)
        if not isinstance(e.indices[0], E.Ramp):
            return self._gathered(e, e.buffer.data, IntImm(INT32, 0), e.indices[0])
        address, step, lanes = self._at(e.buffer, e.indices[0])
        vector, element = self.type(e.dtype), self.type(e.buffer.dtype)
        if e.mask is not None:
            test = self.expr(e.mask)
            if step == 1:
                return f"__builtin_masked_load({test}, {address}, ({vector})(0))"
            return (
                f"({{ const {element} *p_ = {address}; {self._mask_type(lanes)} m_ = {test}; {vector} r_ = 0; "
                f"for (int l_ = 0; l_ < {lanes}; l_++) if (m_[l_]) r_[l_] = p_[l_ * {step}]; r_; }})"
            )
        if step == 1 and lanes != 3:
            return f"(*(const {vector} *){address})"
        parts = ", ".join(f"p_[{i * step}]" for i in range(lanes))
        return f"({{ const {element} *p_ = {address}; ({vector}){{{parts}}}; }})"

    def store(self, s: S.BufferStore) -> None:
        if s.value.dtype.is_scalar:
            super().store(s)
            return
        address, step, lanes = self._at(s.buffer, s.indices[0])
        vector, element = self.type(s.value.dtype), self.type(s.buffer.dtype)
        value = self.expr(s.value)
        if s.value.dtype.is_bool:  # a vector of truths has a bit for each, memory a byte
            vector = self.type(DataType("uint8").with_lanes(lanes))
            element, value = "uint8", f"__builtin_convertvector({value}, {vector})"
            address = f"(uint8 *){address}"
        if step == 1 and s.mask is None and lanes != 3:
            self.line(f"*({vector} *){address} = {value};")
        elif step == 1 and s.mask is not None:
            self.line(f"__builtin_masked_store({self.expr(s.mask)}, {value}, {address});")
        else:
            mask = f"{self._mask_type(lanes)} m_ = {self.expr(s.mask)}; " if s.mask is not None else ""
            test = "if (m_[l_]) " if s.mask is not None else ""
            self.line(
                f"{{ {element} *p_ = {address}; {mask}{vector} v_ = {value}; "
                f"for (int l_ = 0; l_ < {lanes}; l_++) {test}p_[l_ * {step}] = v_[l_]; }}"
            )

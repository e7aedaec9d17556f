"""Random statements and blocks."""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir.dtypes import BOOL, INT32, STORAGE, DataType, bool_of, dtype

from .expressions import INTS, Expressions
from .scope import Frame, Region, Variable, short
from .tree import Clause, Expr, Stmt, simple

AUGMENTED = ("+", "-", "*", "&", "|", "^", "<<", ">>")
FLEXIBLE = (3, 5, 12, 20, 40)
VECTORIZED_OPS = ("+", "-", "*", "&", "|", "^")
FLOAT32 = dtype("float32")
DEPTH = 3


class Statements(Expressions):
    """Draws statements; `types` are the types its variables get."""

    types: list[DataType]
    counter = 0
    loops = 0
    blocks = 0
    size_left = 0
    can_alloc = True
    frozen = False
    """Inside a macro: the variables of the caller may not be assigned."""

    def pick_types(self) -> list[DataType]:
        """A few types per program, so that expressions find variables of theirs."""
        elems = self.rng.sample(STORAGE, 3)
        chosen: list[DataType] = [INT32, *[e for e in elems if not e.is_bfloat]]
        for elem in elems:
            native = elem.native_lanes
            lanes = self.rng.choice((native, native, native, 2 * native, self.rng.choice(FLEXIBLE)))
            lanes = native if elem.is_bfloat else lanes
            chosen.append(elem.with_lanes(lanes))
            if self.chance(0.5):
                chosen.append(bool_of(lanes))
                self.mask_widths[lanes] = elem.bits
        return [*chosen, BOOL]

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.mask_widths: dict[int, int] = {}

    def name(self, letter: str) -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def mutable(self) -> list[Variable]:
        if not self.frozen:
            return [v for v in self.scope.variables if not v.fixed]
        return [v for v in self.scope.frames[-1].variables if not v.fixed]

    # ---------------------------------------------------------------------------------------------- blocks

    def block(self, count: int, observe: bool = False) -> list[Stmt]:
        """Statements in a frame of their own."""
        self.scope.frames.append(Frame())
        self.blocks += 1
        out: list[Stmt] = []
        for _ in range(count):
            out += self.statement()
        if observe:
            out += [s for v in self.scope.frames[-1].variables[-2:] for s in self.observe(v)]
        self.blocks -= 1
        self.scope.frames.pop()
        return out

    def statement(self) -> list[Stmt]:
        self.size_left -= 1
        makers: list[tuple[float, Callable[[], list[Stmt] | None]]] = [
            (6, self.define),
            (4, self.assign),
            (2, self.augmented),
            (0.7, self.swap),
            (3, self.store),
            (3, self.vstore),
            (1, self.element_store),
            (0.7, self.region_augmented),
            (1, self.call_statement),
            (0.8, self.alias),
            (0.4, self.scatter),
            (1.2, self.copy),
            (0.8, self.fill),
            (0.6, self.split),
            (0.3, self.transpose),
            (0.15, self.without_effect),
        ]
        if self.blocks < 4 and self.size_left > 0:
            makers += [(2.5, self.branch), (2.5, self.loop), (0.7, self.while_loop), (0.4, self.vectorized)]
        if self.blocks <= 1 and self.can_alloc:
            makers += [(0.8, self.allocate), (0.4, self.table)]
        while True:
            made = self.rng.choices([m for _, m in makers], [w for w, _ in makers])[0]()
            if made is not None:
                return made

    # ---------------------------------------------------------------------------------------------- variables

    def define(self) -> list[Stmt]:
        t = self.rng.choice(self.types)
        width = self.mask_widths.get(t.lanes, 0) if t.is_mask else 0
        value = self.gen(t, DEPTH, width)
        if t in (INT32, FLOAT32) and self.chance(0.2):
            value = Expr(self.number(t), [], t)
        variable = Variable(self.name("v"), t, width)
        if self.chance(0.1):
            second = Variable(self.name("v"), t, width)
            made = simple(f"{variable.name}, {second.name} = {{}}, {{}}", value, self.gen(t, 1, width))
            self.scope.add(second)
        else:
            made = simple(f"{variable.name} = {{}}", value)
        self.scope.add(variable)
        return [made]

    def assign(self) -> list[Stmt] | None:
        found = self.mutable()
        if not found:
            return None
        variable = self.rng.choice(found)
        return [simple(f"{variable.name} = {{}}", self.gen(variable.type, DEPTH, variable.width))]

    def augmented(self) -> list[Stmt] | None:
        found = [v for v in self.mutable() if not v.type.is_bool and not v.type.is_mask]
        if not found:
            return None
        v = self.rng.choice(found)
        symbol = self.rng.choice(AUGMENTED if v.type.is_integer else AUGMENTED[:3])
        if (symbol == "*" and v.type.is_vector and v.type.bits == 8) or (v.type.is_bfloat and v.type.is_scalar):
            return None
        if v.type.is_bfloat and symbol == "*":
            return None
        if symbol in ("<<", ">>"):
            return [simple(f"{v.name} {symbol}= {self.rng.randrange(v.type.bits)}")]
        value = self.literal_or(v.type, DEPTH - 1)
        if v.type.is_integer and value.text() == "0" and symbol == "/":
            return None
        return [simple(f"{v.name} {symbol}= {{}}", value)]

    def swap(self) -> list[Stmt] | None:
        found = self.mutable()
        pairs = [(a, b) for a in found for b in found if a is not b and a.type is b.type and a.width == b.width]
        if not pairs:
            return None
        a, b = self.rng.choice(pairs)
        if self.chance(0.5):
            return [simple(f"{a.name}, {b.name} = {b.name}, {a.name}")]
        left, right = self.gen(a.type, 1, a.width), self.gen(a.type, 1, a.width)
        return [simple(f"{a.name}, {b.name} = {{}}, {{}}", left, right)]

    def element_store(self) -> list[Stmt] | None:
        found = [v for v in self.mutable() if v.type.is_vector and not v.type.is_mask and v.type.total_bits % 256 == 0]
        if not found:
            return None
        v = self.rng.choice(found)
        value = self.gen(v.type.element_of, 2)
        if v.type.is_native and self.chance(0.4):
            return [simple(f"{v.name}[{{}}] = {{}}", self.index(v.type.lanes - 1, 2), value)]
        return [simple(f"{v.name}[{self.rng.randrange(v.type.lanes)}] = {{}}", value)]

    # ---------------------------------------------------------------------------------------------- memory

    def target(self, elem: DataType, size: int) -> Region | None:
        return self.region(elem, size, writable=True)

    def store(self) -> list[Stmt] | None:
        elem = self.rng.choice([t for t in self.types if not t.is_mask and not t.is_bool])
        if elem.is_vector:
            return self.slice_store(elem)
        found = self.target(elem, 1)
        if found is None:
            return None
        value = elem
        if elem.is_integer and self.chance(0.2):
            value = self.rng.choice(INTS)
        return [simple(f"{found.name}[{{}}] = {{}}", self.index(found.size - 1, 2), self.gen(value, DEPTH))]

    def slice_store(self, t: DataType) -> list[Stmt] | None:
        found = self.target(t.element_of, t.lanes)
        span = self.span(found, t.lanes, 0) if found else None
        if found is None or span is None:
            return None
        start, stride = int(span[0].text()), span[1]
        step = f":{stride}" if stride > 1 else ""
        where = f"{found.name}[{start}:{start + t.lanes * stride}{step}]"
        if self.chance(0.2) and not t.is_bfloat:
            return [simple(f"{where} = {{}}", self.gen(t.element_of, 2))]
        return [simple(f"{where} = {{}}", self.gen(t, DEPTH))]

    def region_augmented(self) -> list[Stmt] | None:
        elem = self.rng.choice([t for t in STORAGE if not t.is_bfloat])
        found = self.target(elem, 1)
        if found is None:
            return None
        symbol = self.rng.choice("+-*")
        return [simple(f"{found.name}[{{}}] {symbol}= {{}}", self.index(found.size - 1, 1), self.gen(elem, 2))]

    def vstore(self) -> list[Stmt] | None:
        vectors = [t for t in self.types if t.is_vector and not t.is_mask]
        t = self.rng.choice(vectors)
        found = self.target(t.element_of, t.lanes)
        span = self.span(found, t.lanes, 2) if found else None
        if found is None or span is None:
            return None
        where, args = self.address(found, span[0])
        args = [self.gen(t, DEPTH), *args]
        options = ""
        if self.chance(0.4):
            options = ", mask={}"
            args.append(self.mask_argument(t.lanes, t.bits, 2))
        if span[1] > 1:
            options += f", stride={span[1]}"
        return [simple(f"S.vstore({{}}, {where}{options})", *args)]

    def scatter(self) -> list[Stmt] | None:
        vectors = [t for t in self.types if t.is_vector and not t.is_mask and t.is_native]
        if not vectors:
            return None
        t = self.rng.choice(vectors)
        found = self.target(t.element_of, 32)
        offsets = self.offsets(t.lanes, found.size - 1, 2) if found else None
        if found is None or offsets is None:
            return None
        return [simple(f"S.vstore_scatter({{}}, {found.name}, {{}})", self.gen(t, 2), offsets)]

    def transfers(self) -> list[tuple[Region, Region]]:
        """Destination and source of what DMA can move."""
        regions = [r for r in self.scope.regions if not r.type.is_vector and r.scope in ("global", "lsram")]
        return [(d, s) for d in regions for s in regions if d.writable and d.type is s.type and d.scope != s.scope]

    def copy(self) -> list[Stmt] | None:
        """A DMA transfer between external and internal memory."""
        pairs = self.transfers()
        if not pairs:
            return None
        d, s = self.rng.choice(pairs)
        n = self.rng.randint(1, min(d.size, s.size))
        to, more = self.address(d, self.index(d.size - n, 1))
        source, rest = self.address(s, self.index(s.size - n, 1))
        if self.chance(0.3):
            event = self.name("e")
            text = f"{event} = S.alloc_events(1)\nS.async_dma_copy({to}, {source}, {n}, event={event})\n"
            return [simple(text + f"S.wait_events({event})\nS.free_events({event})", *more, *rest)]
        return [simple(f"S.dma_copy({to}, {source}, {n})", *more, *rest)]

    def fill(self) -> list[Stmt] | None:
        found = [r for r in self.scope.regions if r.scope == "lsram" and r.writable and r.type.is_integer]
        found = [r for r in found if not r.type.is_vector]
        if not found:
            return None
        region = self.rng.choice(found)
        n = self.rng.randint(1, region.size)
        return [simple(f"S.dma_memset({region.name}, {self.number(region.type)}, {n})")]

    def split(self) -> list[Stmt] | None:
        """The registers of a wide vector as variables."""
        found = [v for v in self.scope.variables if v.type.is_vector and not v.type.is_mask]
        found = [v for v in found if v.type.total_bits % 256 == 0 and v.type.total_bits > 256]
        if not found:
            return None
        v = self.rng.choice(found)
        part = v.type.with_lanes(v.type.native_lanes)
        names = [self.name("v") for _ in range(v.type.lanes // part.lanes)]
        for name in names:
            self.scope.add(Variable(name, part))
        return [simple(f"{', '.join(names)} = S.vsplit({v.name})")]

    def transpose(self) -> list[Stmt] | None:
        """A small matrix moved between external and internal memory, its rows becoming columns."""
        rows, columns = self.rng.randint(1, 5), self.rng.randint(1, 6)
        pairs = [p for p in self.transfers() if min(p[0].size, p[1].size) >= rows * columns]
        if not pairs:
            return None
        d, s = self.rng.choice(pairs)
        return [simple(f"S.dma_transpose2d({d.name}, {s.name}, {rows}, {columns})")]

    def without_effect(self) -> list[Stmt]:
        return [simple(self.rng.choice(("S.flush_cache()", "S.perf_tick_begin(1)\nS.perf_tick_end(1)")))]

    def allocate(self) -> list[Stmt]:
        """New memory, filled at once."""
        t = self.rng.choice([t for t in self.types if not t.is_vector and not t.is_bool] + [INT32])
        scope = self.rng.choice(("private", "lsram", "lsram"))
        name, i = self.name("m"), self.name("i")
        size = self.rng.choice((32, 64, 128))
        self.scope.frames.append(Frame())
        counter = Variable(i, INT32, fixed=True)
        self.scope.add(counter)
        value = self.gen(t, 2)
        self.scope.frames.pop()
        region = Region(name, t, size, scope, True)
        if self.chance(0.2):
            columns = 8
            text = f'{name}_b = S.alloc_buffer(({size // columns}, {columns}), "{t}", "{scope}")\nfor {i} in range({size}):\n'
            text += f"    {name}_b[{i} // {columns}, {i} % {columns}] = {{}}\n{name} = {name}_b.addr_of(0)"
        else:
            text = f'{name} = S.alloc(({size},), "{t}", "{scope}")\nfor {i} in range({size}):\n    {name}[{i}] = {{}}'
        self.scope.add(region)
        return [simple(text, value)]

    def table(self) -> list[Stmt]:
        t = self.rng.choice([t for t in STORAGE if not t.is_bfloat])
        size = self.rng.choice((8, 32, 64))
        name = self.name("t")
        data = ", ".join(self.number(t) for _ in range(size))
        self.scope.add(Region(name, t, size, "constant", False, raw=True))
        return [simple(f'{name} = S.alloc_const(({size},), "{t}", [{data}])')]

    def alias(self) -> list[Stmt] | None:
        """A pointer into memory: moved, or with another type."""
        found = [r for r in self.scope.regions if not r.type.is_vector and r.size >= 16 and r.scope != "constant"]
        if not found:
            return None
        region, name = self.rng.choice(found), self.name("q")
        if self.chance(0.5):
            limit = region.size // 2
            where, args = self.address(region, self.index(limit, 2))
            self.scope.add(Region(name, region.type, region.size - limit, region.scope, region.writable, region.raw))
            if not args:
                return [simple(f"{name} = {region.name} + 0")]
            return [simple(f"{name} = {where}", *args)]
        to = self.rng.choice(STORAGE)
        if self.chance(0.3):
            to = to.with_lanes(to.native_lanes)
        if (
            to.is_floating
            and to.element_of is not region.type
            and not to.is_vector
            and region.writable
            and self.chance(0.5)
        ):
            return None
        if region.type.is_floating and not region.raw and to.element_of is not region.type:
            return None
        size = region.size * region.type.bytes // to.total_bytes
        if size < 1 or to is region.type:
            return None
        writable = region.writable and (not to.is_floating or region.type.is_floating)
        self.scope.add(Region(name, to, size, region.scope, writable, region.raw and not writable))
        return [simple(f'{name} = {region.name}.as_ptr("{to}")')]

    # ---------------------------------------------------------------------------------------------- control flow

    def body_size(self) -> int:
        return self.rng.randint(1, 3)

    def branch(self) -> list[Stmt]:
        clauses = [Clause("if {}:", [self.condition()], self.block(self.body_size(), True))]
        while self.chance(0.25):
            clauses.append(Clause("elif {}:", [self.condition()], self.block(self.body_size())))
        if self.chance(0.5):
            clauses.append(Clause("else:", [], self.block(self.body_size())))
        return [Stmt(clauses)]

    def condition(self) -> Expr:
        if self.chance(0.15):
            return self.gen(self.rng.choice(INTS), 2)
        return self.boolean(DEPTH)

    def loop(self) -> list[Stmt] | None:
        if self.loops >= 2:
            return None
        self.scope.frames.append(Frame())
        self.loops += 1
        head, args = self.loop_head()
        body = self.block(self.body_size(), True)
        if self.chance(0.3):
            body.insert(self.rng.randint(0, len(body)), Stmt([Clause("if {}:", [self.boolean(2)], [simple("break")])]))
        self.loops -= 1
        self.scope.frames.pop()
        return [Stmt([Clause(head, args, body)])]

    def counter_variable(self, t: DataType = INT32) -> str:
        variable = Variable(self.name("i"), t, fixed=True)
        self.scope.add(variable)
        return variable.name

    def loop_head(self) -> tuple[str, list[Expr]]:
        kind = self.rng.choice(("count", "count", "between", "step", "grid", "typed"))
        if kind == "grid":
            a, b = (self.rng.randint(1, 3) for _ in range(2))
            return f"for {self.counter_variable()}, {self.counter_variable()} in S.grid({a}, {b}):", []
        if kind == "typed":
            t = self.rng.choice(INTS)
            stop = self.gen(t, 1)
            return f"for {self.counter_variable(t)} in range(({{}} & 3)):", [stop]
        stop = self.index(5, 2)
        if kind == "count":
            stop = stop if stop.type is INT32 else Expr("S.i32({})", [stop], INT32)
            return f"for {self.counter_variable()} in range({{}}):", [stop]
        stop = stop if stop.type is INT32 else Expr("S.i32({})", [stop], INT32)
        start = (
            Expr("({} & 3)", [self.gen(INT32, 1)], INT32)
            if self.chance(0.4)
            else Expr(str(self.rng.randint(-3, 2)), [], INT32)
        )
        step = f", {self.rng.randint(1, 3)}" if kind == "step" else ""
        return f"for {self.counter_variable()} in range({{}}, {{}}{step}):", [start, stop]

    def while_loop(self) -> list[Stmt] | None:
        if self.loops >= 2:
            return None
        self.loops += 1
        counter = self.name("w")
        self.scope.add(Variable(counter, INT32, fixed=True))
        condition = self.boolean(2) if self.chance(0.6) else None
        body = [simple(f"{counter} += 1"), *self.block(self.body_size(), True)]
        limit = self.rng.randint(1, 4)
        head = f"{counter} = 0\nwhile {counter} < {limit}" + (" and {}:" if condition else ":")
        self.loops -= 1
        return [Stmt([Clause(head, [condition] if condition else [], body)])]

    def vectorized(self) -> list[Stmt] | None:
        """An element-wise loop that the compiler turns into vectors."""
        t = self.rng.choice((INT32, dtype("int16"), dtype("uint32"), FLOAT32))
        n = self.rng.choice((8, 16, 32, 24))
        sources = [self.region(t, 2 * n) for _ in range(2)]
        found = self.target(t, 2 * n)
        if found is None or None in sources:
            return None
        i = self.name("i")
        symbol = self.rng.choice(VECTORIZED_OPS if t.is_integer else VECTORIZED_OPS[:3])
        a, b = (f"{s.name}[{i} + {self.rng.randint(0, n)}]" for s in sources if s)
        if self.chance(0.3):
            b = f"S.{short(t)}({self.number(t)})"
        if found in sources:
            a = a.split("[")[0] + f"[{i}]" if a.startswith(found.name + "[") else a
            b = b.split("[")[0] + f"[{i}]" if b.startswith(found.name + "[") else b
        if any(s is not found and s is not None and s.writable for s in sources):
            return None  # two names may lie over each other
        return [simple(f"for {i} in S.vectorized({n}):\n    {found.name}[{i}] = {a} {symbol} {b}")]

    def call_statement(self) -> list[Stmt] | None:
        found = self.sub_call(None, DEPTH)
        return None if found is None else [Stmt([Clause(found.template, found.args)])]

    # ---------------------------------------------------------------------------------------------- results

    def observe(self, variable: Variable) -> list[Stmt]:
        """Statements that put a variable where its value is compared."""
        t = variable.type
        if t.is_bool and t.is_scalar:
            return self._to_slot(INT32, f"(S.i32(1) if {variable.name} else S.i32(0))")
        if t.is_mask:
            elem = next((e for e in INTS if e.bits == variable.width and e.is_int), INT32)
            ones = f"S.vsel(S.{short(elem.with_lanes(t.lanes))}(1), S.{short(elem.with_lanes(t.lanes))}(0), mask={variable.name})"
            return self._to_slot(elem.with_lanes(t.lanes), ones)
        return self._to_slot(t, variable.name)

    def _to_slot(self, t: DataType, text: str) -> list[Stmt]:
        found = self.target(t.element_of, t.lanes)
        if found is None:
            return []
        at = self.rng.randint(0, found.size - t.lanes)
        if t.is_vector:
            return [simple(f"S.vstore({text}, {found.name} + {at})")]
        return [simple(f"{found.name}[{at}] = {text}")]

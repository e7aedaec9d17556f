"""Random statements and blocks."""

from __future__ import annotations

from collections.abc import Callable

from compassc.ir.dtypes import BOOL, INT32, STORAGE, DataType, bool_of, dtype

from .draw import INTS
from .extensions import Extensions
from .scope import Variable, short
from .stores import DEPTH
from .tiles import Tiles
from .tree import Clause, Expr, Stmt, simple

AUGMENTED = ("+", "-", "*", "&", "|", "^", "<<", ">>")
FLEXIBLE = (3, 5, 12, 20, 40)
VECTORIZED_OPS = ("+", "-", "*", "&", "|", "^")
FLOAT32 = dtype("float32")


class Statements(Extensions, Tiles):
    """Draws statements and blocks."""

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

    def mutable(self) -> list[Variable]:
        if not self.frozen:
            return [v for v in self.scope.variables if not v.fixed]
        return [v for v in self.scope.frames[-1].variables if not v.fixed]

    # ---------------------------------------------------------------------------------------------- blocks

    def block(self, count: int, observe: bool = False) -> list[Stmt]:
        """Statements in a frame of their own."""
        self.scope.push()
        self.blocks += 1
        out: list[Stmt] = []
        for _ in range(count):
            out += self.statement()
        if observe:
            out += [s for v in self.scope.frames[-1].variables[-2:] for s in self.observe(v)]
        self.blocks -= 1
        self.scope.pop()
        return out

    def statement(self) -> list[Stmt]:
        self.size_left -= 1
        makers: list[tuple[float, Callable[[], list[Stmt] | None]]] = [
            (6, self.define),
            (4, self.assign),
            (2, self.augmented),
            (0.7, self.swap),
            (0.7, self.swap_pointers),
            (3, self.store),
            (3, self.vstore),
            (1, self.element_store),
            (0.7, self.region_augmented),
            (1, self.call_statement),
            (0.8, self.alias),
            (1.2, self.move),
            (0.3, self.of_variable),
            (0.7, self.matrix_store),
            (0.25, self.constant_name),
            (0.4, self.scatter),
            (1.2, self.copy),
            (0.8, self.fill),
            (0.6, self.split),
            (0.3, self.transpose),
            (0.15, self.without_effect),
            (0.4, self.chain),
            (0.4, self.element_swap),
            (0.4, self.listed),
            (0.4, self.atomic),
            (0.3, self.stated),
        ]
        if self.blocks < 4 and self.size_left > 0:
            makers += [(2.5, self.branch), (2.5, self.loop), (0.7, self.while_loop), (0.4, self.vectorized)]
            makers += [(0.7, self.constant_loop), (0.7, self.unrolled_loop), (0.4, self.endless_loop)]
        if self.blocks <= 1 and self.can_alloc:
            makers += [(0.8, self.allocate), (0.4, self.table), (0.25, self.pipelined), (0.3, self.on_tiles)]
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
        self.scope.push()
        self.loops += 1
        head, args = self.loop_head()
        body = self.block(self.body_size(), True)
        if self.chance(0.3):
            self.jump(body, "break")
        if self.chance(0.2):
            self.jump(body, "continue")
        self.loops -= 1
        self.scope.pop()
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

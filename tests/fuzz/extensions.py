"""Random statements that are ours: loops over constants, endless loops, chains, swaps of elements, comprehensions."""

from __future__ import annotations

from compassc.ir.dtypes import INT32, STORAGE, DataType, dtype

from .scope import Constant, Variable
from .stores import DEPTH, Stores
from .tree import Clause, Stmt, simple


class Extensions(Stores):
    """Draws statements that the vendor's language does not have."""

    loops = 0

    def mutable(self) -> list[Variable]:
        raise NotImplementedError

    def block(self, count: int, observe: bool = False) -> list[Stmt]:
        raise NotImplementedError

    def body_size(self) -> int:
        raise NotImplementedError

    def jump(self, body: list[Stmt], word: str) -> None:
        """Puts a conditional `break` or `continue` into a loop's body."""
        body.insert(self.rng.randint(0, len(body)), Stmt([Clause("if {}:", [self.boolean(2)], [simple(word)])]))

    # ---------------------------------------------------------------------------------------------- loops

    def numbers(self, count: int) -> list[int]:
        return [self.rng.randint(0, 12) for _ in range(count)]

    def constant_name_of(self, values: list[int]) -> str:
        """A name for numbers that are known; it may stand wherever the largest of them may."""
        found = Constant(self.name("c"), max(values))
        self.scope.add(found)
        return found.name

    def constant_head(self) -> str:
        """The head of a loop over numbers that are known."""
        first, second = self.numbers(3), self.numbers(3)
        kind = self.rng.choice(("tuple", "list", "enumerate", "zip", "reversed", "comprehension"))
        if kind in ("enumerate", "zip"):
            pair = f"{self.constant_name_of([*range(3)] if kind == 'enumerate' else first)}, {self.constant_name_of(second)}"
            items = f"enumerate({second})" if kind == "enumerate" else f"zip({first}, {tuple(second)})"
            return f"for {pair} in {items}:"
        name = self.constant_name_of(first)
        items = {
            "tuple": str(tuple(first)),
            "list": str(first),
            "reversed": f"reversed({first})",
            "comprehension": f"[n % 13 for n in {first} if n >= 0]",
        }
        return f"for {name} in {items[kind]}:"

    def constant_loop(self) -> list[Stmt] | None:
        if self.loops >= 2:
            return None
        self.scope.push()
        self.loops += 1
        head = self.constant_head()
        body = self.block(self.body_size(), True)
        for word in ("break", "continue"):
            if self.chance(0.2):
                self.jump(body, word)
        self.loops -= 1
        self.scope.pop()
        return [Stmt([Clause(head, [], body)])]

    def unrolled_loop(self) -> list[Stmt] | None:
        """S.unroll; in half of them the variable is asked for as a number."""
        if self.loops >= 2:
            return None
        self.scope.push()
        self.loops += 1
        counter = Variable(self.name("i"), INT32, fixed=True)
        self.scope.add(counter)
        bounds = self.rng.choice(("3", "1, 4", "0, 4, 2", "3, -1, -1", "2"))
        head = f"for {counter.name} in S.unroll({bounds}):"
        first: list[Stmt] = []
        if bounds == "3, -1, -1" or self.chance(0.5):
            values = self.numbers(4)
            chosen = self.constant_name_of(values)
            first.append(simple(f"{chosen} = S.meta_var({tuple(values)}[{counter.name}])"))
        if self.chance(0.3):  # no block of its own where the condition is known, so nothing is defined there
            test = f"{counter.name} {self.rng.choice(('==', '<', '!='))} {self.rng.randint(0, 3)}"
            sides = [self.store() or [], self.region_augmented() or []]
            first.append(Stmt([Clause(f"if {test}:", [], sides[0]), Clause("else:", [], sides[1])]))
        body = [*first, *self.block(self.body_size(), True)]
        if self.chance(0.2):
            self.jump(body[len(first) :], self.rng.choice(("break", "continue")))
        self.loops -= 1
        self.scope.pop()
        return [Stmt([Clause(head, [], body)])]

    def endless_loop(self) -> list[Stmt] | None:
        """`while True` with a break after some turns."""
        if self.loops >= 2:
            return None
        self.loops += 1
        counter = self.name("w")
        self.scope.add(Variable(counter, INT32, fixed=True))
        stop = Stmt([Clause(f"if {counter} > {self.rng.randint(0, 4)}:", [], [simple("break")])])
        rest = self.block(self.body_size(), True)
        if self.chance(0.4):
            self.jump(rest, self.rng.choice(("break", "continue")))
        body = [simple(f"{counter} += 1"), stop, *rest]
        self.loops -= 1
        return [Stmt([Clause(f"{counter} = 0\nwhile True:", [], body)])]

    # ---------------------------------------------------------------------------------------------- assignments

    def chain(self) -> list[Stmt] | None:
        """One value for several targets."""
        t: DataType = self.rng.choice([t for t in self.types if not t.is_mask and not t.is_bool])
        first, second = Variable(self.name("v"), t), Variable(self.name("v"), t)
        value = self.gen(t, DEPTH)
        where = self.target(t.element_of, 1) if t.is_scalar and not t.is_bfloat else None
        if where is None:
            made = simple(f"{first.name} = {second.name} = {{}}", value)
        else:
            at = self.index(where.size - 1, 1)
            made = simple(f"{first.name} = {where.name}[{{}}] = {second.name} = {{}}", at, value)
        self.scope.add(first)
        self.scope.add(second)
        return [made]

    def element_swap(self) -> list[Stmt] | None:
        if self.chance(0.3):
            found = [v for v in self.mutable() if v.type.is_vector and not v.type.is_mask and v.type.is_native]
            if not found:
                return None
            v = self.rng.choice(found)
            a, b = (f"{v.name}[{self.rng.randrange(v.type.lanes)}]" for _ in range(2))
            return [simple(f"{a}, {b} = {b}, {a}")]
        where = self.target(self.rng.choice([t for t in STORAGE if not t.is_bfloat]), 1)
        if where is None:
            return None
        i, j = (self.index(where.size - 1, 1) for _ in range(2))
        if self.chance(0.5):
            items = f"{where.name}[{{}}], {where.name}[{{}}]"
            return [simple(f"{items} = {where.name}[{{}}], {where.name}[{{}}]", i, j, j, i)]
        value = self.gen(where.type, 1)
        name = Variable(self.name("v"), where.type)
        made = simple(f"{where.name}[{{}}], {name.name} = {{}}, {where.name}[{{}}]", i, value, j)
        self.scope.add(name)
        return [made]

    def atomic(self) -> list[Stmt] | None:
        """An atomic operation on memory of this TEC alone; its result is a variable."""
        t = self.rng.choice((INT32, dtype("uint32")))
        found = self.target(t, 1)
        if found is None or found.scope not in ("global", "shared") or found.buffer:
            return None
        at = self.index(found.size - 1, 1)
        name = self.rng.choice(("add", "min", "max", "exchange", "compare_exchange"))
        values = [self.literal_or(t, 2) for _ in range(1 + (name == "compare_exchange"))]
        result = Variable(self.name("v"), t)
        holes = ", ".join("{}" for _ in values)
        made = simple(f"{result.name} = S.atomic_{name}({found.name} + {{}}, {holes})", at, *values)
        self.scope.add(result)
        return [made]

    def stated(self) -> list[Stmt]:
        """Conditions that hold, some of which the compiler may count on."""
        a = self.gen(INT32, 2)
        name, limit = self.name("v"), self.rng.randint(1, 20)
        variable = Variable(name, INT32, fixed=True)
        step = self.rng.choice((2, 4, 8, 6))
        made = simple(f"{name} = ({{}} & 31) * {step}", a)
        self.scope.add(variable)
        facts = [f"{name} % {step} == 0", f"{name} >= 0 and {name} < {32 * step}", f"{name} + {limit} > 0"]
        uses = [simple(self.rng.choice((f'S.assert_({fact}, "fact")', f"S.assume({fact})"))) for fact in facts]
        return [made, *self.rng.sample(uses, self.rng.randint(1, 3))]

    def listed(self) -> list[Stmt] | None:
        """Values in a list, used one by one."""
        t: DataType = self.rng.choice([t for t in self.types if not t.is_mask and not t.is_bool])
        values = self.numbers(2)
        self.scope.push()
        name = self.constant_name_of(values)
        value = self.gen(t, 2)
        self.scope.pop()
        items, result = self.name("l"), Variable(self.name("v"), t)
        between = self.store() or []
        use = f"{result.name} = {items}[{self.rng.randrange(2)}]"
        if not t.is_bfloat and self.chance(0.5):
            use = f"{result.name} = sum({items})"
        made = [simple(f"{items} = [{{}} for {name} in {tuple(values)}]", value), *between, simple(use)]
        self.scope.add(result)
        return [Stmt([c for s in made for c in s.clauses])] if not between else made

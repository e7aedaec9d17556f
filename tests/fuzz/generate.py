"""A whole random program: functions, macros, the entry, and how its TECs share the work."""

from __future__ import annotations

from random import Random

from compassc.ir.dtypes import BOOL, INT32, STORAGE, VOID, DataType, dtype

from .draw import INTS
from .scope import IN_SIZE, OUT_SIZE, SHORT, TECS, Matrix, Region, Scope, SubFunction, Variable, short
from .statements import FLEXIBLE, Statements
from .tree import Clause, Expr, Function, Program, Stmt, simple

SCALARS = {"n": "int32", "k": "int16", "u": "uint8", "b": "int8", "w": "uint32", "f": "float32", "h": "float16"}
SCOPES = ("global", "global", "global", "lsram", "private", "shared", "constant")
VERSIONS = {"X2_1204": "X2", "X3P_1304": "X3P"}


class Generator(Statements):
    """Makes one program from a seed."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.target_name = rng.choice(("X2_1204", "X2_1204", "X3P_1304"))
        super().__init__(rng, VERSIONS[self.target_name])
        self.seed = seed
        self.types = self.pick_types()
        self.made: list[Function] = []

    def program(self) -> Program:
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            self.sub_function()
        if self.chance(0.25):
            self.pointer_function()
        entry = self.entry()
        return Program(entry, self.made, self.seed, self.target_name)

    # ---------------------------------------------------------------------------------------------- sub-functions

    def sub_function(self) -> None:
        name = f"f{len(self.made)}_{self.seed}"
        self.scope = Scope()
        params = [self.parameter() for _ in range(self.rng.randint(1, 3))]
        for param in params:
            self.scope.add(param)
        returns = self.return_type()
        if returns is None:
            params.append(self.result_parameter())
            self.scope.add(params[-1])
        self.size_left, self.can_alloc = 8, False
        width = self.mask_widths[returns.lanes] if returns is not None and returns.is_mask else 0
        body = self.block_with_return(returns, width)
        inline = self.rng.choice(("", "(is_inline=True)", "(is_inline=False)"))
        annotations = {p.name: self.annotation(p) for p in params}
        defaults = self.defaults(params, annotations)
        kind = f"S.{short(returns)}" if returns else ""
        self.made.append(Function(f"@S.prim_func{inline}", name, annotations, kind, body))
        self.functions.append(SubFunction(name, params, returns, width, defaults))
        self.can_alloc = True

    def pointer_function(self) -> None:
        """A function that returns one of its pointers, moved; half of what is behind them is left then."""
        name = f"g{len(self.made)}_{self.seed}"
        self.scope = Scope()
        elem = self.rng.choice([t.element_of for t in self.types if not t.is_bool])
        scope = self.rng.choice(("global", "global", "global", "lsram", "private"))
        pointers = [Region(self.name("p"), elem, 64, scope, False) for _ in range(self.rng.randint(1, 2))]
        scalars = [
            Variable(self.name("p"), self.rng.choice((INT32, BOOL, *INTS))) for _ in range(self.rng.randint(0, 2))
        ]
        params = [*pointers, *scalars]
        self.rng.shuffle(params)
        for param in params:
            self.scope.add(param)
        self.size_left, self.can_alloc = 3, False
        self.scope.push()
        body = [s for _ in range(self.rng.randint(0, 2)) for s in self.statement()]
        early = simple("return {}", self.moved(self.rng.choice(pointers)))
        body.append(Stmt([Clause("if {}:", [self.boolean(2)], [early])]))
        body.append(simple("return {}", self.moved(self.rng.choice(pointers))))
        self.scope.pop()
        annotations = {p.name: self.annotation(p) for p in params}
        self.made.append(Function("@S.prim_func", name, annotations, self.annotation(pointers[0]), body))
        behind = Region(name, elem, 32, scope, False)
        self.functions.append(SubFunction(name, params, None, gives=behind))
        self.can_alloc = True

    def moved(self, region: Region) -> Expr:
        text, args = self.address(region, self.index(32, 2))
        return Expr(text, args, VOID)

    def defaults(self, params: list[Variable | Region], annotations: dict[str, str]) -> int:
        """Give the last parameters default values, where they are numbers; how many."""
        count = 0
        for param in reversed(params):
            if isinstance(param, Region) or param.type.is_vector or not self.chance(0.3):
                break
            annotations[param.name] += f" = {self.number(param.type)}"
            count += 1
        return count

    def result_parameter(self) -> Region:
        """A pointer that a function writes its results to: into memory, or to a variable."""
        if self.chance(0.4):
            t = self.rng.choice([t for t in self.types if not t.is_bool and (t.is_scalar or t.is_native)])
            return Region(self.name("p"), t, 1, "private", True)
        return Region(self.name("p"), self.rng.choice(STORAGE), 64, self.rng.choice(("global", "lsram")), True)

    def parameter(self) -> Variable | Region:
        name = self.name("p")
        if self.chance(0.3):
            elem, scope = self.rng.choice(STORAGE), self.rng.choice(SCOPES)
            if self.chance(0.15):
                return Region(name, elem.with_lanes(elem.native_lanes), 2, scope, False)
            return Region(name, elem, 8 if scope == "constant" else 32, scope, False)
        t = self.rng.choice([t for t in self.types if not (t.is_bfloat and t.is_vector and t.lanes != 16)])
        return Variable(name, t, self.mask_widths.get(t.lanes, 0) if t.is_mask else 0)

    def annotation(self, param: Variable | Region) -> str:
        if isinstance(param, Region):
            return f'S.ptr("{short(param.type)}", "{param.scope}")'
        return f"S.{short(param.type)}"

    def return_type(self) -> DataType | None:
        if self.chance(0.25):
            return None
        if self.chance(0.3):
            return self.rng.choice([t for t in STORAGE if not t.is_bfloat]).with_lanes(self.rng.choice(FLEXIBLE))
        fits = [
            t for t in self.types if not (t.is_mask and t.lanes > 32) and not (t.is_bfloat and t.lanes not in (1, 16))
        ]
        return self.rng.choice(fits)

    def block_with_return(self, returns: DataType | None, width: int) -> list[Stmt]:
        """A function body; one that returns a value writes no memory, as it may be called in any expression."""
        if returns is None:
            return self.block(self.rng.randint(2, 4))
        hidden = [r for r in self.scope.regions if r.writable]
        for region in hidden:
            region.writable = False
        self.scope.push()
        body = [s for _ in range(self.rng.randint(0, 3)) for s in self.statement()]
        if self.chance(0.3):
            early = Stmt([Clause("if {}:", [self.boolean(2)], [simple("return {}", self.gen(returns, 2, width))])])
            body.append(early)
        if self.chance(0.2):
            self.scope.push()
            head, args = self.loop_head()
            found = Stmt([Clause("if {}:", [self.boolean(2)], [simple("return {}", self.gen(returns, 2, width))])])
            self.scope.pop()
            body.append(Stmt([Clause(head, args, [found])]))
        body.append(simple("return {}", self.gen(returns, 3, width)))
        self.scope.pop()
        return body

    # ---------------------------------------------------------------------------------------------- the entry

    def entry(self) -> Function:
        self.scope = Scope()
        params: dict[str, str] = {}
        for t in STORAGE:
            name = f"in_{SHORT[t]}"
            params[name] = f'S.ptr("{short(t)}", "global")'
            self.scope.add(Region(name, t, IN_SIZE, "global", False, raw=True))
        for t in STORAGE:
            params[f"out_{SHORT[t]}"] = f'S.ptr("{short(t)}", "global")'
        for name, text in SCALARS.items():
            params[name] = f"S.{short(dtype(text))}"
            self.scope.add(Variable(name, dtype(text)))
        body = self.entry_body()
        return Function("@S.prim_func", f"k{self.seed}", params, "", body)

    def entry_body(self) -> list[Stmt]:
        mode = self.rng.choice(("return", "if", "tec_range", "all", "barrier"))
        head = [] if mode == "tec_range" else [simple("tid = S.get_local_id()")]
        self.scope.add(Variable("tid", INT32, fixed=True))
        for t in STORAGE:
            name = f"o_{SHORT[t]}"
            head.append(simple(f"{name} = out_{SHORT[t]} + tid * {OUT_SIZE}"))
            self.scope.add(Region(name, t, OUT_SIZE, "global", True))
        head += self.matched()
        self.size_left = self.rng.randint(6, 14)
        if mode == "barrier":
            return head + self.phases()
        self.scope.push()
        body = self.sequence(self.rng.randint(6, 14))
        if mode == "return":
            return [head[0], Stmt([Clause("if tid != 0:", [], [simple("return")])]), *head[1:], *body]
        if mode == "if":
            return [head[0], Stmt([Clause("if tid == 0:", [], [*head[1:], *body])])]
        if mode == "tec_range":
            return [Stmt([Clause("for tid in S.tec_range(0, 4):", [], [*head, *body])])]
        return head + body

    def matched(self) -> list[Stmt]:
        """Buffers over parameters of the entry."""
        made = []
        for t in self.rng.sample(STORAGE, 2) if self.chance(0.25) else ():
            name = self.name("b")
            if self.chance(0.5):
                shape = self.rng.choice(((16, 16), (4, 8, 8), (2, 128)))
                self.scope.add(Matrix(name, t, shape, False))
                made.append(simple(f"{name} = S.match_buffer(in_{SHORT[t]}, {shape})"))
            else:
                shape = self.rng.choice(((TECS, OUT_SIZE), (TECS, 4, OUT_SIZE // 4)))
                self.scope.add(Matrix(name, t, shape, True, "tid"))
                made.append(simple(f"{name} = S.match_buffer(out_{SHORT[t]}, {shape})"))
        return made

    def sequence(self, count: int) -> list[Stmt]:
        """Statements in the present frame, then its variables put where they are compared."""
        body: list[Stmt] = []
        for _ in range(count):
            body += self.macro() if self.chance(0.05) else self.statement()
        for variable in self.scope.frames[-1].variables[-8:]:
            body += self.observe(variable)
        return body

    def phases(self) -> list[Stmt]:
        """Work on memory all TECs share: each writes a part of its own, all read it after a barrier."""
        t = self.rng.choice([t for t in STORAGE if not t.is_bfloat])
        name, i = self.name("s"), self.name("i")
        self.scope.push()
        body = self.sequence(self.rng.randint(1, 4))
        self.scope.add(Variable(i, INT32, fixed=True))
        value = self.gen(t, 2)
        text = f'{name} = S.alloc((128,), "{t}", "shared")\nfor {i} in range(32):\n    {name}[tid * 32 + {i}] = {{}}\nS.barrier()'
        self.scope.frames[-1].variables = [v for v in self.scope.frames[-1].variables if v.name != i]
        self.scope.add(Region(name, t, 128, "shared", False))
        return [*body, simple(text, value), *self.sequence(self.rng.randint(3, 8)), simple("S.barrier()")]

    def macro(self) -> list[Stmt]:
        """A block as a macro: its arguments have the names of the variables they stand for."""
        name = f"m{len(self.made)}_{self.seed}"
        before = self.frozen
        self.frozen = True
        body = self.block(self.rng.randint(1, 3))
        self.frozen = before
        hygienic = self.chance(0.6)
        words = self.words(body)
        names = [name for name in self.scope.names() if name in words] if hygienic else []
        decorator = "@S.macro" if hygienic else "@S.macro(hygienic=False)"
        self.made.append(Function(decorator, name, dict.fromkeys(names, ""), "", body))
        return [simple(f"{name}({', '.join(names)})")]

    @staticmethod
    def words(body: list[Stmt]) -> set[str]:
        import re

        return set(re.findall(r"\w+", "\n".join(line for s in body for line in s.lines(""))))


def generate(seed: int) -> Program:
    return Generator(seed).program()


__all__ = ["Expr", "generate"]

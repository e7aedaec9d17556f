"""A whole random program: functions, macros, the entry, and how its TECs share the work."""

from __future__ import annotations

from random import Random

from compassc.ir.dtypes import INT32, STORAGE, DataType, dtype

from .scope import SHORT, Frame, Region, Scope, SubFunction, Variable, short
from .statements import FLEXIBLE, Statements
from .tree import Clause, Expr, Function, Program, Stmt, simple

IN_SIZE, OUT_SIZE, TECS = 256, 128, 4
SCALARS = {"n": "int32", "k": "int16", "u": "uint8", "b": "int8", "w": "uint32", "f": "float32", "h": "float16"}
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
            params.append(
                Region(self.name("p"), self.rng.choice(STORAGE), 64, self.rng.choice(("global", "lsram")), True)
            )
            self.scope.add(params[-1])
        self.size_left, self.can_alloc = 8, False
        width = self.mask_widths[returns.lanes] if returns is not None and returns.is_mask else 0
        body = self.block_with_return(returns, width)
        inline = self.rng.choice(("", "(is_inline=True)", "(is_inline=False)"))
        annotations = {p.name: self.annotation(p) for p in params}
        kind = f"S.{short(returns)}" if returns else ""
        self.made.append(Function(f"@S.prim_func{inline}", name, annotations, kind, body))
        self.functions.append(SubFunction(name, params, returns, width))
        self.can_alloc = True

    def parameter(self) -> Variable | Region:
        name = self.name("p")
        if self.chance(0.3):
            return Region(name, self.rng.choice(STORAGE), 32, self.rng.choice(("global", "global", "lsram")), False)
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
        self.scope.frames.append(Frame())
        body = [s for _ in range(self.rng.randint(0, 3)) for s in self.statement()]
        if self.chance(0.3):
            early = Stmt([Clause("if {}:", [self.boolean(2)], [simple("return {}", self.gen(returns, 2, width))])])
            body.append(early)
        body.append(simple("return {}", self.gen(returns, 3, width)))
        self.scope.frames.pop()
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
        self.size_left = self.rng.randint(6, 14)
        if mode == "barrier":
            return head + self.phases()
        self.scope.frames.append(Frame())
        body = self.sequence(self.rng.randint(6, 14))
        if mode == "return":
            return [head[0], Stmt([Clause("if tid != 0:", [], [simple("return")])]), *head[1:], *body]
        if mode == "if":
            return [head[0], Stmt([Clause("if tid == 0:", [], [*head[1:], *body])])]
        if mode == "tec_range":
            return [Stmt([Clause("for tid in S.tec_range(0, 4):", [], [*head, *body])])]
        return head + body

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
        self.scope.frames.append(Frame())
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
        names = [v.name for v in [*self.scope.variables, *self.scope.regions] if v.name in words] if hygienic else []
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

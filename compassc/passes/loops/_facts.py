"""A walk over statements that knows what holds where it is, and sums as data."""

from __future__ import annotations

from compassc.analysis.arith import Arith, Linear
from compassc.analysis.simplify import Simplifier
from compassc.analysis.statements import mutable_vars
from compassc.analysis.structure import variables
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.stmts import Body, PrimFunc
from compassc.ir.visit import Rewritten, StatementRewriter, rewrites

ZERO, ONE = IntImm(INT32, 0), IntImm(INT32, 1)


class Scoped(StatementRewriter):
    """A rewriter of statements with the facts of the loops and conditions around the place where it is."""

    def __init__(self, f: PrimFunc) -> None:
        super().__init__()
        self.facts = Arith(mutable_vars(f))
        self.simplify = Simplifier(self.facts).expr

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        self.facts.bind_value(s.var, s.value)
        return s

    @rewrites(S.For)
    def rewrite_for(self, s: S.For) -> Rewritten:
        return self.inside(s)

    def inside(self, s: S.For) -> S.For:
        """The loop with its body rewritten."""
        mark = self.facts.mark()
        self.enter(s)
        body = self.body(s.body)
        self.facts.release(mark)
        return s if body is s.body else s.replace(body=body)

    def enter(self, s: S.For) -> None:
        """Learn what holds in a loop; for one over the TECs that begins at the number of the TEC, too."""
        strided = isinstance(s.min, E.Call)
        start, step = (ZERO, ONE) if strided else (s.min, s.step)
        self.facts.bind_loop(s.loop_var, start, s.stop, step)

    @rewrites(S.IfThenElse)
    def rewrite_if(self, s: S.IfThenElse) -> Rewritten:
        then, orelse = self.under(s.condition, True, s.then_case), self.under(s.condition, False, s.else_case or ())
        return (
            s if then is s.then_case and orelse is (s.else_case or ()) else s.replace(then_case=then, else_case=orelse)
        )

    def under(self, cond: Expr, truth: bool, body: Body) -> Body:
        mark = self.facts.mark()
        self.facts.assume(cond, truth)
        made = self.body(body)
        self.facts.release(mark)
        return made


class Sum:
    """A whole number as a sum: `factors` of some variables, and the rest, which has none of them."""

    def __init__(self, factors: dict[Var, int], rest: Expr) -> None:
        self.factors, self.rest = factors, rest

    @classmethod
    def of(cls, e: Expr, loops: list[Var], facts: Arith) -> Sum | None:
        """The sum of an expression; None where it is no linear one of the variables of loops."""
        form = facts.linear(e)
        factors: dict[Var, int] = {}
        rest = Linear(const=form.const)
        for key, factor in form.terms.items():
            atom = facts.atoms[key]
            if isinstance(atom, Var) and atom in loops:
                factors[atom] = factor
            elif variables(atom) & set(loops):
                return None
            else:
                rest.terms[key] = factor
        return cls(factors, written(rest, facts))

    def at(self, values: dict[Var, Expr]) -> Expr:
        """The number where the variables have these values."""
        made = self.rest
        for var, factor in self.factors.items():
            made = Binary("add", made, Binary("mul", values[var], IntImm(INT32, factor)))
        return made


def written(form: Linear, facts: Arith) -> Expr:
    """A linear form as an expression."""
    made: Expr | None = None
    for key, factor in form.terms.items():
        atom = facts.atoms[key]
        term = atom if factor == 1 else Binary("mul", atom, IntImm(INT32, factor))
        made = term if made is None else Binary("add", made, term)
    constant = IntImm(INT32, form.const)
    if made is None:
        return constant
    return Binary("add", made, constant) if form.const else made

"""What type inference, scopes and fusion know of programs, for programs that ask."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.equal import structural_hash
from compassc.relay.expr import Constructor, Expr, Function, GlobalVar, Match, Pattern
from compassc.relay.infer import kinds, patterns
from compassc.relay.module import MAIN, IRModule
from compassc.relay.passes import make
from compassc.relay.passes._scopes import ATOMS, Scopes
from compassc.relay.passes.infer_type import ModuleDefinitions
from compassc.relay.types import Type, TypeKind
from compassc.relay.visit import post_order


def check_kind(t: Type, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type. ExpressionError naming the part that is of another kind than its place asks for; applications of
    defined types are held against the module's definitions."""
    return kinds.check_kind(t, ModuleDefinitions(mod) if mod is not None else None)


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """The cases that no clause takes, as patterns. The constructors of a type are those that the module defines."""
    module = mod if mod is not None else IRModule()

    def constructors(one: Constructor) -> Sequence[Constructor]:
        return module[one.belong_to].constructors

    return patterns.unmatched_cases(match, constructors)


def check_basic_block_normal_form(e: Expr) -> bool:
    """True where every value stands in the innermost scope that all its users are in. ExpressionError with the first one that
    does not."""
    scopes = Scopes(e, lambda _: False, True)
    wrong = [part for part in scopes.order if id(part) in scopes.lifted and not isinstance(part, ATOMS)]
    if wrong:
        raise ExpressionError(
            f"the program is not in basic block normal form: the scope of this expression should be lifted:\n{wrong[0]}",
            "run relay.transform.ToBasicBlockNormalForm()",
        )
    return True


def extract_fused_functions(mod: IRModule) -> dict[GlobalVar, Function]:
    """The kernels that fusion makes of `main`, by a variable that is named after their hash."""
    fused = make("FuseOps", 3)(make("SimplifyInference")(mod))
    found = [e for e in post_order(fused[MAIN]) if isinstance(e, Function) and e.attrs.get("Primitive")]
    named = {f"{structural_hash(f) & (1 << 64) - 1:016x}": f for f in found}
    return {GlobalVar(name): f for name, f in named.items()}

"""Error recovery: passes continue without the statements that failed, so that one run reports all mistakes."""

from __future__ import annotations

from compass_core.errors import CompassError, Span, flat, together
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.visit import StatementRewriter, walk_exprs
from compassc.pass_manager import load_pass

_MOST = 20


def all_errors(names: tuple[str, ...], module: S.IRModule, first: CompassError) -> CompassError:
    """`error`, which the first of the passes `names` raised, together with those that the passes find in the rest."""
    errors: list[CompassError] = []
    new = list(flat(first))
    while new and len(errors) < _MOST:
        errors += new
        rest = _without(module, {e.span for e in new if e.span is not None})
        if rest is None:
            break
        module, new = rest, []
        try:
            while names:
                module = load_pass(names[0]).run(module)
                names = names[1:]
        except CompassError as error:
            known = {(e.span, e.message) for e in errors}
            new = [e for e in flat(error) if (e.span, e.message) not in known]
        except Exception:  # noqa: BLE001  the module has holes now: whatever a pass makes of them says nothing
            break
    return together(sorted(errors, key=_place))


def _place(error: CompassError) -> tuple[str, int, int]:
    return (error.span.file, error.span.line, error.span.col) if error.span else ("", 0, 0)


def _without(module: S.IRModule, spans: set[Span]) -> S.IRModule | None:
    """The module without the statements at `spans` and those that use what they define; None when there are none."""
    drop = _Drop(spans)
    functions = tuple(drop.function(f) for f in module.functions)
    return module.replace(functions=functions) if drop.dropped else None


class _Drop(StatementRewriter):
    """Drops statements, and those that need them."""

    def __init__(self, spans: set[Span]) -> None:
        super().__init__()
        self.spans = spans
        self.missing: set[E.Var] = set()
        self.dropped = False

    def stmt(self, s: S.Stmt) -> S.Stmt | None:
        needs = any(type(e) is E.Var and e in self.missing for root in s.exprs() for e in walk_exprs(root))
        if s.span not in self.spans and not needs:
            return s.map(self.expr, self.body)
        self.dropped = True
        if isinstance(s, (S.Let, S.Assign)):
            self.missing.add(s.var)
        elif isinstance(s, (S.Alloc, S.AllocConst)):
            self.missing.add(s.buffer.data)
        return None

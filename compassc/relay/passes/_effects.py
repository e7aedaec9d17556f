"""Which expressions do more than to give a value."""

from __future__ import annotations

from collections.abc import Mapping

from compassc.relay.expr import Call, Constructor, Expr, Function, GlobalVar, Let, RefRead, RefWrite, Var
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.visit import children, post_order


class Effects:
    """Whether values of a module have effects: they read or write cells, call operators with a state, functions of other
    compilers, or functions that are not known. A function literal has none itself; calling it has those of its body."""

    def __init__(self, module: IRModule) -> None:
        self._functions: Mapping[str, Function] = {
            v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)
        }
        self._bound: dict[int, Expr] = {}
        self._impure: dict[int, bool] = {}
        self._calls: dict[int, bool] = {}

    def look_at(self, root: Expr) -> None:
        """Find which parts of a function have effects."""
        order = list(post_order(root))
        self._bound |= {id(e.var): e.value for e in order if isinstance(e, Let)}
        for e in order:
            self._impure[id(e)] = self._own(e) or (
                not isinstance(e, Function) and any(self._impure.get(id(c), False) for c in children(e))
            )

    def has(self, e: Expr) -> bool:
        """Whether computing an expression has effects, of a function that was looked at."""
        return self._impure[id(e)]

    def _own(self, e: Expr) -> bool:
        if isinstance(e, (RefRead, RefWrite)):
            return True
        return isinstance(e, Call) and self._called(e.op)

    def _called(self, callee: Expr) -> bool:
        """Whether calling something has effects."""
        if isinstance(callee, Op):
            return callee.stateful
        if isinstance(callee, Constructor):
            return False
        if isinstance(callee, Var) and id(callee) in self._bound:
            return self._called(self._bound[id(callee)])
        if isinstance(callee, GlobalVar) and callee.name_hint in self._functions:
            return self._called(self._functions[callee.name_hint])
        if not isinstance(callee, Function) or any(callee.attrs.get(a) for a in ("Compiler", "Extern")):
            return True
        if id(callee) not in self._calls:
            self._calls[id(callee)] = False  # a recursive call adds nothing
            body = list(post_order(callee.body))
            self._bound |= {id(e.var): e.value for e in body if isinstance(e, Let)}
            inner = {id(part) for e in body if isinstance(e, Function) for part in post_order(e.body)}
            self._calls[id(callee)] = any(self._own(e) for e in body if id(e) not in inner)
        return self._calls[id(callee)]

"""Give each value a name: A-normal form.

Before: any module; kernels stay as they are.
After: arguments, fields, conditions and results are variables, global names, operators or constructors. What is computed is
bound by `let` in the innermost scope that all its uses are in, in the order it is computed in. Names that were bound before
are kept.
"""

from __future__ import annotations

from compassc.relay.expr import Expr, Function, Let, Var
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._scopes import ATOMS, Scopes, rebuilt
from compassc.relay.visit import children, is_primitive

NAME = "ToANormalForm"
LEVEL = 1
REQUIRED = ()


def run(module: IRModule) -> IRModule:
    return on_functions(module, lambda f, _: _function(f))


def _function(f: Function) -> Function:
    made = expression(f, whole=True)
    assert isinstance(made, Function), "a function stays one"
    return made


def expression(root: Expr, whole: bool = False) -> Expr:
    """An expression in A-normal form. `whole`: it is a function of a module, which gets no name."""
    scopes = Scopes(root, is_primitive, lets=False)
    lets: dict[int, list[Let]] = {}
    others: dict[int, Let] = {}
    """Lets of other names of what has one already: they are bound when the new name is met, which is within its let."""
    for e in scopes.order:
        if isinstance(e, Let) and isinstance(e.value, ATOMS):
            others[id(e.var)] = e
        elif isinstance(e, Let):
            lets.setdefault(id(e.value), []).append(e)
    atoms: dict[int, Expr] = {}
    names = 0
    for e in scopes.order:
        waiting = lets.get(id(e), [])
        if isinstance(e, Let):
            atoms[id(e)] = atoms[id(e.body)]
        elif isinstance(e, ATOMS):
            atoms[id(e)] = e
            if id(e) in others:
                scopes.of[id(others[id(e)])].bindings.append((others[id(e)].var, others[id(e)].value))
        else:
            closed = e is not root and is_primitive(e)
            made = e if closed else rebuilt(e, [atoms[id(c)] for c in children(e)], scopes)
            if e is root and whole:
                return made
            scope = scopes.of[id(e)]
            if waiting and scopes.of[id(waiting[0])] is scope:
                v, waiting = waiting[0].var, waiting[1:]
            else:
                v, names = Var(f"x{names}"), names + 1
            scope.bindings.append((v, made))
            atoms[id(e)] = v
        for let in waiting:
            scopes.of[id(let)].bindings.append((let.var, atoms[id(e)]))
    return scopes.of[id(root)].around(atoms[id(root)])

"""Assignment to several targets: `a, b = e, f` is parallel, `a = b = e` computes e once.

All values are what they were before the first target is assigned. One that an earlier target of the statement changes is
therefore kept in a variable of its own, whatever it is: a number, vector, mask, pointer or tile, or a list of these.
"""

from __future__ import annotations

import ast
from typing import Any

from ...ir import exprs as E
from ...ir.visit import walk_exprs
from ..specs import AllocSpec, ConstSpec, MatchSpec, MetaVar
from ..tiles.tile import Stored, Tile, copied
from .assign import assign, assign_name
from .context import FunctionContext
from .errors import language_error
from .folding import is_stable
from .helpers import calls
from .values import BufferValue, PointerValue, Value, kind_name

_Pair = tuple[ast.expr, object]


def assign_chain(fp: FunctionContext, targets: list[ast.expr], node: ast.expr) -> None:
    """`a = b[i] = e`: e is computed once and assigned to the targets from left to right."""
    first = targets[0]
    value = fp.evaluator.eval_named(node)
    if isinstance(value, (AllocSpec, ConstSpec, MatchSpec)):
        if not isinstance(first, ast.Name):
            raise language_error("chained-assign", "storage needs a name of its own", "write one assignment per line")
        assign_name(fp, first.id, value)
        value, targets = fp.scope.look_up(first.id), targets[1:]
    elif not isinstance(value, MetaVar):
        value = fp.keep(value)
    for target in targets:
        for leaf, item in _pairs(target, value):
            assign(fp, leaf, item)


def assign_tuple(fp: FunctionContext, target: ast.Tuple | ast.List, node: ast.expr) -> None:
    """`a, b[i] = ...`: all values are computed before the targets are assigned, from left to right."""
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    if len(set(names)) != len(names):
        raise language_error("tuple-assign", "the same name is assigned twice in one tuple", "use different names")
    pairs = _pairs(target, fp.evaluator.eval_named(node))
    changes = _Changes(fp)
    changed = []
    for leaf, value in pairs:
        changed.append(changes.name_in(value))
        changes.add(leaf)
    if any(changed) and calls([value for _, value in pairs]):
        fp.helpers.settle()
    values = [_kept(fp, value, name) if name else value for (_, value), name in zip(pairs, changed)]
    for (leaf, _), value in zip(pairs, values):
        assign(fp, leaf, value)


def _pairs(target: ast.expr, value: Any) -> list[_Pair]:
    """The targets that are no tuples, with their values, in the order of the text."""
    if isinstance(target, ast.Starred):
        target = target.value
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    known = isinstance(value, MetaVar)
    value = value.value if known else value
    if isinstance(value, (Value, PointerValue, BufferValue)) or not hasattr(value, "__iter__"):
        raise language_error("tuple-assign", f"cannot unpack {kind_name(value)}", "give one value per name")
    items, targets = [MetaVar(item) for item in value] if known else list(value), target.elts
    starred = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
    if len(starred) > 1 or (len(items) != len(targets) if not starred else len(items) < len(targets) - 1):
        raise language_error(
            "tuple-assign", f"{len(targets)} targets for {len(items)} values", "give one value per name"
        )
    if starred:
        first, extra = starred[0], len(items) - len(targets) + 1
        items[first : first + extra] = [items[first : first + extra]]
    return [pair for t, item in zip(targets, items) for pair in _pairs(t, item)]


def _kept(fp: FunctionContext, value: object, name: str) -> object:
    return copied(value) if isinstance(value, Tile) else fp.keep(value, f"tmp_{name}")


class _Changes:
    """What the targets change that are assigned before a value is."""

    def __init__(self, fp: FunctionContext) -> None:
        self.fp = fp
        self.variables: dict[E.Var, str] = {}
        self.tiles: dict[object, str] = {}
        self.memory = ""  # the name of what memory is reached by

    def add(self, target: ast.expr) -> None:
        """A target is assigned."""
        element = isinstance(target, ast.Subscript)
        owner = target.value if isinstance(target, ast.Subscript) else target
        name = owner.id if isinstance(owner, ast.Name) else "item"
        old = self.fp.scope.local(name) if isinstance(owner, ast.Name) else None
        variable = old.base if isinstance(old, PointerValue) else old.expr if isinstance(old, Value) else None
        if isinstance(variable, E.Var) and (not element or isinstance(old, Value)):
            self.variables[variable] = name
        elif isinstance(old, Stored):
            self.tiles[old.storage.base] = name
        if element or variable in self.fp.addressed:
            self.memory = self.memory or name

    def name_in(self, value: object) -> str:
        """The name of something that was changed and that the value depends on; empty when there is none."""
        value = value.value if isinstance(value, MetaVar) else value
        if isinstance(value, (tuple, list)):
            return next(filter(None, map(self.name_in, value)), "")
        if isinstance(value, Tile):
            used = [name for base, name in self.tiles.items() if value.uses(base)]
            computed = () if isinstance(value, Stored) else (*self.variables.values(), self.memory)
            return next(filter(None, (*used, *computed)), "")
        if not isinstance(value, (Value, PointerValue)):
            return ""
        found = [self.variables[e] for e in walk_exprs(value.expr) if type(e) is E.Var and e in self.variables]
        if self.memory and not is_stable(value.expr, self.fp.addressed):
            found.append(self.memory)
        return found[0] if found else ""

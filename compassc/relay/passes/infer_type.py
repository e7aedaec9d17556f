"""Find the type of every expression, and write down annotations that are left out.

Before: any module.
After: each expression has its `checked_type`, each variable an annotation, each function its result. The module itself where
that was so before.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from compassc.relay.expr import Function, GlobalVar
from compassc.relay.infer import infer_functions
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.passes._functions import changed
from compassc.relay.types import GlobalTypeVar, TypeData

NAME = "InferType"
LEVEL = 0
REQUIRED = ()


class ModuleDefinitions:
    """What a module says of names."""

    def __init__(self, module: IRModule) -> None:
        self._functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)}
        self._types = {v.name_hint: t for v, t in module.type_definitions.items()}

    def function(self, name: str) -> Function | None:
        return self._functions.get(name)

    def type_definition(self, header: GlobalTypeVar) -> TypeData | None:
        return self._types.get(header.name_hint)


_typed: WeakKeyDictionary[IRModule, tuple[object, ...]] = WeakKeyDictionary()
"""What modules consisted of when they were given types: until that is another, they have them."""


def _parts(module: IRModule) -> tuple[object, ...]:
    return (*module.functions.values(), *map(id, module.type_definitions.values()))


def run(module: IRModule) -> IRModule:
    if _typed.get(module) == _parts(module):
        return module
    found = _inferred(module)
    _typed[found] = _parts(found)
    return found


def _inferred(module: IRModule) -> IRModule:
    functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)}
    found = infer_functions(functions, ModuleDefinitions(module))
    for v in module.functions:
        if v.name_hint in found:
            v.typed(found[v.name_hint].checked_type)
    if all(found[name] is f for name, f in functions.items()):
        return module
    made: dict[GlobalVar, BaseFunc] = {v: found.get(v.name_hint) or f for v, f in module.functions.items()}
    return changed(module, made)

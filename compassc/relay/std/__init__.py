"""Definitions that programs start from, as Relay text: lists, options and trees (`prelude`), natural numbers (`nat`), lazy
gradients (`gradient`), memory (`core`)."""

from __future__ import annotations

from pathlib import Path

from compass_core.errors.suggest import help_for
from compassc.ir.errors import ExpressionError
from compassc.relay.module import IRModule
from compassc.relay.passes import infer_type
from compassc.relay.text.program import parse_module

_FOLDER = Path(__file__).parent


def import_file(module: IRModule, name: str) -> IRModule:
    """Have the definitions of a file in a module, once; gives the module with types. ExpressionError for a name that no file has."""
    known = sorted(path.name for path in _FOLDER.glob("*.rly"))
    if name not in known:
        raise ExpressionError(f"there is no standard file '{name}'", help_for(name, known, "files"))
    if name not in module.imported:
        parse_module((_FOLDER / name).read_text(encoding="utf-8"), name, module)
        module.imported.add(name)
    typed = infer_type.run(module)
    for v, f in typed.functions.items():
        module.functions.put(v, f)
    typed.imported.update(module.imported)
    return typed


class Prelude:
    """A module with the standard definitions, whose functions are attributes: `prelude.map` is the variable of `@map`."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        import_file(self.mod, "prelude.rly")
        for name in _FUNCTIONS:
            setattr(self, name, self.mod.get_global_var(name))


_FUNCTIONS = """id compose flip hd tl nth update map foldl foldr foldr1 concat filter zip rev map_accuml map_accumr unfoldl unfoldr
    sum length tmap size iterate""".split()

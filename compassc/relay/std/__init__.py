"""Definitions that programs start from, as Relay text: lists, options and trees (`prelude`), natural numbers (`nat`), lazy
gradients (`gradient`), memory (`core`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from compass_core.errors.suggest import help_for
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Constructor, GlobalVar
from compassc.relay.module import IRModule
from compassc.relay.passes import infer_type
from compassc.relay.std import tensor_array
from compassc.relay.text.program import parse_module
from compassc.relay.types import Dim, GlobalTypeVar

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

    # Arrays of tensors (`tensor_array`) are defined for a type of elements when one of these names is asked for.

    def get_name(self, canonical: str, dtype: str) -> str:
        """The name of a type (`tensor_t`), constructor or function for a type of elements."""
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The variable of a type: `tensor_t`."""
        self._define(dtype)
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """The variable of a function: `tensor_array_read`."""
        self._define(dtype)
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """The constructor of a type: `tensor_nil`, `tensor0` to `tensor6`. ExpressionError for other names."""
        self._define(dtype)
        name = self.get_name(canonical, dtype)
        known = {c.name_hint: c for c in self.mod[self.mod.get_global_type_var(ty_name)].constructors}
        if name not in known:
            raise ExpressionError(f"{ty_name} has no constructor '{name}'", help_for(name, list(known), "constructors"))
        return known[name]

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """The constructor of tensors: `tensor_nil`, `tensor0` to `tensor6`."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    # Arrays of tensors of one shape are defined by `StaticTensorArrayOps`.

    def get_name_static(self, canonical: str, dtype: str, shape: Sequence[Dim]) -> str:
        """The name of a type (`tensor_t`), constructor or function for tensors of one shape."""
        ending = f"{dtype}_{tensor_array.suffix(shape)}"
        return f"static_tensor_{ending}_t" if canonical == "tensor_t" else f"{canonical}_{ending}"

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Dim]) -> GlobalTypeVar:
        """The variable of the type of tensors of one shape."""
        return self.mod.get_global_type_var(self.get_name_static(canonical, dtype, shape))

    def get_global_var_static(self, canonical: str, dtype: str, shape: Sequence[Dim]) -> GlobalVar:
        """The variable of a function: `tensor_array`, `tensor_array_read`, `_write`, `_scatter`, `_stack`, `_gather`,
        `_concat` and `_unstack` (where tensors have a first dimension), `tensor_get_data`."""
        return self.mod.get_global_var(self.get_name_static(canonical, dtype, shape))

    def get_tensor_ctor_static(self, canonical: str, dtype: str, shape: Sequence[Dim]) -> Constructor:
        """The constructor of tensors of one shape: `tensor_nil`, `tensor_constructor`."""
        name, header = self.get_name_static(canonical, dtype, shape), self.get_type_static("tensor_t", dtype, shape)
        return next(c for c in self.mod[header].constructors if c.name_hint == name)

    def _define(self, dtype: str) -> None:
        known = str(data_type(dtype))
        _define(self.mod, f"tensor_array_{known}", lambda: tensor_array.definitions(known))


class StaticTensorArrayOps:
    """Arrays of tensors of one type of elements and one shape, for a prelude."""

    def __init__(self, prelude: Prelude, dtype: str, shape: Sequence[Dim]) -> None:
        self.prelude, self.dtype, self.shape = prelude, str(data_type(dtype)), tuple(shape)

    def register(self) -> None:
        """Define the type and its functions in the module of the prelude, once, and the types of what they give."""
        for shape in tensor_array.related(self.shape):
            name = self.prelude.get_name_static("tensor_t", self.dtype, shape)
            _define(self.prelude.mod, name, partial(tensor_array.fixed_type, self.dtype, shape))
        name = self.prelude.get_name_static("tensor_array", self.dtype, self.shape)
        _define(self.prelude.mod, name, lambda: tensor_array.fixed_definitions(self.dtype, self.shape))


def _define(module: IRModule, name: str, text: Callable[[], str]) -> None:
    """Have the definitions of a text in a module, once."""
    if name not in module.imported:
        parse_module(text(), name, module)
        module.imported.add(name)


_FUNCTIONS = """id compose flip hd tl nth update map foldl foldr foldr1 concat filter zip rev map_accuml map_accumr unfoldl unfoldr
    sum length tmap size iterate""".split()

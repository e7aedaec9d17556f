"""Supplies of names that are not taken yet, and the styles of names in C (`tvm.ir.supply`, `tvm.relay.backend.name_transforms`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compass_core.errors import CompassError
from compassc.relay.expr import GlobalVar
from compassc.relay.module import IRModule

PREFIX = "tvmgen_default"
"""The prefix of names of a module that says none (attribute `mod_name`)."""


def _refused(what: str) -> CompassError:
    return CompassError(what, code="input")


class NameSupply:
    """Names, each given once. With a prefix, names are PREFIX_NAME unless `add_prefix` is False; dots become underscores."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._numbers: dict[str, int] = {}

    def _full(self, name: str, add_prefix: bool) -> str:
        full = f"{self.prefix}_{name}" if add_prefix and self.prefix else name
        return full.replace(".", "_")

    def fresh_name(self, name: str, add_prefix: bool = True) -> str:
        """The name, with a number behind it where it is taken; it is taken from then on."""
        full = self._full(name, add_prefix)
        found = full
        while found in self._numbers:
            self._numbers[full] += 1
            found = f"{full}_{self._numbers[full]}"
        self._numbers[found] = 0
        return found

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """The name, which is taken from then on."""
        full = self._full(name, add_prefix)
        self._numbers.setdefault(full, 0)
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether a name is taken."""
        return self._full(name, add_prefix) in self._numbers


class GlobalVarSupply:
    """Global variables with names of a supply: of its own, a given one, or one in which the names of modules are taken."""

    def __init__(self, value: NameSupply | IRModule | Sequence[IRModule] | None = None) -> None:
        self._known: dict[str, GlobalVar] = {}
        if value is None or isinstance(value, NameSupply):
            self.name_supply = value or NameSupply()
            return
        modules = [value] if isinstance(value, IRModule) else list(value)
        prefix = next((str(m.attrs["mod_name"]) for m in modules[:1] if m.attrs and "mod_name" in m.attrs), PREFIX)
        self.name_supply = NameSupply(prefix)
        for module in modules:
            for v in module.functions:
                self.reserve_global(v, allow_conflict=True)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A new variable."""
        found = GlobalVar(self.name_supply.fresh_name(name, add_prefix))
        self._known[found.name_hint] = found
        return found

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of a name, the same one each time."""
        full = self.name_supply.reserve_name(name, add_prefix)
        return self._known.setdefault(full, GlobalVar(full))

    def reserve_global(self, var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take a variable with its name. CompassError where the name is taken, unless that is allowed."""
        if not allow_conflict and var.name_hint in self._known:
            raise _refused(f"GlobalVar {var.name_hint} conflicts by name in this supply")
        self.name_supply.reserve_name(var.name_hint, False)
        self._known[var.name_hint] = var


# ------------------------------------------------------------------------------------------------------------------ styles

_MARK = "TVM"


def _styled(what: str, style: Callable[[str], str]) -> Callable[[str], str]:
    def styled(original_name: str) -> str:
        if not original_name:
            raise _refused(f"{what} name is empty")
        if not original_name.startswith(_MARK):
            raise _refused(f"{what} not {_MARK} prefixed")
        return style(original_name)

    return styled


def _words(name: str) -> str:
    """TVM, then each word with a capital; what is no letter separates words."""
    made, capital = _MARK, False
    for c in name[len(_MARK) :]:
        if c == "_":
            capital = True
        elif c.isalpha():
            made += c.upper() if capital else c.lower()
            capital = False
    return made


to_c_function_style = _styled("Function", _words)
to_c_function_style.__doc__ = (
    "A name as functions have it: `TVM_woof_moo` is TVMWoofMoo. CompassError without TVM in front."
)
to_c_variable_style = _styled("Variable", str.lower)
to_c_variable_style.__doc__ = "A name as variables have it, in small letters. CompassError without TVM in front."
to_c_constant_style = _styled("Constant", str.upper)
to_c_constant_style.__doc__ = "A name as constants have it, in capitals. CompassError without TVM in front."


def prefix_name(names: str | Sequence[str]) -> str:
    """TVM_NAME_NAME. CompassError for no names and empty ones."""
    return _joined("TVM", names)


def prefix_generated_name(names: str | Sequence[str]) -> str:
    """TVMGen_NAME_NAME. CompassError for no names and empty ones."""
    return _joined("TVMGen", names)


def _joined(prefix: str, names: str | Sequence[str]) -> str:
    if not names:
        raise _refused("Name is empty" if isinstance(names, str) else "Name segments empty")
    parts = [names] if isinstance(names, str) else list(names)
    if not all(parts):
        raise _refused("Name segment is empty")
    return "_".join([prefix, *parts])


def sanitize_name(original_name: str) -> str:
    """A name with an underscore for each character that is no letter and no digit. CompassError for an empty one."""
    if not original_name:
        raise _refused("Name is empty")
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in original_name)

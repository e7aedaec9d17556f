"""Code generators by target kind: the one of kind K is the global function `target.build.K(module, target)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from compass_runtime.errors import RuntimeValueError
from compass_runtime.packed import get_global_func, list_global_func_names, register_func

if TYPE_CHECKING:
    from compass_runtime.module import Module

    Generator = Callable[..., Module]

PREFIX = "target.build."


@overload
def register_code_generator(kind: str, function: None = None) -> Callable[[Generator], Generator]: ...


@overload
def register_code_generator(kind: str, function: Generator) -> Generator: ...


def register_code_generator(kind: str, function: Generator | None = None) -> object:
    """Makes a generator known; without `function` it is a decorator. A kind has one generator."""
    return register_func(PREFIX + kind) if function is None else register_func(PREFIX + kind, function)


def code_generator(kind: str) -> Generator:
    """The generator of a kind. RuntimeValueError naming the kinds there are when it has none."""
    found = get_global_func(PREFIX + kind, allow_missing=True)
    if found is None:
        raise RuntimeValueError(
            f"there is no code generator for the target kind '{kind}': it is not enabled",
            code="no-code-generator",
            help=f"known kinds: {', '.join(kinds()) or 'none; import compassc.dsl'}",
        )
    return found.body


def kinds() -> list[str]:
    """The target kinds that have a generator."""
    return [name.removeprefix(PREFIX) for name in list_global_func_names() if name.startswith(PREFIX)]

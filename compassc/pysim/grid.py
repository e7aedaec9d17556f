"""Which kernels run on all cores: those that ask for their group."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..language.functions import Macro, PyPrimFunc, captured

_GRID = frozenset(("get_group_id", "get_num_groups"))


def asks_for_group(func: Callable[..., object]) -> bool:
    """Whether the code of a kernel, or of functions that it calls by global or enclosing names, names an operation of the
    grid, as the compiled kernel's does."""
    seen: set[object] = set()
    todo: list[Callable[..., object]] = [func]
    while todo:
        one = todo.pop()
        plain = inspect.unwrap(getattr(one, "py_func", one))
        if not inspect.isfunction(plain) or plain in seen:
            continue
        seen.add(plain)
        code = plain.__code__
        names = {*code.co_names, *code.co_freevars}
        if names & _GRID:
            return True
        todo += [found for name in names if isinstance(found := captured(plain, name), (PyPrimFunc, Macro))]
    return False

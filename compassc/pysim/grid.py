"""Which kernels run on all cores: those that ask for their group."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache

_GRID = frozenset(("get_group_id", "get_num_groups"))


@lru_cache(maxsize=256)
def asks_for_group(func: Callable[..., object]) -> bool:
    """Whether the code of a kernel, or of functions that it calls by global or enclosing names, names an operation of the
    grid, as the compiled kernel's does."""
    seen: set[object] = set()
    todo = [func]
    while todo:
        one = todo.pop()
        plain = inspect.unwrap(getattr(one, "py_func", one))
        code = getattr(plain, "__code__", None)
        if code is None or code in seen:
            continue
        seen.add(code)
        names = {*code.co_names, *code.co_freevars}
        if names & _GRID:
            return True
        known = {**plain.__globals__, **inspect.getclosurevars(plain).nonlocals}
        todo += [known[name] for name in names if name in known and (hasattr(known[name], "py_func"))]
    return False

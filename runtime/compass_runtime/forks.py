"""State that a forked child must recreate: a lock held by another thread of the parent would never be released."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable

_locks: weakref.WeakKeyDictionary[object, tuple[str, ...]] = weakref.WeakKeyDictionary()
_others: list[Callable[[], None]] = []


def renew_locks(owner: object, *names: str) -> None:
    """The attributes of `owner`, a module or an object, that are new locks in every child."""
    _locks[owner] = names


def in_children(function: Callable[[], None]) -> None:
    """Calls the function in every forked child, before the program goes on there."""
    _others.append(function)


def _renew() -> None:
    for owner, names in list(_locks.items()):
        for name in names:
            setattr(owner, name, threading.Lock())
    for function in _others:
        function()


os.register_at_fork(after_in_child=_renew)

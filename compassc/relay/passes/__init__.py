"""Passes on Relay modules: one file each, found by its name.

A pass has a constant `NAME`, its level `LEVEL` (a `Sequential` leaves out those above the level of its context), the passes that
it needs before it (`REQUIRED`), a docstring whose first line says what it does, and `run(module, **options) -> module`, which
gives the module itself when it changes nothing. Passes keep what a program computes: bit for bit where they only move or
share calls, within rounding where the docstring says that products are put together otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from compassc.pass_manager import Folder, load_pass
from compassc.pass_manager.context import Pass

if TYPE_CHECKING:
    from compassc.relay.module import IRModule


def _text(module: IRModule, functions: tuple[str, ...] = ()) -> str:
    """The module's text, of the named functions only when there are names."""
    if not functions:
        return module.astext()
    return "\n".join(f"def @{v.name_hint} {f!r}" for v, f in module.functions.items() if v.name_hint in functions)


def _verify(module: IRModule) -> None:
    from compassc.relay.passes import infer_type

    infer_type.run(module)


_LAYOUTS_OF_SEARCHES = ("AutoSchedulerLayoutRewrite", "MetaScheduleLayoutRewrite")
FOLDER: Folder[IRModule] = Folder(__name__, _text, _verify, absent=_LAYOUTS_OF_SEARCHES)


class RelayPass(Pass):
    """A pass of this folder with its options."""

    built_in = True


def make(name: str, *args: object, **options: object) -> RelayPass:
    """A pass by its name, to be called with modules. UsageError for names that are not known, TypeError for options that the
    pass does not have."""
    module = load_pass(name, FOLDER)
    bound = _options_of(module.run).bind(*args, **options)
    return RelayPass(
        lambda given: module.run(given, *bound.args, **bound.kwargs), module.NAME, module.LEVEL, module.REQUIRED
    )


@cache
def _options_of(run: Callable[..., object]) -> inspect.Signature:
    """What a pass takes beside a module."""
    return inspect.signature(partial(run, None))

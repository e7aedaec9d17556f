"""Choices of kernels that decide how long they take, and nothing else: made by an estimate, or by the tuner.

A kernel's builder asks `choose` for one of several options. Tuning records say what was found best for layers like these;
`compassc.tuning` asks with `deciding` what there is to be chosen, and for kernels with other choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeVar

from compass_core.dataclass import dataclass
from compassc import services
from compassc.graph import Layer, LayerError
from compassc.layers.machine import told_target

T = TypeVar("T")
OFFERED = 48
"""Options of a choice that are told, those that are estimated best."""


@dataclass
class Decisions:
    """What is wanted, an option by the name of the choice, and what there was to choose from, estimated best first."""

    wanted: Mapping[str, str] = field(default_factory=dict)
    offered: dict[str, list[str]] = field(default_factory=dict)


_decisions: ContextVar[Decisions | None] = ContextVar("decisions", default=None)


def choose(name: str, options: Iterable[T], cost: Callable[[T], Any], spell: Callable[[T], str]) -> T | None:
    """One of the options: that of least estimated cost, unless another one is wanted; None where there are none.

    LayerError when none is spelled as wanted.
    """
    decisions = _decisions.get()
    if decisions is None:
        return min(options, key=cost, default=None)
    ranked = sorted(options, key=cost)
    decisions.offered[name] = [spell(option) for option in ranked[:OFFERED]]
    wanted = decisions.wanted.get(name)
    if wanted is None:
        return ranked[0] if ranked else None
    found = next((option for option in ranked if spell(option) == wanted), None)
    if found is None:
        raise LayerError(f"there is no {name} {wanted}")
    return found


def wanted(name: str) -> str | None:
    """The option of a choice that is wanted, if one is."""
    decisions = _decisions.get()
    return None if decisions is None else decisions.wanted.get(name)


def is_asked() -> bool:
    """Whether somebody asks what there is to be chosen."""
    return _decisions.get() is not None


@contextmanager
def deciding(wanted: Mapping[str, str] | None = None) -> Iterator[Decisions]:
    """Within it, kernels are made as wanted, and what there is to be chosen is noted."""
    token = _decisions.set(Decisions(wanted or {}))
    try:
        made = _decisions.get()
        assert made is not None
        yield made
    finally:
        _decisions.reset(token)


@contextmanager
def recorded(layers: Sequence[Layer]) -> Iterator[None]:
    """Within it, choices are those that are best on record for these layers."""
    wanted = services.best_choices(layers, told_target()) if _decisions.get() is None and told_target() else None
    if wanted is None:
        yield
        return
    with deciding(wanted):
        yield

"""The modules that declare operators, loaded when the first operator is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

FAMILIES = "elementwise broadcast reduction shapes slices creation indexing sorting convolution linear pooling normalisation padding resizing image quantised vision spectra dynamic random annotations"
MODULES: tuple[str, ...] = (*(f"ops.{name}" for name in FAMILIES.split()), "qnn.lowering", "qnn.integer_rules")
"""Modules of this package, by name: those of operators, and what quantised ones are lowered to and made of."""


@cache
def load() -> None:
    """Have every operator declared."""
    for name in MODULES:
        import_module(f"compassc.relay.{name}")

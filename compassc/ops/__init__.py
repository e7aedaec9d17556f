"""Declared operations: one declaration per operation, everything else derived from it."""

from .core import Op, get, load

__all__ = ["Op", "get", "load"]

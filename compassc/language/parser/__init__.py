"""The kernel parser: Python source to IR."""

from .module import parse

__all__ = ["parse"]

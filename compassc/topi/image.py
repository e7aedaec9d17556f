"""Operators of pictures, under one name."""

from compassc.operators.image import resize2d

__all__ = ["resize2d"]

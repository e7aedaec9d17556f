"""`tvm.topi.random`: random numbers by keys."""

from __future__ import annotations

from collections.abc import Sequence

from ...te.tensor import Tensor
from .calls import several

__all__ = ["multinomial", "normal", "threefry_generate", "threefry_split", "uniform"]


def threefry_generate(gen: Tensor, out_shape: Sequence[int]) -> list[Tensor]:
    """The next key, and random words."""
    return several("random.threefry_generate", gen, [int(n) for n in out_shape])


def threefry_split(gen: Tensor) -> list[Tensor]:
    """Two keys whose random numbers have nothing to do with each other."""
    return several("random.threefry_split", gen)


def uniform(gen: Tensor, low: Tensor, high: Tensor, out_shape: Sequence[int], out_dtype: str) -> list[Tensor]:
    """The next key, and random numbers between two."""
    return several("random.uniform", gen, [int(n) for n in out_shape], out_dtype, low, high)


def normal(gen: Tensor, mean: Tensor, scale: Tensor, out_shape: Sequence[int], out_dtype: str) -> list[Tensor]:
    """The next key, and random numbers around a mean."""
    return several("random.normal", gen, [int(n) for n in out_shape], out_dtype, mean, scale)


def multinomial(gen: Tensor, probs: Tensor, num_samples: int) -> list[Tensor]:
    """The next key, and places by their probabilities."""
    return several("random.multinomial", gen, probs, num_samples=num_samples)

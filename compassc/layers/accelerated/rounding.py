"""Where the AIFF rounds as a layer is defined to.

A layer's result is `v * scale / 2^shift` of a sum v, rounded to the nearest integer, in the middle of two to the even one,
and limited. The unit's is `(v * factor + 2^(shift-1)) >> shift` (docs/aiff.md). These are the same, except where

* v lies in the middle of two results: the reading `half-up` is that the unit takes the larger one, which is the layer's only
  when it is even,
* the result does not fit int8: the reading `clamp` is that it is limited to -128..127.

Which sums there can be is known: inputs are bytes, weights are constants.
"""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple
from compassc.graph import LayerError

FACTOR_BITS, LARGEST_SHIFT = 15, 31
LOW, HIGH = -128, 127
INT32_MAX = 2**31 - 1


class Sums(NamedTuple):
    """The smallest and largest sum with its bias."""

    low: int
    high: int


class Scaling(NamedTuple):
    """Factor and rounding shift of the unit, and the assumptions (`compass_core.aiff.rules`) that its results rest on."""

    factor: int
    shift: int
    assumed: frozenset[str]


def scaling(
    scale: int, shift: int, sums: Sums, limits: tuple[int, int], rectified: bool, allowed: frozenset[str]
) -> Scaling:
    """The unit's scaling that gives a layer's results for all sums. `limits`: of the layer's results; `rectified`: negative
    ones are 0; `allowed`: assumptions that may be made. LayerError says where the two differ."""
    factor, by = _registers(scale, shift)
    low, high = ((v * factor + (1 << (by - 1))) >> by for v in sums)
    if max(-low, high) > INT32_MAX:
        raise LayerError(f"its scaled sums reach {max(-low, high)}, which does not fit 32 bits")
    used = {"half-up"} if _ties(factor, by, sums, limits) else set()
    if rectified:
        used.add("relu")
        low, high = max(low, 0), max(high, 0)
    if low < LOW or high > HIGH:
        used.add("clamp")
        low, high = max(low, LOW), min(high, HIGH)
    if low < limits[0] or high > limits[1]:
        raise LayerError(f"it limits results to {limits[0]}..{limits[1]}, the unit to {LOW}..{HIGH}")
    if missing := used - allowed:
        names = ",".join(sorted(missing | (used & allowed)))
        raise LayerError(f"{_why(missing, sums)}; COMPASS_AIFF_ASSUME={names} takes it on trust")
    return Scaling(factor, by, frozenset(used))


def _why(missing: set[str], sums: Sums) -> str:
    reasons = {
        "clamp": f"sums from {sums.low} to {sums.high} have results that int8 does not hold",
        "half-up": "some sums lie in the middle of two results",
        "relu": "negative results are 0",
    }
    return f"what the unit does is not proven where {', and where '.join(reasons[name] for name in sorted(missing))}"


def _registers(scale: int, shift: int) -> tuple[int, int]:
    """The same quotient with a factor of 15 bits and a shift from 1."""
    factor, by = scale, shift
    while by < 1 and factor < 1 << FACTOR_BITS:
        factor, by = factor * 2, by + 1
    while (factor >= 1 << FACTOR_BITS or by > LARGEST_SHIFT) and factor % 2 == 0 and by > 1 and factor:
        factor, by = factor // 2, by - 1
    if not 0 < factor < 1 << FACTOR_BITS or not 1 <= by <= LARGEST_SHIFT:
        raise LayerError(f"its scale {scale} / 2^{shift} is no factor of {FACTOR_BITS} bits with a shift of 1 to 31")
    return factor, by


def _ties(factor: int, shift: int, sums: Sums, limits: tuple[int, int]) -> bool:
    """Whether a sum may lie in the middle of two results. LayerError where the larger one is not the layer's."""
    odd, twos = factor, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    if twos >= shift:
        return False
    step = 1 << (
        shift - 1 - twos
    )  # sums in the middle are its odd multiples; their results are odd multiples of odd / 2
    first, last = -(-sums.low // step) | 1, sums.high // step
    if first > last:
        return False
    nearest = 2 * (HIGH + 1) // odd + 2  # beyond these multiples both results are limited to the same
    for multiple in range(max(first, -nearest | 1), min(last, nearest) + 1, 2):
        larger = (multiple * odd + 1) >> 1
        if larger % 2 and _limited(larger, limits) != _limited(larger - 1, limits):
            raise LayerError(
                f"the sum {multiple * step} lies in the middle of {larger - 1} and {larger}, where it takes the even one; "
                "what the unit takes is not proven"
            )
    return True


def _limited(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])

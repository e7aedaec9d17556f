"""Functions of reals for vectors of float32 on the host, in C: where the C library would be called lane by lane.

The polynomials were fitted here, by least squares that weigh what is furthest from the function. Results are within 2 units of the
last place of the exact ones; infinities and NaN are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

EXP = (0.5, 0.1666666567325592, 0.04166628047823906, 0.00833350419998169, 0.0013945753453299403, 0.0001978926156880334)
"""(exp(r) - 1 - r) / r^2 for |r| up to log(2) / 2."""
ERF = (
    0.128379225730896, -0.37612637877464294, 0.11283782124519348, -0.0268654003739357, 0.00522094639018178,
    -0.0008482838748022914, 0.000112570145574864, -9.641693395678885e-06,
)  # fmt: skip
"""erf(x) / x - 1 of x^2 up to 1."""
ERFC = (
    5.364941120147705, 4.418160915374756, 0.9237509965896606, 0.016466040164232254, -0.003570288885384798,
    0.0007299241842702031, -0.00013829187082592398, 2.144560858141631e-05,
)  # fmt: skip
"""-log(1 - erf(x)) of x - 2, for x from 1 to 4, behind which erf is 1."""
TANH = (
    -0.33333325386047363, 0.133329838514328, -0.05392095446586609, 0.02157106250524521, -0.007883314043283463,
    0.0018956693820655346,
)  # fmt: skip
"""(tanh(x) - x) / x^3 of x^2 up to 0.49."""


def _polynomial(x: str, factors: Sequence[float]) -> str:
    """A polynomial by Horner's scheme, whose steps are a product and a sum at once."""
    text = f"{factors[-1].hex()}f"
    for factor in reversed(factors[:-1]):
        text = f"({text} * {x} + {factor.hex()}f)"
    return text


_EXP = f"""{{
  V at = x > 0x1.66p+6f ? (V)0x1.66p+6f : x < -0x1.a4p+6f ? (V)-0x1.a4p+6f : x;
  V turns = at * 0x1.715476p+0f + 0x1.8p+23f;
  V n = turns - 0x1.8p+23f;
  V r = (at - n * 0x1.62e400p-1f) - n * 0x1.7f7d1cp-20f;
  I k = (I)turns - 0x4b400000, half = k >> 1;
  V p = {_polynomial("r", EXP)} * (r * r) + r + 1.0f;
  return p * (V)((half + 127) << 23) * (V)((k - half + 127) << 23);
}}"""
_ERF = f"""{{
  V a = (V)((I)x & 0x7fffffff), s = x * x, near = x + x * {_polynomial("s", ERF)};
  V at = a > 4.0f ? (V)2.0f : a - 2.0f;
  V far = 1.0f - exp_V(-{_polynomial("at", ERFC)});
  return a < 1.0f ? near : (V)((I)far | ((I)x & (I)(int32)0x80000000));
}}"""
_TANH = f"""{{
  V a = (V)((I)x & 0x7fffffff), s = x * x, near = x + x * s * {_polynomial("s", TANH)};
  V far = 1.0f - 2.0f / (exp_V(a + a) + 1.0f);
  return (V)((I)(a < 0.7f ? near : far) | ((I)x & (I)(int32)0x80000000));
}}"""
FUNCTIONS = {"exp": _EXP, "erf": _ERF, "tanh": _TANH}
"""By names of operations: bodies that take `x` of a type V, with whole numbers I of its size."""


def texts_of(op: str, vector: str, whole: str) -> dict[str, str]:
    """The functions that an operation needs for a type of vectors, by their names: `exp_float32x16`."""
    found = texts_of("exp", vector, whole) if op != "exp" else {}
    body = FUNCTIONS[op].replace("exp_V", f"exp_{vector}")
    for short, name in (("V", vector), ("I", whole)):
        body = body.replace(f"({short})", f"({name})").replace(f"  {short} ", f"  {name} ")
    found[f"{op}_{vector}"] = f"INLINE {vector} {op}_{vector}({vector} x) {body}"
    return found

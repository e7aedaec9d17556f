"""What to write in a kernel in the place of Python's functions, which know nothing of values of the run.

`ADVICE` has the names that people who know Python, `math`, NumPy or PyTorch try first. `{0}`, `{1}` stand for what the call
was given, as it is written in the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from .source import is_user_file

_SAME = "abs exp log sqrt rsqrt sin cos tanh erf ceil floor rint isnan isinf isfinite exp2".split()
_EXTREMES = (
    "S.{f}(a, b) takes two; of more, S.{f}(S.{f}(a, b), c); of the lanes of a vector, S.vrp{f}(v)[0]; "
    "of memory, a loop that keeps the best so far"
)
_SUM = "add in a loop: `total = total + p[i]`; S.vrpadd(v)[0] adds the lanes of a vector"
_STORAGE = "storage is S.alloc(shape, dtype, scope), with dimensions S.alloc_buffer; S.vbcast fills a vector"
_SIZE = "a pointer has no size of its own: give the kernel a parameter for it, as in n: S.i32"
_LIST = "values of the run lie in memory or in variables: subscript in a `for i in range(n)` loop"
_MIN, _MAX = _EXTREMES.format(f="min"), _EXTREMES.format(f="max")

ADVICE: dict[str, str] = {
    **{name: f"write S.{name}({{0}})" for name in _SAME},
    **dict.fromkeys(("fabs", "absolute"), "write S.abs({0})"),
    **dict.fromkeys(("round", "around", "round_"), "write S.rint({0}); S.i32(...) of it makes an integer"),
    **dict.fromkeys(("trunc", "fix"), "write S.i32({0}), which drops the fraction"),
    **dict.fromkeys(("pow", "power", "float_power"), "write S.pow({0}, {1})"),
    "square": "write {0} * {0}",
    "tan": "write S.sin({0}) / S.cos({0})",
    "expm1": "write S.exp({0}) - 1.0",
    "log2": "write S.log({0}) * 1.4426950408889634",
    "log10": "write S.log({0}) * 0.4342944819032518",
    "log1p": "write S.log(1.0 + {0})",
    "sigmoid": "write 1.0 / (1.0 + S.exp(-{0}))",
    "hypot": "write S.sqrt({0} * {0} + {1} * {1})",
    "reciprocal": "write 1.0 / {0}",
    "int": "write S.i32({0})",
    "float": "write S.fp32({0})",
    "bool": "compare: {0} != 0",
    "complex": "there are no complex numbers; keep two variables",
    "len": _SIZE,
    **dict.fromkeys(("shape", "size", "ndim"), _SIZE),
    "divmod": "write {0} // {1} and {0} % {1}",
    **dict.fromkeys(("mod", "remainder", "fmod"), "write {0} % {1} for integers"),
    **dict.fromkeys(("min", "amin"), _MIN),
    **dict.fromkeys(("max", "amax"), _MAX),
    **dict.fromkeys(("minimum", "fmin"), "write S.min({0}, {1})"),
    **dict.fromkeys(("maximum", "fmax"), "write S.max({0}, {1})"),
    "fma": "write S.fma({0}, {1}, {2})",
    **dict.fromkeys(("clip", "clamp"), "write S.clip({0}, {1}, {2})"),
    "where": "write S.vsel(a, b, mask) for vectors, `a if condition else b` for scalars",
    "all": "join conditions with `and`; S.vall(mask) asks all lanes",
    "any": "join conditions with `or`; S.vany(mask) asks for one lane",
    **dict.fromkeys(("sum", "fsum", "nansum", "cumsum", "mean", "prod", "average"), _SUM),
    **dict.fromkeys(
        ("dot", "matmul", "inner", "einsum"), "multiply and add in a loop; S.vdot, S.fma and S.vqdpa do it"
    ),
    **dict.fromkeys("zeros ones empty full zeros_like ones_like empty_like full_like".split(), _STORAGE),
    **dict.fromkeys(("array", "asarray"), f"{_STORAGE}; S.i32x8([a, b, ...]) is a vector"),
    "arange": "S.i32x8(range(8)) is a vector of constants; `for i in range(n)` counts",
    **dict.fromkeys("list tuple set sorted reversed enumerate zip map filter iter next".split(), _LIST),
    **dict.fromkeys(
        ("bin", "oct", "hex", "chr"),
        'a value of the run has no text; it is printed by S.printf("%d\\n", {0})',
    ),
    **dict.fromkeys(
        ("int64", "uint64", "float64", "i64", "u64", "fp64", "double", "long"),
        "numbers have up to 32 bits: S.i32, S.u32, S.fp32",
    ),
    "range": "a `for` loop goes over it; elsewhere its bounds must be numbers",
    **dict.fromkeys(("hash", "id"), "a value of the run has none; compare the values themselves"),
    "print": "write S.printf(...); as a statement of its own, print(...) shows values in PySim",
    **dict.fromkeys(
        "astype view to type_as".split(), "S.cast(x, dtype) converts, S.reinterpret(x, dtype) keeps the bits"
    ),
    **dict.fromkeys(("copy", "clone"), "y = x copies numbers and vectors; S.dma_copy(dst, src, width) copies memory"),
    **dict.fromkeys(("reshape", "T", "transpose", "flatten"), "S.match_buffer(p, shape) gives a pointer dimensions"),
    "item": "it is one value already",
    "prefetch": "begin the transfer ahead by S.async_dma_copy, or let S.pipelined loops do it",
}


def advice(name: str, arguments: Sequence[str] = ()) -> str:
    """What to write instead of a call of `name`; empty when nothing is known."""
    text = ADVICE.get(name, "")
    given = [*arguments, *("xyz"[len(arguments) :])]
    return text.format(*(a if len(a) < 40 else "xyz"[i] for i, a in enumerate(given[:3])))


def instead_of(func: object, arguments: Sequence[str]) -> str:
    """What to write instead of a call of a function of Python or of an installed package; empty when nothing is known."""
    code = getattr(func, "__code__", None)
    if not callable(func) or (code is not None and is_user_file(code.co_filename)):
        return ""
    if element := _element(func):
        return f"write S.{element}({arguments[0] if arguments else 'x'})"
    name = getattr(func, "__name__", "")
    two = name in ("min", "max") and len(arguments) == 2 and not any(a[0] in "[(*" for a in arguments)
    return advice(f"{name}imum" if two else name, arguments)


def _element(func: object) -> str:
    """The name in kernels of a scalar type of NumPy (`np.float32` is `fp32`); empty for anything else."""
    if not isinstance(func, type) or func.__module__ != "numpy":
        return ""
    short = {"float": "fp", "int": "i", "uint": "u"}
    kind = func.__name__.rstrip("0123456789")
    bits = func.__name__.removeprefix(kind)
    return f"{short[kind]}{bits}" if kind in short and bits in ("8", "16", "32") else ""

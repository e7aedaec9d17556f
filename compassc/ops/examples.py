"""One example per operation: a kernel body, and the types and values of the memory it works on.

The pages of the operations show the kernel, the memory it leaves in PySim and the C it becomes, all produced when a page
is made. Inputs are called `x` and `y`, the output `out`; a body that names an input gets it as a parameter.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..ir.dtypes import dtype

SIGNED = (5, -3, 12, 0, -8, 7, 100, -1)
OTHER = (1, 2, 3, 4, 5, 6, 7, 8)
REAL = (0.5, -1.25, 2.0, 0.0, 3.5, -0.75, 1.0, 4.0)
TARGET = "X2_1204"
END_OF_KERNEL = "  barrier(CLK_LOCAL_MEM_FENCE);"


@dataclass(frozen=True)
class Example:
    """A kernel body and its memory: element types of `x`, `y` (as `x`) and `out` (as `x`), lanes of `out` (one register),
    and the first values of `x` and `y`, which repeat; `runs`: PySim can run it."""

    body: str
    x: str = "i32"
    y: str = ""
    out: str = ""
    lanes: int = 0
    xs: tuple[float, ...] = ()
    ys: tuple[float, ...] = OTHER
    size: int = 0
    runs: bool = True

    @property
    def types(self) -> dict[str, str]:
        """The element type of each parameter the body mentions, in the order of the signature."""
        named = {"x": self.x, "y": self.y or self.x, "out": self.out or self.x}
        return {n: t for n, t in named.items() if re.search(rf"\b{n}\b", self.body)}

    def memory(self) -> dict[str, Any]:
        """The arrays of a call, the output zeroed."""
        import numpy as np

        from .numeric import np_dtype

        arrays = {}
        for name, text in self.types.items():
            t = dtype(text)
            count = (name == "out" and self.lanes) or (name != "out" and self.size) or t.native_lanes
            first = self.ys if name == "y" else self.xs or (REAL if t.is_floating else _fitting(t.is_uint))
            values = np.zeros(1) if name == "out" else np.array(first)
            arrays[name] = np.resize(values, count).astype(np_dtype(t))
        return arrays

    def source(self, name: str) -> str:
        """The kernel as Python text."""
        parameters = ", ".join(f'{n}: S.ptr("{t}", "global")' for n, t in self.types.items())
        lines = self.body.strip().splitlines()
        return "\n".join(["@S.prim_func", f"def {name}({parameters}):", *(f"    {line}" for line in lines), ""])


def _fitting(unsigned: bool) -> tuple[float, ...]:
    return tuple(abs(v) for v in SIGNED) if unsigned else SIGNED


def _unary(name: str, kind: str, values: tuple[float, ...] = (), out: str = "") -> Example:
    return Example(f"S.vstore(S.{name}(S.vload(x)), out)", kind, out=out, xs=values)


def _binary(name: str, kind: str = "i32", more: str = "", **rest: Any) -> Example:
    return Example(f"S.vstore(S.{name}(S.vload(x), S.vload(y){more}), out)", kind, **rest)


def _compare(name: str) -> Example:
    return Example(
        f"m = S.{name}(S.vload(x), S.vload(y))\nS.vstore(S.vsel(S.i32x8(1), 0, m), out)", ys=(5, 0, 0, 0, 0, 7, 7, 7)
    )


def _test(name: str, kind: str, values: tuple[float, ...]) -> Example:
    body = f"m = S.{name}(S.vload(x))\nS.vstore(S.vsel(S.fp32x8(1), 0.0, m), out)"
    return Example(body, kind, xs=values)


INF = float("inf")
NAN = float("nan")
_DESCRIPTORS = 'ctrl = x.as_ptr("u32")\n'

EXAMPLES: dict[str, Example] = {
    # arithmetic
    "abs": _unary("abs", "i32"),
    "clip": Example("S.vstore(S.clip(S.vload(x), -5, 10), out)"),
    "fma": Example("acc = S.fp32x8(1)\nS.vstore(S.fma(acc, S.vload(x), S.vload(y)), out)", "fp32"),
    "rint": _unary("rint", "fp32", (0.5, 1.5, 2.5, -0.5, 3.49, -3.51, 1e9, -0.0)),
    "vadd": _binary("vadd", more=', mask="4TF", r=0'),
    "vaddh": Example("S.vstore(S.vaddh(S.vload(x), S.vload(y)), out)"),
    "vdiv": _binary("vdiv", ys=(2, 2, 0, 0, 3, -3, 7, 1)),
    "vdot": _binary("vdot", "i16", out="i32"),
    "vdpa": Example("acc = S.i32x8(1000)\nS.vstore(S.vdpa(acc, S.vload(x), S.vload(y)), out)", "i16", out="i32"),
    "vfmae": Example("acc = S.fp32x8(0)\nS.vstore(S.vfmae(acc, S.vload(x), S.vload(y)), out)", "fp16", out="fp32"),
    "vfmao": Example("acc = S.fp32x8(0)\nS.vstore(S.vfmao(acc, S.vload(x), S.vload(y)), out)", "fp16", out="fp32"),
    "vmma": Example("S.vmma(out, S.vload(x), S.vload(y))", "fp16", out="fp32", lanes=16),
    "vmml": Example("S.vmml(out, S.vload(x), S.vload(y))", "fp16", out="fp32", lanes=16),
    "vmod": _binary("vmod", ys=(2, 2, 0, 0, 3, -3, 7, 1)),
    "vmul": _binary("vmul"),
    "vmulh": _binary("vmulh", "i16", out="i32"),
    "vmull": _binary("vmull", "i16", out="i32"),
    "vqdot": _binary("vqdot", "i8", out="i32"),
    "vqdpa": Example("acc = S.i32x8(1000)\nS.vstore(S.vqdpa(acc, S.vload(x), S.vload(y)), out)", "i8", out="i32"),
    "vrpadd": Example("out[0] = S.vrpadd(S.vload(x))[0]", lanes=1),
    "vsub": _binary("vsub", "u8", ", saturate=True", ys=(10, 2)),
    "vsubh": Example("S.vstore(S.vsubh(S.vload(x), S.vload(y)), out)"),
    # bitwise
    "clz": _unary("clz", "u32", (0, 1, 2, 3, 255, 65536, 2**31, 2**32 - 1)),
    "vall": Example("out[0] = 1 if S.vall(S.vload(x) > -10) else 0", lanes=1),
    "vany": Example("out[0] = 1 if S.vany(S.vload(x) > 50) else 0", lanes=1),
    "vand": _binary("vand"),
    "vbrevs": _unary("vbrevs", "u8", (1, 2, 3, 4, 128, 255)),
    "vcls": _unary("vcls", "i32", (0, -1, 1, -2, 255, -256, 2**30, -(2**31))),
    "vinv": _unary("vinv", "i32"),
    "vnsr": Example(
        'S.vstore(S.vnsr(S.vload(x), 2, saturate=True, with_round=True, to_h=True), out, mask="8T")',
        out="i16",
        lanes=16,
    ),
    "vnsrsr": Example("S.vstore(S.vnsrsr(S.vload(x), 2, to_h=True), out)", out="i16", lanes=16),
    "vor": _binary("vor"),
    "vpcnt": _unary("vpcnt", "u32", (0, 1, 3, 7, 255, 65535, 2**31, 2**32 - 1)),
    "vror": Example("S.vstore(S.vror(S.vload(x), 4), out)", "u32", xs=(0, 1, 16, 17, 255, 256, 2**31, 2**32 - 1)),
    "vsl": Example("S.vstore(S.vsl(S.vload(x), 28, saturate=True), out)"),
    "vsr": Example("S.vstore(S.vsr(S.vload(x), 1, with_round=True), out)"),
    "vxor": _binary("vxor"),
    # comparison
    **{name: _compare(name) for name in ("vceq", "vcneq", "vcge", "vcgt", "vcle", "vclt")},
    **{name: _test(name, "fp32", (1, INF, -INF, NAN, 0)) for name in ("isnan", "isinf", "isfinite")},
    "max": _binary("max"),
    "min": _binary("min"),
    "vmaxh": _binary("vmaxh"),
    "vminh": _binary("vminh"),
    "vrpmax": Example("out[0] = S.vrpmax(S.vload(x))[0]", lanes=1),
    "vrpmin": Example("out[0] = S.vrpmin(S.vload(x))[0]", lanes=1),
    # conversion
    "cast": Example('S.vstore(S.cast(S.vload(x), "i32", part="even"), out)', "i16", out="i32"),
    "i": Example("S.vstore(S.i(S.vload(x)), out)", "u32", out="i32", xs=(1, 2**32 - 1)),
    "u": Example("S.vstore(S.u(S.vload(x)), out)", "i32", out="u32"),
    "reinterpret": Example('S.vstore(S.reinterpret(S.vload(x), "i32x8"), out)', "fp32", out="i32"),
    "tag": Example('S.vstore(S.tag(S.cast(S.vload(x), "fp32"), "no_zip"), out)', "fp16", out="fp32", lanes=16),
    "vxtl": _unary("vxtl", "i16", out="i32"),
    "vxth": _unary("vxth", "i16", out="i32"),
    # DMA
    "dma_copy": Example('s = S.alloc(8, "i32", "lsram")\nS.dma_copy(s, x, 8)\nS.dma_copy(out, s, 2, 4, 2, 2)'),
    "async_dma_copy": Example(
        's = S.alloc(8, "i32", "lsram")\ne = S.alloc_events(1)\nS.async_dma_copy(s, x, 8, event=e)\n'
        "S.wait_events(e)\nS.vstore(S.vload(s), out)\nS.free_events(e)"
    ),
    "dma_memset": Example('s = S.alloc(8, "i32", "lsram")\nS.dma_memset(s, 7, 8)\nS.vstore(S.vload(s), out)'),
    "dma_transpose2d": Example('s = S.alloc(8, "i32", "lsram")\nS.dma_transpose2d(s, x, 2, 4)\nS.dma_copy(out, s, 8)'),
    "dma_upsample": Example(
        's = S.alloc(8, "i32", "lsram")\nS.dma_upsample(s, x, 2, 2, 1, 2)\nS.dma_copy(out, s, 8)', size=2
    ),
    # mathematics
    **{name: _unary(name, "fp32") for name in ("ceil", "floor", "cos", "sin", "erf", "exp", "exp2", "tanh")},
    **{name: _unary(name, "fp32", (1, 2, 4, 0.25, 100, 0.5, 0, -1)) for name in ("log", "sqrt", "rsqrt")},
    "pow": _binary("pow", "fp32", ys=(2, 2, 3, 0, 0.5, 3, 9, -1)),
    "ceildiv": Example("out[0] = S.ceildiv(x[0], 2)", lanes=1),
    # memory
    "vload": Example("S.vstore(S.vload(x, lanes=4, stride=2), out)"),
    "vstore": Example('S.vstore(S.vload(x), out, mask="3T5F", stride=2)'),
    "vload_gather": Example("S.vstore(S.vload_gather(x, S.vload(y)), out)", "i16", "u16", ys=(7, 6, 5, 4)),
    "vstore_scatter": Example(
        "S.vstore_scatter(S.vload(x), out, S.vload(y))", "i16", "u16", ys=tuple(range(15, -1, -1))
    ),
    # permutation
    "vbcast": Example("S.vstore(S.vbcast(x[2]), out)"),
    "vcompc": Example("a = S.vload(x)\nS.vstore(S.vcompc(a, S.vload(y), a > 0), out)"),
    "vcompt": Example("a = S.vload(x)\nS.vstore(S.vcompt(a, a > 0), out)"),
    "vconcat": Example('S.vstore(S.vconcat((S.vload(x), S.vload(y)), "even"), out)'),
    "vreplic": Example("S.vstore(S.vreplic(S.vload(x), 2), out)"),
    "vrevs": _unary("vrevs", "i32"),
    "vsel": Example("a = S.vload(x)\nS.vstore(S.vsel(a, 0, a > 0), out)"),
    "vshfl": Example("S.vstore(S.vshfl(S.vload(x), 3), out)"),
    "vsldl": Example("S.vstore(S.vsldl(S.vload(x), S.vload(y), 6), out)"),
    "vsplit": Example("low, high = S.vsplit(S.vload(x, lanes=16))\nS.vstore(S.vadd(low, high), out)", size=16),
    "vtbl": Example(
        "table = (S.vload(x), S.vload(y))\nindices = S.i32x8([0, 8, 1, 9, 2, 10, 3, 99])\nS.vstore(S.vtbl(table, indices), out)"
    ),
    "vzip": Example('S.vstore(S.vzip(S.vload(x), S.vload(y), "low"), out)'),
    # synchronisation
    "alloc_events": Example(
        's = S.alloc(8, "i32", "lsram")\na, b = S.alloc_events(2)\nS.async_dma_copy(s, x, 4, event=a)\n'
        "S.async_dma_copy(s + 4, x, 4, event=b)\nS.wait_events(a, b)\nS.vstore(S.vload(s), out)\nS.free_events(a, b)"
    ),
    "barrier": Example(
        's = S.alloc(8, "i32", "shared")\nif S.get_local_id() == 0:\n    S.vstore(S.vload(x), s)\nS.barrier()\n'
        "if S.get_local_id() == 1:\n    S.vstore(S.vload(s), out)"
    ),
    "get_local_id": Example("tec = S.get_local_id()\nout[tec] = x[tec] * 10", lanes=4, size=4),
    "get_local_size": Example("if S.get_local_id() == 0:\n    out[0] = S.get_local_size()", lanes=1),
    # the rest
    "const_mask": Example('m = S.const_mask("4TF")\nS.vstore(S.vsel(S.vload(x), -1, m), out)'),
    "tail_mask": Example("m = S.tail_mask(x[0], 8)\nS.vstore(S.vload(x, m), out, m)"),
    "flush_cache": Example("out[0] = x[0]\nS.flush_cache(invalidate=False)", lanes=1),
    "perf_tick_begin": Example("S.perf_tick_begin(0)\nS.vstore(S.vload(x), out)\nS.perf_tick_end(0)"),
    "printf": Example('if S.get_local_id() == 0:\n    S.printf("x[0] is %d\\n", x[0])', lanes=1),
    "asm": Example(
        'a = S.vload(x)\nb = S.i32x8(0)\nS.asm("{add %[b].w, %[a].w, %[a].w;}", outputs={"b": ("=t", b)}, '
        'inputs={"a": ("t", a)})\nS.vstore(b, out)',
        runs=False,
    ),
    "aiff": Example("S.aiff(x, y, out)", "u32", runs=False),
    "async_aiff": Example("e = S.alloc_events(1)\nS.async_aiff(x, y, out, e)\nS.wait_events(e)", "u32", runs=False),
}
EXAMPLES["wait_events"] = EXAMPLES["free_events"] = EXAMPLES["async_dma_copy"]
EXAMPLES["perf_tick_end"] = EXAMPLES["perf_tick_begin"]


@cache
def kernels() -> dict[str, Any]:
    """The kernel of each example, by operation; they are defined once, in a file of their own."""
    from ..dsl.loader import load_kernels

    text = "from compassc.dsl import script as S\n\n\n" + "\n\n".join(
        example.source(f"use_{name}") for name, example in EXAMPLES.items()
    )
    folder = Path(tempfile.mkdtemp(prefix="compassc-examples-"))
    path = folder / "examples.py"
    path.write_text(text)
    found = load_kernels(path).kernels
    return {name: found[f"use_{name}"] for name in EXAMPLES}


def run_in_pysim(name: str) -> tuple[dict[str, Any], str]:
    """The memory an example leaves in PySim, inputs included, and what it prints."""
    arrays = EXAMPLES[name].memory()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        kernels()[name](*arrays.values())
    return arrays, printed.getvalue()


def c_text(name: str) -> str:
    """The C an example becomes."""
    from ..codegen import generate
    from ..dsl import BuildManager

    return generate(BuildManager(TARGET).lower(kernels()[name])).text


def c_body(name: str) -> str:
    """The kernel function of an example in C, without prototypes and the final barrier."""
    text = c_text(name)
    lines = text[text.rindex("__kernel") :].rstrip().splitlines()
    return "\n".join(line for line in lines if line != END_OF_KERNEL)


def shown(values: Any) -> str:
    """An array in one line; of many lanes the first sixteen."""
    import numpy as np

    text = np.array2string(values[:16], separator=", ", max_line_width=1000, floatmode="maxprec")
    return text.replace("]", f", ...] ({values.size} lanes)") if values.size > 16 else text

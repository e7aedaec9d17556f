"""Dialects of C for devices of blocks of threads: how each spells kernels, memory, numbers of threads and barriers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compass_core.dataclass import dataclass
from compassc.targets.ctext import SCALARS, helpers, typedefs


@dataclass(frozen=True)
class Dialect:
    """How a language spells what kernels are made of.

    `kernel`: the words before a kernel's name; `pointer`: a parameter that is an address, of `type` and `name`; `shared`: the
    words before memory of a block; `truth`: the type of bools in memory; `thread`: the lines that begin what one thread, `number`,
    does as turn `name` of `stop`; `without`: the types that it does not have; `prelude`: the text before the kernels, from them.
    """

    name: str
    where: str
    kernel: str
    pointer: str
    shared: str
    barrier: str
    numbers: tuple[str, str]
    """Of the block and of the thread in it: of a `dim` and its `axis`."""
    thread: tuple[str, ...]
    truth: str
    long: str
    nan: str
    infinity: str
    prelude: Callable[[Sequence[str]], str]
    without: tuple[str, ...] = ()

    def number(self, kind: str) -> str:
        """The number of a block or thread that a loop of this kind has the turns of (`threadIdx_x`)."""
        unit, dim = kind.split("_")
        return self.numbers[unit == "threadIdx"].format(dim=dim, axis="xyz".index(dim))


_HALVES = """\
struct float16 {
  unsigned short bits;
  __device__ float16() {}
  __device__ float16(float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
  __device__ operator float() const { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
};
struct bfloat16 {
  unsigned short bits;
  __device__ bfloat16() {}
  __device__ bfloat16(float x) {
    unsigned int word = __float_as_uint(x);
    bits = x != x ? 0x7fc0 : (unsigned short)((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  __device__ operator float() const { return __uint_as_float((unsigned int)bits << 16); }
};"""


def _cuda(kernels: Sequence[str]) -> str:
    return "\n".join([*typedefs(), _HALVES, *helpers("__device__ __forceinline__", "", {"abs": "fabs"})])


_OPENCL_TYPES = {"int8": "char", "uint8": "uchar", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint",
                 "int64": "long", "uint64": "ulong", "float16": "half", "float32": "float", "float64": "double"}  # fmt: skip
_EXTENSIONS = {"float16": "cl_khr_fp16", "float64": "cl_khr_fp64"}


def _opencl(kernels: Sequence[str]) -> str:
    """Types of reals that not all devices have are there where kernels use them."""
    used = [kind for kind in _EXTENSIONS if any(kind in text for text in kernels)]
    left = [kind for kind in SCALARS if kind in _OPENCL_TYPES and (kind not in _EXTENSIONS or kind in used)]
    return "\n".join(
        [
            *(f"#pragma OPENCL EXTENSION {_EXTENSIONS[kind]} : enable" for kind in used),
            *(f"#define {kind} {_OPENCL_TYPES[kind]}" for kind in left),
            *helpers(
                "static inline",
                "",
                {"abs": "fabs"},
                left,
                {kind: "" for kind in ("float32", "float64") if kind in left},
            ),
        ]
    )


CUDA = Dialect(
    name="cuda",
    where="CUDA devices",
    kernel='extern "C" __global__ void',
    pointer="{type} *__restrict__ {name}",
    shared="__shared__",
    barrier="__syncthreads();",
    numbers=("blockIdx.{dim}", "threadIdx.{dim}"),
    thread=("if (int32 {name} = (int32){number}; {name} < {stop}) {{",),
    truth="bool",
    long="LL",
    nan="__int_as_float(0x7fc00000)",
    infinity="__int_as_float(0x7f800000)",
    prelude=_cuda,
)
OPENCL = Dialect(
    name="opencl",
    where="OpenCL devices",
    kernel="__kernel void",
    pointer="__global {type} *restrict {name}",
    shared="__local",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    numbers=("get_group_id({axis})", "get_local_id({axis})"),
    thread=("int32 {name} = (int32){number};", "if ({name} < {stop}) {{"),
    truth="uint8",
    long="L",
    nan="NAN",
    infinity="INFINITY",
    prelude=_opencl,
    without=("bfloat16",),
)

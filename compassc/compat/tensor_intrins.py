"""Intrinsics that programs tensorize with by name: what they compute, and the same in plain loops as their implementation."""

from __future__ import annotations

import re
from functools import cache

from ..ir import PrimFunc
from ..tir import TensorIntrin
from .tvmscript import from_source

DOTS: dict[str, tuple[int, int, str, str]] = {
    "dot_16x4_vnni": (16, 4, "uint8", "int8"),
    "dot_16x4_avx512": (16, 4, "uint8", "int8"),
    "dot_4x4_i8i8s32_neon": (4, 4, "int8", "int8"),
    "dot_4x4_i8i8s32_sdot": (4, 4, "int8", "int8"),
    "dot_32x4_u8u8i32_vrmpy": (32, 4, "uint8", "uint8"),
    "dot_32x4_u8i8i32_vrmpy": (32, 4, "uint8", "int8"),
    "dot_32x2_i16i16i32_vdmpy": (32, 2, "int16", "int16"),
    "dp4a": (0, 4, "int8", "int8"),
    "sdot4": (0, 4, "int8", "int8"),
}
"""Sums of products by name: how many at once (0: one), of how many, and the types of what is multiplied; summed up in int32."""
CONSTANTS = {
    "VNNI_DOT_16x4_INTRIN": "dot_16x4_vnni",
    "AVX512_DOT_16x4_INTRIN": "dot_16x4_avx512",
    "ARM_DOT_4x4_i8_NEON_INTRIN": "dot_4x4_i8i8s32_neon",
    "ARM_DOT_4x4_i8_SDOT_INTRIN": "dot_4x4_i8i8s32_sdot",
    "VRMPY_u8u8i32_INTRIN": "dot_32x4_u8u8i32_vrmpy",
    "VRMPY_u8i8i32_INTRIN": "dot_32x4_u8i8i32_vrmpy",
    "VDMPY_i16i16i32_INTRIN": "dot_32x2_i16i16i32_vdmpy",
    "DP4A_INTRIN": "dp4a",
    "AMDGPU_SDOT4_INTRIN": "sdot4",
}
_DESCRIBED = {"dot_product_16x4_u8i8i32_desc": "dot_16x4_vnni"}
_MATRICES = ("WMMA_", "MMA_", "LDMATRIX_")
"""Families of constants whose value is their name in small letters: of machines of whose instructions products are known."""


def _text(name: str, lanes: int, terms: int, left: str, right: str) -> str:
    """The sum of products as a function of a block."""
    rows, at = (f"({lanes}, {terms})", "vi, vk") if lanes else (f"({terms},)", "vk")
    loops, axes = ("i, k", "vi, vk") if lanes else ("k", "vk")
    ranges, kinds = (f"{lanes}, {terms}", '"SR", [i, k]') if lanes else (f"{terms}", '"R", [k]')
    out = "vi" if lanes else "0"
    return f"""
from tvm.script import tir as T

@T.prim_func
def {name}(A: T.Buffer(({terms},), "{left}"), B: T.Buffer({rows}, "{right}"), C: T.Buffer(({lanes or 1},), "int32")):
    for {loops} in T.grid({ranges}):
        with T.block("update"):
            {axes} = T.axis.remap({kinds})
            C[{out}] = C[{out}] + T.Cast("int32", A[vk]) * T.Cast("int32", B[{at}])
"""


@cache
def _function(name: str) -> PrimFunc:
    made: PrimFunc = from_source(_text(name, *DOTS[name]).replace("vk = T.axis.remap", "vk, = T.axis.remap"))
    return made


def registered(name: str) -> str:
    """The name of an intrinsic, which is known from then on."""
    if name in DOTS and TensorIntrin.get(name, allow_missing=True) is None:
        TensorIntrin.register(name, _function(name), _function(name))
    return name


def _product(name: str, dtype: str, out: str, trans: bool) -> PrimFunc:
    """The product of two matrices of 16 by 16 that is added to a third one, in the memories that have them."""
    place = "vj, vk" if trans else "vk, vj"
    rows = "".join(
        f'    {n} = T.match_buffer({n.lower()}, (16, 16), "{kind}", scope="wmma.{scope}", offset_factor=16)\n'
        for n, kind, scope in (("A", dtype, "matrix_a"), ("B", dtype, "matrix_b"), ("C", out, "accumulator"))
    )
    cast = "{}" if dtype == out else f'T.cast({{}}, "{out}")'
    value = f"{cast.format('A[vi, vk]')} * {cast.format(f'B[{place}]')}"
    made: PrimFunc = from_source(f"""
from tvm.script import tir as T

@T.prim_func
def {name}(a: T.handle, b: T.handle, c: T.handle):
{rows}
    for i, j, k in T.grid(16, 16, 16):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + {value}
""")
    return made


_SYNC = re.compile(r"wmma_sync_16x16x16_(?:f16f16(f16|f32)|s8s8(s32))(_trans)?$")
_TYPES = {"f16": "float16", "f32": "float32", "s32": "int32"}


def _matrices(name: str) -> str:
    """The name of an instruction for matrices; that of a product is known from then on."""
    found = _SYNC.match(name)
    if found is not None and TensorIntrin.get(name, allow_missing=True) is None:
        dtype, out = ("float16", found[1]) if found[1] else ("int8", found[2])
        f = _product(name, dtype, _TYPES[out], bool(found[3]))
        TensorIntrin.register(name, f, f)
    return name


def __getattr__(name: str) -> object:
    if name in CONSTANTS:
        return registered(CONSTANTS[name])
    if name in _DESCRIBED:
        return _function(_DESCRIBED[name])
    if name.startswith(_MATRICES) and name.endswith("_INTRIN"):
        return _matrices(name.removesuffix("_INTRIN").lower())
    raise AttributeError(name)


def __dir__() -> list[str]:
    return [*CONSTANTS, *_DESCRIBED]

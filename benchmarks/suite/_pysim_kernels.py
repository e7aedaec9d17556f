# mypy: disable-error-code="valid-type"
"""Kernels of the PySim benchmark: loops of as many operations as their names' counts say."""

from compassc.dsl import script as S

VECTOR_OPS = 8
SCALAR_OPS = 8


@S.prim_func
def nothing(a: S.ptr("i32", "global"), n: S.i32):
    for _ in range(n):
        pass


@S.prim_func
def vector_operations(a: S.ptr("i32", "global"), n: S.i32):
    for _ in range(n):
        x = S.vload(a)
        y = S.vadd(x, x)
        z = x + y
        y = S.vmul(z, x)
        y = S.max(x, y)
        z = S.vsub(y, z)
        y = S.vxor(z, x)
        S.vstore(y, a)


@S.prim_func
def addressed_operations(a: S.ptr("i32", "global"), n: S.i32):
    off = n // 2
    for i in range(n // 16):
        S.vstore(S.vload(a + i * 8) + S.vload(a + off + i * 8), a + i * 8)
        S.vstore(S.vload(a + off + i * 8) - S.vload(a + i * 8), a + off + i * 8)


@S.prim_func
def scalar_operations(a: S.ptr("i32", "global"), n: S.i32):
    for i in range(n):
        x = a[i]
        y = x + i
        a[i] = y
        x = y * 3
        y = x - i
        a[i] = 7
        x = a[i]
        a[i] = x

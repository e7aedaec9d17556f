from __future__ import annotations

from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("int32", "global"), n: S.i32) -> None:
    a[0] = n

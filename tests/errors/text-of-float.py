from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), x: S.fp32):
    S.printf(f"{x:.2f}")
    a[0] = 1

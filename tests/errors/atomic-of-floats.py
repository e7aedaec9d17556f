from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = S.i32(S.atomic_max(a.as_ptr("fp32"), n))

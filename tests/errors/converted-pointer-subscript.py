from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global"), n: S.i32):
    a[0] = (f + n).as_ptr("i32")[0]

from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global"), n: S.i32):
    p = f"text"
    a[0] = n

from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    found = [i for i in range(4) if i < n]
    a[0] = sum(found)

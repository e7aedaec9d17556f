from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    found = [a[i] for i in range(n)]
    a[0] = sum(found)

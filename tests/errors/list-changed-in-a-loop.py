from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    t = [1]
    for i in range(n):
        t.append(i)
    a[0] = len(t)

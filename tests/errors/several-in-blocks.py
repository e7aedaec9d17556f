from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    for i in range(count):
        t = a[i] + count
        a[i] = t + n[0]
    while not n:
        a[0] = -S.u32(n)

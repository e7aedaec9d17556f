from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    print(a[0])
    a[0] = len(hex(a[0]))

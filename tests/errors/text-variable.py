from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    text = f"a[0] is {a[0]}"
    print(text)

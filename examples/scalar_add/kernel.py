"""c[i] = a[i] + b[i] for n elements, one scalar at a time."""

from compassc.dsl import script as S


@S.prim_func
def scalar_add(
    a: S.ptr("i32", "global"),
    b: S.ptr("i32", "global"),
    c: S.ptr("i32", "global"),
    n: S.i32,
):
    # The four TECs take turns: TEC 0 has elements 0, 4, 8, ...
    for i in range(S.get_local_id(), n, S.get_local_size()):
        c[i] = a[i] + b[i]

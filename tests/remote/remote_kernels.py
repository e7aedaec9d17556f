"""The kernel that the tests run on servers."""

from compassc.dsl import script as S


@S.prim_func
def add(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), out: S.ptr("i32", "global"), n: S.i32):
    while n < 0:
        out[0] = out[0] + 1
    for i in range(n):
        out[i] = a[i] + b[i]


@S.prim_func
def say(a: S.ptr("i32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        S.printf("it is %d\n", n)
        a[0] = n

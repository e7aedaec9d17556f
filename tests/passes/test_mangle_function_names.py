TEXT = """
@T.func
def {0}(i: T.int32) -> T.int32:
    return (i + 1)

@T.func
def k(p: T.ptr("int32", "global"), n: T.int32):
    p[0] = Module.{0}(Module.{0}(n))
"""


def test_callees_carry_the_name_of_the_kernel(check):
    check("MangleFunctionNames", "", TEXT.format("f"), TEXT.format("k_f"))


def test_an_entry_alone_stays(check):
    check("MangleFunctionNames", "n: T.int32", "a: T.int32 = n")

def test_tec_numbers_are_sizes(check):
    check(
        "AnnotateNonNegative",
        'p: T.ptr("int32", "global")',
        't: T.int32 = S.get_local_id(dtype="int32")\np[t] = t',
        't: T.size("int32") = S.get_local_id(dtype="int32")\np[t] = t',
    )


def test_others_stay(check):
    params = 'p: T.ptr("int32", "global"), n: T.int32'
    check("AnnotateNonNegative", params, 't: T.int32 = S.get_local_id(dtype="int32")\nt = (t - 4)\np[0] = t')
    check("AnnotateNonNegative", params, "t: T.int32 = n\np[0] = t")

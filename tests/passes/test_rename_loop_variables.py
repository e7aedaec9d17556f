LONG = "a_loop_variable_with_a_long_name"


def test_long_names_by_depth(check):
    loops = """
        for {0} in T.serial(0, 4, 1):
            for {1} in T.serial(0, 4, 1):
                p[{0}] = {1}
        for {2} in T.serial(0, 4, 1):
            p[{2}] = j
        """
    params = 'p: T.ptr("int32", "global"), j: T.int32'
    long = loops.format(LONG, LONG + "2", LONG + "3")
    check("RenameLoopVariables", params, long, loops.format("i", "j_1", "i"))


def test_short_names_stay(check):
    check("RenameLoopVariables", 'p: T.ptr("int32", "global")', "for index in T.serial(0, 4, 1):\n    p[index] = 1")

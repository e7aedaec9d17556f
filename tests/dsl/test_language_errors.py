"""One small mistake per language rule: the message says what, points at the line, and never is a traceback."""

import pytest

from compass_core.errors import CompassError, ErrorGroup, render

CASES = {
    # rule: (kernel body, fragments of the message, column text under the caret or None)
    "undefined": ("x = nn + 1", ["undefined variable 'nn'", "did you mean 'n'"]),
    "block scope": ("if n > 0:\n    x = n\ny = x", ["undefined variable 'x'"]),
    "chained assignment": ("x = y = n", ["chained assignment"]),
    "type change": ("x = n\nx = f[0]", ["'x' is int32", "float32", "explicitly"]),
    "annotated local": ("x: S.i32 = 3", ["annotated"]),
    "continue": ("for i in range(n):\n    continue", ["Continue"]),
    "try": ("try:\n    pass\nfinally:\n    pass", ["Try"]),
    "print": ("print(n)", ["print()", "S.printf"]),
    "max": ("x = max(n, 1)", ["max()", "S.max"]),
    "loop over list": ("for i in [1, 2]:\n    pass", ["range, S.grid", "list"]),
    "loop variable taken": ("for i in range(n):\n    for i in range(n):\n        pass", ["'i' is already in use"]),
    "loop variable assigned": ("for i in range(n):\n    i = 0", ["loop variable 'i'"]),
    "loop bounds": ("x = S.i32(0)\nfor i in range(x, u):\n    pass", ["int32", "uint32"]),
    "negative step": ("for i in range(n, 0, -1):\n    pass", ["step must be positive"]),
    "float index": ("x = a[1.5]", ["index must be an integer"]),
    "pointer tuple index": ("x = a[0, 1]", ["one index"]),
    "pointer slice without stop": ("x = a[1:]", ["needs a stop"]),
    "run-time slice": ("x = a[0:n]", ["length of a slice"]),
    "empty slice": ("x = a[4:4]", ["0 elements"]),
    "void move": ('p = a.as_ptr("void")\nq = p + 1', ["void pointer cannot be moved"]),
    "pointer truth": ("if a:\n    pass", ["is_nullptr"]),
    "pointer compare": ("if a == n:\n    pass", ["compared with a pointer"]),
    "signed unsigned": ("if n < u:\n    pass", ["signed with unsigned", "int32", "uint32"]),
    "8-bit product": ("x = S.vload(c) * S.vload(c)", ["8-bit"]),
    "fp16 division": ("x = S.vload(h) / S.vload(h)", ["float16x16"]),
    "float modulo": ("x = f[0] % 2.0", ["needs integers"]),
    "constant zero divisor": ("x = n // 0", ["constant zero"]),
    "shift range": ("x = n << 32", ["32", "0..31"]),
    "lanes": ("x = S.vload(a) + S.vload(h)", ["different lanes"]),
    "and on ints": ("if n and n:\n    pass", ["needs bools"]),
    "not on int": ("x = not n", ["needs a bool"]),
    "and on masks": ("m = S.vload(a) > 0\nx = m and m", ["use & and |"]),
    "vector condition": ("if S.vload(a) > 0:\n    pass", ["must be a scalar"]),
    "constant while": ("while True:\n    pass", ["constant"]),
    "ternary condition": ("x = 1 if n else 2", ["scalar bool"]),
    "string": ("x = 'text'", ["string"]),
    "store lanes": ("a[0:4] = S.vload(a)", ["lanes differ"]),
    "element of short vector": ("v = a[0:4]\nx = v[0]", ["256-bit"]),
    "element float to int": ("v = S.vload(a)\nv[0] = 1.5", ["floating-point"]),
    "literal range": ("x = 5000000000", ["does not fit int32"]),
    "return value": ("return n", ["no return annotation"]),
    "bare pointer": ("a", ["a pointer"]),
    "assert": ("assert n, 'x'", ["assert"]),
    "unknown operation": ("x = S.vaddd(S.vload(a), 1)", ["vaddd"]),
    "wrong keyword": ("x = S.vadd(S.vload(a), 1, sat=True)", ["S.vadd", "sat"]),
    "scalars only": ("x = S.vadd(n, 1)", ["scalars"]),
    "alloc run-time shape": ('k = n\nb = S.alloc(k, "i32", "lsram")', ["integer constant"]),
    "alloc scope": ('b = S.alloc(8, "i32", "global")', ["scope"]),
    "match non-parameter": ("p = a + 1\nb = S.match_buffer(p, (4,))", ["parameter"]),
    "buffer alias": ("b = S.match_buffer(a, (4, 4))\nd = b", ["second name"]),
    "buffer indices": ("b = S.match_buffer(a, (4, 4))\nx = b[1]", ["2 dimensions"]),
    "address of expression": ("x = (n + 1).addr", ["variable"]),
}


@pytest.mark.parametrize("name", CASES)
def test_error_rule(body, name):
    text, fragments = CASES[name]
    with pytest.raises(CompassError) as caught:
        body(text)
    error = caught.value
    assert not isinstance(error, ErrorGroup), render(error)
    shown = render(error)
    for fragment in fragments:
        assert fragment in shown, shown
    assert error.span is not None and error.span.file.endswith("k.py")
    assert "^" in shown


def test_independent_errors_are_reported_together(body):
    with pytest.raises(ErrorGroup) as caught:
        body("x = nn\ny = x + 1\nz = a[1.5]\na[0] = z\nif n > 0:\n    w = mm")
    messages = [e.message for e in caught.value.errors]
    assert len(messages) == 3 and "nn" in messages[0] and "mm" in messages[2]
    assert render(caught.value).endswith("3 errors generated.")


def test_recursion_is_named(kernel):
    from compassc.dsl import parse

    loaded = kernel(
        """
        @S.prim_func
        def g(n: S.i32) -> S.i32:
            return g(n)

        @S.prim_func
        def k(a: S.ptr("i32", "global")):
            a[0] = g(1)
        """
    )
    with pytest.raises(CompassError, match="recursion is not supported: k -> g -> g"):
        parse(loaded.entry("k"))


@pytest.mark.parametrize(
    "call, fragments",
    {
        "g()": ["1 to 2"],
        "g(1, 2, 3)": ["1 to 2", "3 given"],
        "g(1, q=2)": ["q"],
        "g(a)": ["argument 1", "scalar"],
        "p(1)": ["argument 1", "pointer"],
        "p(a.as_ptr('fp32'), b=S.alloc)": ["b"],
    }.items(),
)
def test_sub_function_arguments(body, call, fragments):
    before = """
    @S.prim_func
    def g(x: S.i32, y: S.i32 = 3) -> S.i32:
        return x + y

    @S.prim_func
    def p(x: S.ptr("i32", "lsram")):
        x[0] = 1
    """
    with pytest.raises(CompassError) as caught:
        body(f"x = {call}", before)
    for fragment in fragments:
        assert fragment in render(caught.value)


def test_scope_mismatch_names_both(body):
    with pytest.raises(CompassError) as caught:
        body("p(a)", '@S.prim_func\ndef p(x: S.ptr("i32", "lsram")):\n    x[0] = 1\n')
    assert "lsram" in render(caught.value) and "global" in render(caught.value)


def test_undecorated_helper(body):
    with pytest.raises(CompassError, match="not decorated"):
        body("x = g(n)", "def g(x: S.i32):\n    return x\n")


def test_python_error_in_helper_is_the_users(body):
    with pytest.raises(CompassError, match="ZeroDivisionError"):
        body("a[0] = g()", "def g():\n    return 1 // 0\n")


@pytest.mark.parametrize(
    "signature, fragment",
    {
        "a": "needs a type annotation",
        "a: int": "not a kernel type",
        "*a: S.i32": "plain parameters",
        "a: S.ptr('i32', 'nowhere')": "scope",
    }.items(),
)
def test_signature_errors(kernel, signature, fragment):
    with pytest.raises(CompassError, match=fragment):
        kernel(f"@S.prim_func\ndef k({signature}):\n    pass\n")


def test_python_mistake_in_the_file_points_at_its_line(kernel):
    with pytest.raises(CompassError) as caught:
        kernel("x = 1\ny = x / 0\n")
    assert caught.value.span is not None and caught.value.span.line == 5
    with pytest.raises(CompassError, match="no kernel"):
        kernel("x = 1\n").entry()

import pytest

from compass_core.errors import CompassError
from compassc import pass_manager, passes
from compassc.dsl import load_kernels, parse

P = 'a: T.ptr("float32", "global"), b: T.ptr("float32", "global"), c: T.ptr("int32", "global"), n: T.int32'


def test_constant_extent(check):
    check(
        "VectorizeLoop",
        P,
        """
        for j in T.vectorized(0, 8, 1):
            t: T.float32 = (a[(n + j)] * T.float32(2.0))
            b[(j * 2)] = T.max(t, b[1])
        """,
        """
        t: T.float32x8 = (a[T.ramp((n + 0), 1, 8)] * T.splat(T.float32(2.0), 8))
        b[T.ramp(0, 2, 8)] = T.max(t, T.splat(b[1], 8))
        """.replace("(n + 0)", "n"),
    )


def test_tail(check):
    for extent in ("(n % 8)", "T.max(T.min(n, 8), 0)"):
        check(
            "VectorizeLoop",
            P,
            f"for j in T.vectorized(0, {extent}, 1):\n    b[j] = a[j]",
            f"T.store(b, T.ramp(0, 1, 8), value=T.load(a, T.ramp(0, 1, 8), mask=T.tail({extent}, 8)), "
            f"mask=T.tail({extent}, 8))",
        )


def test_a_count_that_may_be_negative_is_clamped(transform):
    text = transform("VectorizeLoop", "for j in T.vectorized(0, T.min(n, 8), 1):\n    b[j] = a[j]", P)
    assert "mask=T.tail(T.max(T.min(n, 8), 0), 8)" in text


def test_loop_variable_as_value(check):
    check(
        "VectorizeLoop",
        P,
        "for j in T.vectorized(0, 8, 1):\n    c[j] = (j + n)",
        'c[T.ramp(0, 1, 8)] = (T.vector("int32x8", 0, 1, 2, 3, 4, 5, 6, 7) + T.splat(n, 8))',
    )


def test_products_of_bytes_are_made_of_wider_ones(transform):
    parameters = 'a: T.ptr("int8", "global"), b: T.ptr("int8", "global")'
    text = transform("VectorizeLoop", "for j in T.vectorized(0, 32, 1):\n    b[j] = (a[j] * b[j])", parameters)
    assert text.count('dtype="int16x32"') == 2 and text.count('dtype="int8x32"') == 1


def test_floor_division_stays_floor(check):
    check(
        "VectorizeLoop",
        P,
        "for j in T.vectorized(0, 8, 1):\n    c[j] = ((c[j] // 4) + (c[j] % 4))",
        "c[T.ramp(0, 1, 8)] = ((c[T.ramp(0, 1, 8)] >> T.splat(2, 8)) + (c[T.ramp(0, 1, 8)] & T.splat(3, 8)))",
    )


@pytest.mark.parametrize(
    "statement",
    [
        "b[c[j]] = a[j]",
        "b[j] = a[c[j]]",
        "b[0] = a[j]",
        'c[j] = S.f(j, dtype="int32")',
        "n = (n + j)",
        "break",
    ],
)
def test_bodies_without_vector_form_are_serial(check, statement):
    loop = "for j in T.{}(0, 8, 1):\n    " + statement
    check("VectorizeLoop", P, loop.format("vectorized"), loop.format("serial"))


def test_bits_of_another_type_are_those_of_each_lane(check):
    before = "for j in T.vectorized(0, 8, 1):\n    c[j] = T.reinterpret(a[j], T.int32)"
    check("VectorizeLoop", P, before, "c[T.ramp(0, 1, 8)] = T.reinterpret(a[T.ramp(0, 1, 8)], T.int32x8)")


def test_conditions_that_differ_between_lanes_are_masks(transform):
    text = transform("VectorizeLoop", "for j in T.vectorized(0, 8, 1):\n    if (j < n):\n        b[j] = a[j]", P)
    lanes = 'T.vector("int32x8", 0, 1, 2, 3, 4, 5, 6, 7)'
    assert f"mask=({lanes} < T.splat(n, 8))" in text and text.count("mask=") == 2
    text = transform(
        "VectorizeLoop",
        "for j in T.vectorized(0, 8, 1):\n    b[j] = T.select((0 < j), a[(j - 1)], T.float32(1.0))",
        P,
    )
    assert f"T.load(a, T.ramp(-1, 1, 8), mask=(T.splat(0, 8) < {lanes}))" in text


@pytest.mark.parametrize(("operator", "asked"), [("and", "({} < T.splat(n, 8))"), ("or", "(~({} < T.splat(n, 8)))")])
def test_what_follows_in_a_condition_is_read_where_it_is_asked(transform, operator, asked):
    """There may be no element in the other lanes."""
    chosen = f"T.select(((j < n) {operator} (T.float32(0.0) < a[j])), T.float32(1.0), T.float32(2.0))"
    text = transform("VectorizeLoop", f"for j in T.vectorized(0, 8, 1):\n    b[j] = {chosen}", P)
    mask = asked.format('T.vector("int32x8", 0, 1, 2, 3, 4, 5, 6, 7)')
    assert f"T.load(a, T.ramp(0, 1, 8), mask={mask})" in text


def test_condition_around_what_all_lanes_share_is_serial(check):
    loop = "for j in T.{}(0, 8, 1):\n    if (j < n):\n        b[j] = a[j]\n    b[n] = a[0]"
    check("VectorizeLoop", P, loop.format("vectorized"), loop.format("serial"))


def test_a_division_stays_under_the_number_of_iterations(check):
    loop = "for j in T.{}(0, (n % 8), 1):\n    c[j] = T.div(c[0], n)"
    check("VectorizeLoop", P, loop.format("vectorized"), loop.format("serial"))


def test_run_time_extent_is_an_error(transform):
    with pytest.raises(CompassError, match="constant number of iterations, got n"):
        transform("VectorizeLoop", "for j in T.vectorized(0, n, 1):\n    b[j] = a[j]", P)


CARRIED = ("y[i + 1] = y[i] + 1", "y[i * 2] = y[i] + 1", "(y + 1)[i] = y[i]", "y[i] = x[i]; y[i + 8] = y[7 - i]")
APART = ("y[i] = y[i + 1] + 1", "y[i + 1] = x[i]; y[i + 20] = y[i]", "y[i + 8] = y[i]", "y[i] = y[i] + y[i + 8]")


@pytest.mark.parametrize("body", (*CARRIED, *APART))
def test_turns_that_depend_on_each_other_are_refused(body, tmp_path):
    head = "from compassc.dsl import script as S\n\n@S.prim_func\n"
    head += 'def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):\n    for i in S.vectorized(8):\n'
    path = tmp_path / "kernel.py"
    path.write_text(head + "".join(f"        {line}\n" for line in body.split("; ")))
    module = parse(load_kernels(path).entry("k"), "X2_1204")
    if body in APART:
        passes.lower(module, pass_manager.PassOptions())
        return
    with pytest.raises(CompassError, match="depend on each other") as told:
        passes.lower(module, pass_manager.PassOptions())
    assert told.value.code == "vectorize" and told.value.span.line == 6 + body.count(";")

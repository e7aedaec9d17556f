"""Random extents programs: what is said of them holds, and damaged ones do no harm. `make fuzz-extents` runs more."""

import time
from pathlib import Path
from random import Random

import pytest

from compass_core.errors import CompassError
from compass_core.extents import DEPTH_LIMIT, evaluate, runs
from compass_core.extents.interpreter import REFINED, STEP_LIMIT, Interpreter
from tests.choosing import some
from tests.extents.fuzz import harmful, wrong
from tests.extents.programs import TECS, Generator


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_extents_are_bounds_of_what_is_accessed(first):
    for seed in some(range(first, first + 250)):
        assert not wrong(seed)


@pytest.mark.parametrize("seed", [44679, 23257, 32697])
def test_what_random_programs_found(seed):
    assert not wrong(seed)


def with_runs(seed):
    """A program with runs of accesses, some of them beyond what is an address, and its scalars."""
    random = Random(seed)
    numbers = [0, 1, 4, 32, 4800, *random.sample([1 << 20, 1 << 31, -8, -1, 1.5, True], 2)]
    names = ["i", "m", "n", *random.sample(["f", "missing", "p", "a"], 1)]

    def place(depth):
        if not depth:
            return random.choice(numbers + names)
        a, b = place(depth - 1), place(random.randrange(depth))
        operator = random.choice(["add", "add", "sub", "mul", "i32", "u8", "min"])
        return [operator, a] if operator in ("i32", "u8") else [operator, *random.sample([a, b], 2)]

    def access():
        # most of them as kernels have them
        at = ["i32", ["add", ["mul", random.choice("imn"), 64], 4 * random.randrange(9)]]
        at = place(random.randrange(4)) if random.random() < 0.2 else at
        pointer = ["addr", random.choice("aaabp"), at]
        return ["access", pointer, random.choice((0, 0, 8, "n")), random.choice((4, 4, 4, 0, "n"))]

    def run():
        return [access() for _ in range(random.randrange(4, 20))]

    ends = random.choice(((0, "n"), ("m", ["add", "m", "n"]), (["?", 0, 3], "n")))
    body = [*run(), ["for", "i", *ends, random.choice((1, 3)), [*run(), ["if", ["lt", "i", "m"], run(), []]]], *run()]
    body = [["let", "i", 2], ["let", "m", ["mul", ["tid"], "n"]], ["let", "p", ["addr", "b", ["mul", "m", 4]]], *body]
    scalars = {"n": random.choice((1, 3, 40, 1 << 30)), "f": 2.5}
    return {
        "entry": "k",
        "params": {"a": 4, "b": 1},
        "functions": {"k": {"params": ["a", "b", "n", "f", "missing"], "body": body}},
    }, scalars


def test_runs_of_accesses_are_what_their_accesses_are_one_by_one(monkeypatch):
    monkeypatch.setattr(runs, "LEAST", 2)
    at_once = [evaluate(*with_runs(seed), TECS) for seed in range(80)]
    monkeypatch.setattr(runs, "LEAST", 1 << 30)
    assert at_once == [evaluate(*with_runs(seed), TECS) for seed in range(80)]


def test_damaged_programs_are_answered_or_refused():
    for seed in range(400):
        assert not harmful(seed)


def one(body, **functions):
    return {"entry": "k", "params": {"a": 4}, "functions": {"k": {"params": ["a", "n"], "body": body}, **functions}}


def calls(depth):
    """Functions that call the next one twice."""
    return {f"f{i}": {"params": ["p"], "body": [["do", ["call", f"f{i + 1}", "p"]]] * 2} for i in range(depth)} | {
        f"f{depth}": {"params": ["p"], "body": [["access", "p", 0, 4]]}
    }


def nested(depth, body):
    for i in range(depth):
        body = [["for", f"i{i}", 0, "n", 1, body]]
    return body


LONG = [["set", "x", ["add", "x", 1]], *[["access", "a", 0, 4]] * 5000]
HOSTILE = {
    "nested sets": one([["let", "x", 0], *nested(60, LONG[:2])]),
    "long bodies again and again": one(
        [
            ["let", "x", 0],
            ["let", "y", 0],
            [
                "while",
                ["lt", "y", "n"],
                [["set", "y", ["i32", ["mul", "y", "y"]]], *[["for", "i", 0, 0, 1, LONG]] * 20],
            ],
        ]
    ),
    "many variables": one(
        [
            *[["let", f"v{i}", 0] for i in range(20_000)],
            ["while", ["lt", "v0", "n"], [["set", "v0", ["mul", "v0", "v0"]], *nested(1, LONG[:2]) * 500]],
            ["let", "x", 0],
            *nested(1, LONG[:2]) * 5000,
        ]
    ),
    "endless": one([["while", 1, []], ["access", "a", 0, 4]]),
    "counting": one([["let", "i", 0], ["while", ["lt", "i", 1 << 60], [["set", "i", ["mul", "n", "i"]]]]]),
    "step 0": one([["for", "i", 0, 8, 0, [["access", "a", "i", 4]]]]),
    "itself": one([["do", ["call", "k", "a", "n"]]]),
    "doubling": one([["do", ["call", "f0", "a"]]], **calls(40)),
    "squares": one([["let", "x", "n"], ["for", "i", 0, 1 << 50, 1, [["set", "x", ["mul", "x", "x"]]]]]),
    "powers": one([["let", "x", "n"], *[["let", "x", ["mul", "x", ["add", "x", "x"]]]] * 20_000]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_end_soon(name):
    start = time.process_time()
    evaluate(HOSTILE[name], {"n": 1 << 31}, TECS)
    assert time.process_time() - start < 1


def test_shared_lists_are_counted_before_they_are_gathered():
    wide = [["do", ["tid"]]] * 1000
    for _ in range(8):
        wide = [wide] * 1000
    start = time.process_time()
    with pytest.raises(CompassError, match="parts"):
        evaluate(one(wide), {"n": 1}, TECS)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("value", [0, None, "x", [], 1 << 70, 10**4000, float("inf")])
def test_element_sizes_that_are_none_are_refused_or_answered(value):
    program = one([["access", "a", 0, 4]])
    program["params"]["a"] = value
    try:
        assert evaluate(program, {"n": 1}, TECS)["a"].elements in (0, 1)
    except CompassError as error:
        assert error.code == "invalid-gbin"


def test_deep_programs_are_refused():
    e = "n"
    for _ in range(100_000):
        e = ["not", e]
    with pytest.raises(CompassError, match=f"nested more than {DEPTH_LIMIT} levels"):
        evaluate(one([["let", "x", e]]), {"n": 1}, TECS)


def test_steps_do_not_depend_on_sizes():
    """What a program costs is bounded by its text: loops of any length are looked at as a whole."""
    for seed in range(100):
        generator = Generator(seed)
        program = generator.program()
        interpreter = Interpreter(program, {"n": (1 << 31) - 9, "m": (1 << 30) + 1}, TECS, ())
        interpreter.run("k", TECS)
        assert interpreter.steps < 20 * REFINED < STEP_LIMIT


def test_shares_of_tecs_are_exact_for_every_size():
    """The kernel of the first tutorial's kind: each TEC takes a share, the last ones less or nothing."""
    from compassc import codegen, dsl, passes

    source = dsl.load_kernels(Path(__file__).parents[2] / "examples/dynamic_add/kernel.py")
    module = passes.lower(dsl.parse(source.entry(None), "X2_1204"))
    program = codegen.generate(module).params["extents"]
    for n in (*range(1, 200), 4095, 4096, 4097, 100_000):
        assert {(e.elements, e.certain) for e in evaluate(program, {"n": n}, TECS).values()} == {(n, n)}, n

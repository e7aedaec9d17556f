"""Laws of spaces."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import UsageError
from compassc.tuning.space import ListSpace, ParameterSpace, Space, key_of
from tests.words import CHARACTERS

VALUES = st.lists(st.one_of(st.integers(-9, 9), st.text(CHARACTERS, max_size=3), st.booleans()), min_size=1, max_size=4)
PARAMETERS = st.dictionaries(
    st.text("abc", min_size=1, max_size=3), VALUES.map(lambda v: list({key_of(x): x for x in v}.values())), max_size=3
)
SPACES = PARAMETERS.map(ParameterSpace) | VALUES.map(ListSpace)


@settings(max_examples=25)
@given(SPACES, st.integers(0, 99))
def test_what_a_space_gives_is_in_it(space: Space, seed: int) -> None:
    rng = Random(seed)
    a, b = space.sample(rng), space.sample(rng)
    every = {key_of(c) for c in space.grid()}
    assert len(every) == space.size
    for candidate in (a, b, space.mutate(a, rng), space.crossover(a, b, rng)):
        assert key_of(candidate) in every and candidate in space
    assert {"no": "such"} not in space
    assert space.near(a, rng) == a and space.near({"no": "such"}, rng) is None
    if space.size != 1:
        assert key_of(space.mutate(a, rng)) != key_of(a)


def test_the_nearest_values_are_most_like_those_of_other_sizes() -> None:
    space = ParameterSpace({"tile": [8, 16, 64], "wide": [True, False], "word": ["a", "b"]})
    assert space.near({"tile": 100, "wide": False, "word": "c"}, Random(0)) == {"tile": 64, "wide": False, "word": "a"}


@settings(max_examples=25)
@given(SPACES, st.integers(0, 99))
def test_the_same_seed_gives_the_same(space: Space, seed: int) -> None:
    def walk() -> list[str]:
        rng = Random(seed)
        found = [space.sample(rng)]
        for _ in range(5):
            found.append(space.mutate(found[-1], rng))
        return [key_of(c) for c in found]

    assert walk() == walk()


@pytest.mark.parametrize("values", [[], [1, 1], [float("nan")], [[1, 2]], [None]])
def test_values_that_records_cannot_keep_are_refused(values: list[object]) -> None:
    with pytest.raises(UsageError, match="'tile'"):
        ParameterSpace({"tile": values})

"""Contexts of searches stand within each other: the innermost is asked first, one of another kind is none of theirs."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from compassc.compat.nesting import Nested


class Records(Nested):
    def _asked_by_builds(self):
        return nullcontext()


class Best(Records):
    """A subclass is of the same kind."""


class States(Nested):
    def _asked_by_builds(self):
        return nullcontext()


def test_contexts_of_a_kind_nest_and_those_of_another_do_not_count():
    first, second, other = Records(), Best(), States()
    assert Records.current is None and first.outer is None
    with first, other, second:
        assert Records.current is Best.current is second and second.outer is first
        assert States.current is other and other.outer is None
    assert Records.current is None and States.current is None


def test_a_context_is_entered_several_times():
    once = Records()
    with once, Records() as between, once:
        assert once.outer is between and Records.current is once
    assert Records.current is None and once.outer is None


def test_a_context_ends_where_an_error_leaves_it():
    with pytest.raises(KeyError), Records():
        raise KeyError("x")
    assert Records.current is None

"""Clients that wait for their turn: how many may, and who gives way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from remote_peers import PATIENCE, PORTS, answered, asking, raw

from compass_runtime import rpc
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.limits import Quota, of_the_busiest
from compass_runtime.rpc.server import WAITING_EACH
from compass_runtime.rpc.wire import Kind

SMALL = Quota(sessions=1, strangers=2)
HELLO = {"role": "client", "key": ""}


@given(st.lists(st.sampled_from("abc")))
def test_who_gives_way_is_of_an_address_that_none_exceeds(addresses: list[str]) -> None:
    found = of_the_busiest(enumerate(addresses), lambda one: one[1])
    assert len({address for _, address in found}) == bool(addresses)
    assert len(found) == max(map(addresses.count, "abc"), default=0)
    assert found == sorted(found)


@pytest.fixture
def start() -> Callable[[Quota], rpc.Server]:
    return lambda quota: rpc.Server(**PORTS, silent=True, quota=quota)


@pytest.fixture
def full(start: Callable[[Quota], rpc.Server]) -> Iterator[tuple[rpc.Server, list[Channel]]]:
    """A busy server, for which as many wait as may."""
    with start(SMALL) as own, ExitStack() as stack:
        stack.enter_context(rpc.connect(own.host, own.port))
        row = []
        for _ in range(WAITING_EACH * SMALL.strangers):
            row.append(asking(own, HELLO))
            stack.callback(row[-1].close)
            assert row[-1].receive(PATIENCE).kind == Kind.WAIT
        yield own, row


def test_a_full_row_keeps_nobody_from_the_greeting(full: tuple[rpc.Server, list[Channel]]) -> None:
    own, _ = full
    for _ in range(6):
        with raw(own) as sock:
            Channel(sock, "server").begin(PATIENCE)
        with pytest.raises(rpc.RPCError, match="too many wait for this server") as caught:
            rpc.connect(own.host, own.port)
        assert caught.value.code == "rpc-quota"


def test_who_comes_once_has_a_place_before_who_has_them_all(full: tuple[rpc.Server, list[Channel]]) -> None:
    own, row = full
    guest = asking(own, HELLO, "127.0.0.2")
    assert guest.receive(PATIENCE).kind == Kind.WAIT
    assert answered(row[-1]).head["code"] == "rpc-quota"
    assert row[0].receive(PATIENCE).kind == Kind.WAIT
    guest.close()

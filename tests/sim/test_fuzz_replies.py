"""Forged replies: a few of those of `make fuzz-replies`, and replies that never come to an end."""

from __future__ import annotations

import socket
import threading

import pytest
from fuzz_replies import REPLY, TICKET, Parent, fuzz

from compass_sim import worker as module


def test_forged_replies_are_results_or_errors() -> None:
    found = fuzz(3000, seed=0)
    assert sum(found.values()) == 3000
    assert {"worker-died", "job-refused", "kernel-timeout", "result without records", "result with records"} <= set(
        found
    )


@pytest.mark.parametrize("at_once", [0, REPLY.size])
def test_answers_in_drops_end_at_the_deadline(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte every 20 ms, of the reply or of the mebibyte that it announces: the answer is there before they end."""
    monkeypatch.setattr(module, "_GRACE", 0.1)
    message = REPLY.pack(0, 0, 0, 0, 0, 0, 0, 1 << 20, 0, 0, TICKET) + bytes(5000)
    parent, pair = Parent(), socket.socketpair()
    monkeypatch.setattr("fuzz_replies.socket.socketpair", lambda: pair)
    over = threading.Event()

    def drip() -> None:
        pair[1].send(message[:at_once])
        for byte in message[at_once:]:
            if over.wait(0.02):
                return
            pair[1].send(bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert parent.outcome(b"", ends=False, record=False) == "kernel-timeout"
        assert thread.is_alive()
    finally:
        over.set()
        thread.join()

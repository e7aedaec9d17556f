"""Messages: what is packed comes out again, and what is none is refused with words."""

from __future__ import annotations

import math
import socket
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from remote_peers import PATIENCE

from compass_runtime.rpc import wire
from compass_runtime.rpc.channel import Channel
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.wire import Decoder, Encoder, Inline, Kind, Raw
from tests.words import CHARACTERS

PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(CHARACTERS, max_size=20)
    | st.binary(max_size=20)
    | st.builds(bytearray, st.binary(max_size=20))
)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS, max_size=5), inner, max_size=4),
    max_leaves=12,
)


def refused(value: object) -> dict[str, object]:
    raise TypeError(value)


def through(value: object) -> object:
    """A value as the other side gets it, over the bytes of a frame."""
    encoder = Encoder(refused)
    head = {"v": encoder.value(value), "bodies": encoder.sizes}
    data = b"".join(wire.packed(Kind.CALL, 7, head, encoder.bodies))
    kind, call, size, body = wire.header(data[: wire.HEADER.size], greeting=False)
    assert (kind, call, wire.HEADER.size + size + body) == (Kind.CALL, 7, len(data))
    text = data[wire.HEADER.size :][:size]
    found = wire.parsed(text)
    return Decoder(found["bodies"], memoryview(data)[wire.HEADER.size + size :], refused).value(found["v"])


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_values_come_out_as_they_went_in(value: object) -> None:
    found = through(value)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("number", [math.inf, -math.inf])
def test_infinities(number: float) -> None:
    assert through(number) == number


def test_nan_long_texts_and_surrogates() -> None:
    assert math.isnan(through(math.nan))  # type: ignore[arg-type]
    for text in ("x" * 100_000, "é" * 70_000, "\ud800" * 70_000, "\ud800"):
        assert through(text) == text


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "bfloat16", "float64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_are_equal_byte_by_byte(dtype: str, shape: tuple[int, ...]) -> None:
    from compass_runtime.program import numpy_dtype

    count = math.prod(shape)
    array = (np.arange(count) % 2).astype(numpy_dtype(dtype)).reshape(shape)
    found = through(Inline(array))
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype, found.tobytes()) == (array.shape, array.dtype, array.tobytes())


def test_what_has_more_than_64_bits_is_refused() -> None:
    for number in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(OverflowError):
            through(number)


@given(st.binary(min_size=16, max_size=16))
@settings(max_examples=300, deadline=None)
def test_headers_are_read_or_refused(data: bytes) -> None:
    for greeting in (True, False):
        try:
            _, _, head, body = wire.header(data, greeting)
        except RPCError:
            continue
        assert head <= (4096 if greeting else 1 << 20) and body <= (0 if greeting else 8 << 20)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from(["array", "bytes", "text", "raw", "float32", "O", "nan"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["$", "body", "shape", "dtype", "items", "is", "id"]), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(JSON, JSON, st.binary(max_size=64))
@settings(max_examples=400, deadline=None)
def test_what_describes_no_value_is_refused(sizes: object, value: object, body: bytes) -> None:
    def other(kind: str, given: object) -> object:
        return kind

    try:
        Decoder(sizes, memoryview(body), other).value(value)
    except RPCError as error:
        assert error.code == "rpc-protocol"


@pytest.mark.parametrize("text", [b"[" * 100_000, b"NaN", b"{", b"\xff", b"1" * 5000, b""])
def test_heads_that_are_no_json(text: bytes) -> None:
    with pytest.raises(RPCError, match="JSON"):
        wire.parsed(text)


@given(st.lists(st.binary(max_size=200_000), min_size=1, max_size=4), st.integers(1, 70_000))
@settings(max_examples=12, deadline=None)
def test_frames_come_whole_however_they_are_cut(bodies: list[bytes], step: int) -> None:
    ours, theirs = socket.socketpair()
    data = b"".join(b"".join(wire.packed(Kind.CALL, n, {"n": n}, [body])) for n, body in enumerate(bodies))

    def send() -> None:
        with theirs:
            for at in range(0, len(data), step):
                theirs.sendall(data[at : at + step])

    writer = threading.Thread(target=send)
    writer.start()
    with ours:
        channel = Channel(ours, "test", PATIENCE)
        channel.greeting = False
        for n, body in enumerate(bodies):
            frame = channel.receive(PATIENCE)
            assert (frame.kind, frame.call, frame.head, bytes(frame.body)) == (Kind.CALL, n, {"n": n}, body)
        with pytest.raises(RPCError, match="closed"):
            channel.receive(PATIENCE)
    writer.join()


def test_raw_bytes_are_views_that_nobody_can_write() -> None:
    found = through(Raw(b"abc"))
    assert isinstance(found, memoryview) and found.readonly and bytes(found) == b"abc"

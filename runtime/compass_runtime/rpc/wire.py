"""Messages: how they lie on a connection, and how values lie in them. docs/remote.md describes the same for other makers.

Both sides begin with a preamble: `CPSRPC` and the version of the protocol. Then come frames: a header of 16 bytes, a head
(JSON) and a body (bytes that the head speaks of). A frame is small: what is larger than a piece goes in pieces, each with a call
and an answer of its own. So neither side needs more than one buffer, nobody is sent more than he has asked for, and between two
pieces a call can be refused or cancelled.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compass_core.reading.jsontext import Json
from compass_core.reading.limits import RPC_BODY, RPC_GREETING, RPC_HEAD
from compass_runtime.rpc.errors import damaged

MAGIC = b"CPSRPC"
VERSION = 2
PREAMBLE = struct.Struct("<6sH")
HEADER = struct.Struct("<B3xIII")
"""Kind, three bytes that are 0, number of the call, bytes of the head, bytes of the body."""
PIECE = 4 << 20
"""So many bytes of a file or tensor go with one message."""

Buffer = bytes | bytearray | memoryview


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    CHALLENGE = 2
    PROOF = 3
    WELCOME = 4
    REFUSED = 5
    CALL = 6
    RESULT = 7
    ERROR = 8
    CANCEL = 9
    WAIT = 10
    NOTE = 11


GREETINGS = frozenset((Kind.HELLO, Kind.CHALLENGE, Kind.PROOF, Kind.WELCOME, Kind.REFUSED, Kind.WAIT))
"""What there is before both sides know each other. Such frames are small, and have no body."""


class Frame(NamedTuple):
    """One message. `body` lies in a buffer of the connection until the next message is read. `text`: of a greeting, its head as it
    was sent, which proofs are made of."""

    kind: Kind
    call: int
    head: Json
    body: memoryview
    text: bytes = b""

    @property
    def fields(self) -> dict[str, Json]:
        """The head, where it is an object. RPCError where it is something else."""
        if not isinstance(self.head, dict):
            raise damaged("a message without a head")
        return self.head


def _refused(constant: str) -> object:
    raise ValueError(constant)


_KINDS = {int(kind): kind for kind in Kind}
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_refused).decode


def text_of(head: object) -> bytes:
    """The head of a message, as it is sent."""
    return _encode(head).encode()


def preamble() -> bytes:
    """The first bytes of either side."""
    return PREAMBLE.pack(MAGIC, VERSION)


def header(data: Buffer, greeting: bool) -> tuple[Kind, int, int, int]:
    """Kind, call, and the sizes of head and body. RPCError for what is none, or too large; `greeting`: for what may come before
    both sides know each other."""
    kind, call, head, body = HEADER.unpack(data)
    if bytes(data[1:4]) != b"\0\0\0" or kind not in _KINDS:
        raise damaged("a header that is none")
    if (kind in GREETINGS) != greeting:
        raise damaged(f"a message of kind {_KINDS[kind].name} that does not belong here")
    if head > (RPC_GREETING if greeting else RPC_HEAD).most or body > (0 if greeting else RPC_BODY.most):
        raise damaged(f"a message of {head} and {body} bytes is too large")
    return _KINDS[kind], call, head, body


def packed(kind: Kind, call: int, head: object, bodies: Sequence[Buffer] = ()) -> list[Buffer]:
    """The parts of a frame."""
    text = text_of(head)
    size = sum(len(body) for body in bodies)
    if len(text) > RPC_HEAD.most or size > RPC_BODY.most:
        where = "a remote call"
        (RPC_HEAD if len(text) > RPC_HEAD.most else RPC_BODY).check(max(len(text), size), where)
    return [HEADER.pack(kind, call, len(text), size) + text, *bodies]


def parsed(text: Buffer) -> Json:
    """The head of a frame. RPCError where it is no JSON."""
    try:
        head: Json = _decode(str(text, "utf-8"))
        return head
    except (ValueError, RecursionError):
        raise damaged("a head that is no JSON") from None


# -- values

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_PLAIN = (bool, str)
_LONG = 1 << 16
"""Characters from which on a text lies in the body."""


class Encoder:
    """Values of a message, as JSON and bodies. `other` describes what lives on one of the sides, or raises."""

    def __init__(self, other: Callable[[object], dict[str, Json]]) -> None:
        self.bodies: list[Buffer] = []
        self._other = other

    def value(self, value: object) -> Json:
        """A value as JSON: what JSON has as it is, all else as an object whose `$` says what it is."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return value if len(value) < _LONG else self._body("text", value.encode("utf-8", "surrogatepass"))
        if isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 64:
                raise OverflowError(f"the number {value} has more than 64 bits")
            return int(value)
        if isinstance(value, float):
            return float(value) if value - value == 0 else {"$": "float", "is": str(float(value))}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise TypeError("the keys of a dict must be texts")
            return {"$": "dict", "items": {key: self.value(item) for key, item in value.items()}}
        if isinstance(value, bytearray):
            return self._body("bytearray", value)
        if isinstance(value, (bytes, memoryview)):
            return self._body("bytes", value)
        return self._other_value(value)

    def _other_value(self, value: object) -> Json:
        import numpy as np

        if isinstance(value, np.generic):
            return self.value(value.item())
        if isinstance(value, np.dtype):
            return {"$": "dtype", "is": value.name}
        if isinstance(value, Inline):
            array = np.ascontiguousarray(value.array)
            found = self._body("array", array.reshape(-1).view(np.uint8).data)
            return {**found, "dtype": array.dtype.name, "shape": list(value.array.shape)}
        if isinstance(value, Raw):
            return self._body("raw", value.content)
        return self._other(value)

    def _body(self, kind: str, content: Buffer) -> dict[str, Json]:
        self.bodies.append(content if isinstance(content, memoryview) else memoryview(content))
        return {"$": kind, "body": len(self.bodies) - 1}

    @property
    def sizes(self) -> list[int]:
        return [len(body) for body in self.bodies]


@dataclass(frozen=True)
class Raw:
    """Bytes that the other side gets as a view of its buffer, which is good until the next message."""

    content: Buffer


@dataclass(frozen=True)
class Inline:
    """An array that travels with a message, rather than a handle of one."""

    array: Array


class Decoder:
    """Values of a message that came. `other` gives what a description of a side's own object stands for."""

    def __init__(self, sizes: object, body: memoryview, other: Callable[[str, dict[str, Json]], object]) -> None:
        self._parts: list[memoryview] = []
        at = 0
        for size in sizes if isinstance(sizes, list) else ():
            if type(size) is not int or not 0 <= size <= len(body) - at:
                raise damaged("bodies of other sizes than it says")
            self._parts.append(body[at : at + size])
            at += size
        if at != len(body):
            raise damaged("a body that it does not speak of")
        self._other = other

    def value(self, given: Json) -> object:
        """The value that JSON stands for; RPCError where it stands for none."""
        if isinstance(given, list):
            return [self.value(item) for item in given]
        if not isinstance(given, dict):
            return given
        kind, items, text = given.get("$"), given.get("items"), given.get("is")
        if kind == "dict" and isinstance(items, dict):
            return {key: self.value(item) for key, item in items.items()}
        if kind == "float" and isinstance(text, str) and text in _FLOATS:
            return _FLOATS[text]
        if kind in ("raw", "bytes", "bytearray", "text", "array"):
            return self._of_body(kind, given)
        if kind == "dtype":
            return dtype_of(text)
        if not isinstance(kind, str):
            raise damaged("a value of no kind")
        return self._other(kind, given)

    def _of_body(self, kind: str, given: dict[str, Json]) -> object:
        number = given.get("body")
        if type(number) is not int or not 0 <= number < len(self._parts):
            raise damaged("a value without its bytes")
        part = self._parts[number]
        if kind == "raw":
            return part.toreadonly()
        if kind == "text":
            try:
                return str(part, "utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise damaged("a text that is none") from None
        if kind == "array":
            return _array(part, given)
        return bytes(part) if kind == "bytes" else bytearray(part)


def shape_of(given: object) -> tuple[int, ...]:
    """A shape that came. RPCError for what is none."""
    if not isinstance(given, (list, tuple)) or len(given) > 32:
        raise damaged("a shape that is none")
    if any(type(n) is not int or not 0 <= n < 1 << 48 for n in given):
        raise damaged("a shape that is none")
    return tuple(given)


def dtype_of(name: object) -> NumpyDType:
    """A data type of tensors by its name. RPCError for what is none."""
    import numpy as np

    from compass_runtime.program import numpy_dtype

    try:
        found = numpy_dtype(name) if isinstance(name, str) and len(name) < 64 else None
    except (TypeError, ValueError):
        found = None
    if found is None or (found.kind not in "biufcV" or found.itemsize > 16 or found.names is not None):
        raise damaged("a data type that is none")
    return np.dtype(found)


def _array(part: memoryview, given: dict[str, Json]) -> Array:
    import math

    import numpy as np

    dtype, shape = dtype_of(given.get("dtype")), shape_of(given.get("shape"))
    if math.prod(shape) * dtype.itemsize != len(part):
        raise damaged("an array of another size than its bytes")
    return np.frombuffer(part, np.uint8).copy().view(dtype).reshape(shape)

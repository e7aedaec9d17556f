"""How much of each tensor a kernel touches: runs the kernel's index arithmetic, for every TEC.

The compiler slices a kernel down to what addresses depend on (`compassc.analysis.extents`); that program, plain JSON,
is evaluated here: by the compiler when all scalars are known, and by the runtime with the scalars of a run. Loops whose
addresses are affine in the loop variable are evaluated at once; others are executed.

Program: `{"entry": name, "params": {pointer: bytes per element}, "functions": {name: {"params": [...], "body": [...]}}}`.
Statements: `["let", var, e]` (definition), `["set", var, e]` (a new value), `["for", var, start, stop, step, body]`, `["tec", var, start, stop, body]`,
`["while", c, body]`, `["if", c, then, else]`, `["access", pointer, first byte, bytes]`, `["do", e]`, `["break"]`,
`["return", e or null]`. Expressions: a number, `"name"`, `["?"]` (depends on data), or `[operator, ...]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STEP_LIMIT = 300_000
"""Statements executed before the answer is that it takes too long; a second or two."""
LARGEST = 1 << 62


@dataclass(frozen=True)
class Extent:
    """`elements` a tensor needs from its start on; None with a `reason` when the index arithmetic cannot tell."""

    elements: int | None
    reason: str = ""


class Unknown:
    """A value that depends on data or on a scalar that is not given."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


@dataclass(frozen=True)
class Address:
    """A byte offset into a tensor parameter; `root` None is memory of the kernel's own."""

    root: str | None
    offset: Any


class Affine:
    """`const + sum(coefficient * variable)`, each variable of a box 0..count-1."""

    __slots__ = ("const", "terms")

    def __init__(self, const: Any, terms: dict[int, Any]) -> None:
        self.const, self.terms = const, terms


class NotAffine(Exception):
    """An operation needs the value of a symbolic loop variable."""


class Break(Exception):
    pass


class Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class TooLong(Exception):
    pass


def _trunc_div(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _ceildiv(a: int, b: int) -> int:
    return _trunc_div(a + b - 1, b)


def _strided(width: int, stride: int, size: int) -> int:
    """Bytes from the first row's start to the last row's end, of a copy of `size` bytes in rows."""
    rows = (size + width - 1) // max(width, 1)
    return (rows - 1) * stride + width if rows > 0 else 0


OPERATORS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _trunc_div,
    "mod": lambda a, b: a - _trunc_div(a, b) * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << (b & 31),
    "shr": lambda a, b: a >> (b & 31),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "not": lambda a: not a,
    "bitnot": lambda a: ~a,
    "int": int,
    "float": float,
    "ceildiv": _ceildiv,
    "strided": _strided,
    "abs": abs,
}
"""What the operators of expressions mean on numbers."""


def fold(op: str, *args: Any) -> Any:
    """The expression `[op, *args]`, shorter where whole numbers among the arguments allow it."""
    if op == "select" and isinstance(args[0], (bool, int)):
        return args[1] if args[0] else args[2]
    if all(type(a) is int for a in args) and op in _EXACT:
        return OPERATORS[op](*args)
    if op == "strided" and args[0] == args[1] == args[2]:
        return fold("max", 0, args[2])
    if op in ("add", "mul"):
        neutral = 0 if op == "add" else 1
        for one, other in (args, args[::-1]):
            if type(one) is int and one == neutral:
                return other
            if type(one) is int and op == "mul" and one == 0:
                return 0
    return [op, *args]


_EXACT = frozenset({"add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le", "gt", "ge"})


class _Machine:
    def __init__(self, program: dict[str, Any], scalars: dict[str, Any], tec_count: int) -> None:
        self.functions = program["functions"]
        self.scalars = scalars
        self.tecs = tec_count
        self.tid = 0
        self.steps = 0
        self.symbols = 0
        self.boxes: dict[int, int] = {}
        self.top: dict[str, int] = dict.fromkeys(program["params"], 0)
        self.unknown: dict[str, str] = {}

    def run(self, entry: str, params: dict[str, int]) -> None:
        env: dict[str, Any] = {}
        for name in self.functions[entry]["params"]:
            if name in params:
                env[name] = Address(name, 0)
            elif self.scalars.get(name) is not None:
                env[name] = self.scalars[name]
            else:
                env[name] = Unknown(f"the scalar {name!r} has no value")
        try:
            self.body(self.functions[entry]["body"], env)
        except Returned:
            return

    # -- statements

    def body(self, statements: list[Any], env: dict[str, Any]) -> None:
        for s in statements:
            self.steps += 1
            if self.steps > STEP_LIMIT:
                raise TooLong
            getattr(self, "do_" + s[0])(s, env)

    def do_let(self, s: list[Any], env: dict[str, Any]) -> None:
        env[s[1]] = self.expr(s[2], env)

    do_set = do_let

    def do_do(self, s: list[Any], env: dict[str, Any]) -> None:
        self.expr(s[1], env)

    def do_break(self, s: list[Any], env: dict[str, Any]) -> None:
        if self.boxes:
            raise NotAffine
        raise Break

    def do_return(self, s: list[Any], env: dict[str, Any]) -> None:
        if self.boxes:
            raise NotAffine
        raise Returned(None if s[1] is None else self.expr(s[1], env))

    def do_if(self, s: list[Any], env: dict[str, Any]) -> None:
        cond = self.concrete(self.expr(s[1], env))
        if not isinstance(cond, Unknown):
            self.body(s[2] if cond else s[3], env)
            return
        before = dict(env)
        for branch in (s[2], s[3]):
            try:
                self.body(branch, env)
            except (Break, Returned):
                continue
        for name, value in env.items():
            if name in before and before[name] is not value:
                env[name] = Unknown(cond.reason)

    def do_while(self, s: list[Any], env: dict[str, Any]) -> None:
        if self.boxes:
            raise NotAffine
        try:
            while True:
                cond = self.expr(s[1], env)
                if isinstance(cond, Unknown):
                    self._once(s[2], env, cond)
                    return
                if not cond:
                    return
                self.body(s[2], env)
        except Break:
            return

    def _once(self, body: list[Any], env: dict[str, Any], why: Unknown) -> None:
        """A loop of unknown length: whatever it changes is unknown, then one pass over its accesses."""
        for name in _assigned(body):
            if name in env:
                env[name] = why
        self.body(body, env)

    def do_tec(self, s: list[Any], env: dict[str, Any]) -> None:
        _, var, start, stop, body = s
        low, high = self.concrete(self.expr(start, env)), self.concrete(self.expr(stop, env))
        if isinstance(low, Unknown) or isinstance(high, Unknown) or low <= self.tid < high:
            self.body(body, {**env, var: self.tid})

    def do_for(self, s: list[Any], env: dict[str, Any]) -> None:
        _, var, start, stop, step, body = s
        bounds = [self.concrete(self.expr(e, env)) for e in (start, stop, step)]
        bad = [b for b in bounds if isinstance(b, Unknown)]
        if bad:
            self._once(body, {**env, var: bad[0]}, bad[0])
            return
        low, high, stride = bounds
        count = max(0, -((low - high) // stride)) if stride > 0 else 0
        if count > 2 and not _assigned(body) and self._symbolic(var, low, stride, count, body, env):
            return
        for i in range(count):
            env[var] = low + i * stride
            try:
                self.body(body, env)
            except Break:
                break

    def _symbolic(self, var: str, low: int, stride: int, count: int, body: list[Any], env: dict[str, Any]) -> bool:
        """All iterations at once; False when some address is not affine in the loop variable."""
        self.symbols += 1
        key = self.symbols
        self.boxes[key] = count
        saved = dict(self.top), dict(self.unknown)
        try:
            self.body(body, {**env, var: Affine(low, {key: stride})})
            return True
        except NotAffine:
            self.top, self.unknown = saved
            return False
        finally:
            del self.boxes[key]

    def do_access(self, s: list[Any], env: dict[str, Any]) -> None:
        pointer = self.expr(s[1], env)
        if isinstance(pointer, Unknown):
            self._blame_all(pointer.reason)
            return
        if not isinstance(pointer, Address) or pointer.root is None:
            return
        size = self.concrete(self.expr(s[3], env))
        offset = self.binary("add", pointer.offset, self.expr(s[2], env))
        for value in (size, offset):
            if isinstance(value, Unknown):
                self.unknown.setdefault(pointer.root, value.reason)
                return
        if size > 0:
            self.top[pointer.root] = max(self.top[pointer.root], self._maximum(offset) + size)

    def _blame_all(self, reason: str) -> None:
        for name in self.top:
            self.unknown.setdefault(name, reason)

    def _maximum(self, value: Any) -> Any:
        if not isinstance(value, Affine):
            return value
        return value.const + sum(max(0, c * (self.boxes[k] - 1)) for k, c in value.terms.items())

    # -- expressions

    def concrete(self, value: Any) -> Any:
        """A value that must not depend on a symbolic loop variable."""
        if isinstance(value, Affine):
            raise NotAffine
        return value

    def expr(self, e: Any, env: dict[str, Any]) -> Any:
        if isinstance(e, str):
            return env.get(e, Unknown(f"{e!r} is not known"))
        if not isinstance(e, list):
            return e
        op = e[0]
        if op == "?":
            return Unknown("an address depends on data")
        if op == "tid":
            return self.tid
        if op == "tecs":
            return self.tecs
        if op == "select":
            cond = self.concrete(self.expr(e[1], env))
            return cond if isinstance(cond, Unknown) else self.expr(e[2] if cond else e[3], env)
        if op in ("and", "or"):
            return self._logical(op, e, env)
        if op == "call":
            return self._call(e, env)
        if op == "local":
            return Address(None, 0)
        args = [self.expr(x, env) for x in e[1:]]
        if op == "addr":
            return self._address(args[0], args[1])
        if op == "isnull":
            return args[0] if isinstance(args[0], Unknown) else False
        for a in args:
            if isinstance(a, Unknown):
                return a
        return self.binary(op, *args)

    def _logical(self, op: str, e: list[Any], env: dict[str, Any]) -> Any:
        left = self.concrete(self.expr(e[1], env))
        if isinstance(left, Unknown):
            return left
        return self.concrete(self.expr(e[2], env)) if bool(left) == (op == "and") else left

    @staticmethod
    def _address(base: Any, offset: Any) -> Any:
        if isinstance(base, Unknown) or not isinstance(base, Address):
            return base if isinstance(base, Unknown) else Unknown("a pointer made from a number")
        if base.root is None:
            return base
        if isinstance(offset, Unknown):
            return Address(base.root, offset)
        return Address(base.root, _add(base.offset, offset))

    def binary(self, op: str, *args: Any) -> Any:
        if isinstance(args[0], Unknown) or isinstance(args[-1], Unknown):
            return args[0] if isinstance(args[0], Unknown) else args[-1]
        if not any(isinstance(a, Affine) for a in args):
            try:
                result = OPERATORS[op](*args)
                return result if -LARGEST < result < LARGEST else Unknown("the index arithmetic leaves every address")
            except (ZeroDivisionError, TypeError, ValueError, OverflowError):
                return Unknown(f"the index arithmetic fails at `{op}`")
        if op == "int":
            return args[0]
        a, b = args[0], args[-1]
        if op == "add":
            return _add(a, b)
        if op == "sub":
            return _add(a, _scale(b, -1))
        if op == "mul" and not (isinstance(a, Affine) and isinstance(b, Affine)):
            return _scale(a, b) if isinstance(a, Affine) else _scale(b, a)
        if op == "shl" and not isinstance(b, Affine):
            return _scale(a, 1 << (b & 31))
        raise NotAffine

    def _call(self, e: list[Any], env: dict[str, Any]) -> Any:
        function = self.functions[e[1]]
        inner = dict(zip(function["params"], (self.expr(x, env) for x in e[2:])))
        try:
            self.body(function["body"], inner)
        except Returned as r:
            return r.value
        return None


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return a if isinstance(a, Unknown) else b
    if not isinstance(a, Affine) and not isinstance(b, Affine):
        return a + b
    terms: dict[int, Any] = {}
    const = 0
    for x in (a, b):
        if isinstance(x, Affine):
            const += x.const
            for k, c in x.terms.items():
                terms[k] = terms.get(k, 0) + c
        else:
            const += x
    return Affine(const, terms)


def _scale(a: Any, factor: Any) -> Any:
    if isinstance(a, Affine):
        return Affine(a.const * factor, {k: c * factor for k, c in a.terms.items()})
    return a * factor


_BODIES = {"for": (5,), "tec": (4,), "while": (2,), "if": (2, 3)}  # where the statements keep their nested bodies


def _assigned(body: list[Any]) -> list[str]:
    """Variables a body gives a new value."""
    found = [s[1] for s in body if s[0] == "set"]
    for s in body:
        for position in _BODIES.get(s[0], ()):
            found += _assigned(s[position])
    return found


def evaluate(program: dict[str, Any], scalars: dict[str, Any], tec_count: int) -> dict[str, Extent]:
    """The extent of every pointer parameter, over all TECs, with the given scalar values (NumPy's are taken as Python's)."""
    plain = {name: value.item() if hasattr(value, "item") else value for name, value in scalars.items()}
    machine = _Machine(program, plain, tec_count)
    for tid in range(tec_count):
        machine.tid = tid
        try:
            machine.run(program["entry"], program["params"])
        except TooLong:
            machine._blame_all("the index arithmetic takes too long to follow")
            break
        except RecursionError:
            machine._blame_all("the index arithmetic is nested too deeply")
            break
    out = {}
    for name, elem in program["params"].items():
        if name in machine.unknown:
            out[name] = Extent(None, machine.unknown[name])
        else:
            out[name] = Extent(-(-machine.top[name] // elem))
    return out

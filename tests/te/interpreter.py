"""Runs kernel IR as Python: TECs by turns from barrier to barrier, every access checked against its buffer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from compass_core.operators import OPERATORS
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType

OWN = ("private", "lsram")


class OutOfBounds(AssertionError):
    """A kernel touched what no buffer has."""


class Kernel:
    """A function of the IR; call it with arrays and numbers in the order of its parameters."""

    def __init__(self, function: S.PrimFunc, tecs: int = 4) -> None:
        self.function, self.tecs = function, tecs
        self.names: dict[E.Var, str] = {}
        self.lines: list[str] = []
        self.shared: list[str] = []
        params = [self._name(p) for p in function.params]
        self._body(function.body, 1)
        head = f"def kernel(tid, shared, {', '.join(params)}):"
        text = "\n".join([head, *self.lines, "    yield"])
        names = {"np": np, "ops": {k: o.evaluate for k, o in OPERATORS.items()}, "at": _at, "wrap": _wrap, "size": tecs}
        exec(compile(text, f"<{function.name}>", "exec"), names)  # noqa: S102 - text that was made here
        self.text, self._kernel = text, names["kernel"]

    def __call__(self, *args: object) -> None:
        shared: dict[str, np.ndarray] = {}
        flat = [a.reshape(-1) if isinstance(a, np.ndarray) else a for a in args]
        with np.errstate(all="ignore"):
            running: list[Iterator[None]] = [self._kernel(t, shared, *flat) for t in range(self.tecs)]
            for _ in itertools.count():
                done = [next(r, "end") for r in running]
                if all(d == "end" for d in done):
                    return
                assert len(set(map(str, done))) == 1, "some TECs wait at a barrier that others do not reach"

    # -- statements

    def _name(self, var: E.Var) -> str:
        return self.names.setdefault(var, f"{''.join(c if c.isalnum() else '_' for c in var.name)}_{len(self.names)}")

    def _emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _body(self, body: S.Body, depth: int) -> None:
        for s in body:
            getattr(self, f"_{type(s).__name__.lower()}")(s, depth)
        if not body:
            self._emit(depth, "pass")

    def _declbuffer(self, s: S.DeclBuffer, depth: int) -> None:
        pass

    def _alloc(self, s: S.Alloc, depth: int) -> None:
        name, count = self._name(s.buffer.data), int(np.prod([e.value for e in s.buffer.shape]))
        made = f"np.full({count}, 77, {_numpy(s.buffer.dtype)!r})"
        if s.buffer.data.dtype.scope in OWN:
            self._emit(depth, f"{name} = {made}")
        else:
            self._emit(depth, f"{name} = shared.setdefault({name!r}, {made})")

    def _let(self, s: S.Let, depth: int) -> None:
        self._emit(depth, f"{self._name(s.var)} = {self._expr(s.value)}")

    def _if(self, s: S.If, depth: int) -> None:
        self._emit(depth, f"if {self._expr(s.cond)}:")
        self._body(s.then, depth + 1)
        if s.orelse:
            self._emit(depth, "else:")
            self._body(s.orelse, depth + 1)

    def _for(self, s: S.For, depth: int) -> None:
        bounds = [self._expr(e) for e in (s.start, s.stop, s.step)]
        if s.kind == "tec":
            self._emit(depth, f"for {self._name(s.var)} in [t for t in range({bounds[0]}, {bounds[1]}) if t == tid]:")
        else:
            self._emit(depth, f"for {self._name(s.var)} in range({', '.join(bounds)}):")
        self._body(s.body, depth + 1)

    def _store(self, s: S.Store, depth: int) -> None:
        assert s.mask is None
        target = self._name(s.buffer.data)
        self._emit(depth, f"{target}[{self._index(s.buffer, s.indices)}] = {self._expr(s.value)}")

    def _eval(self, s: S.Eval, depth: int) -> None:
        assert isinstance(s.value, E.Call) and s.value.op == "barrier"
        self._emit(depth, "yield")

    def _index(self, buffer: E.Buffer, indices: tuple[E.Expr, ...]) -> str:
        assert isinstance(buffer.data.dtype, PointerType)
        shape = ", ".join(map(self._expr, buffer.shape))
        return f"at({self._name(buffer.data)}, ({shape},), ({', '.join(map(self._expr, indices))},))"

    # -- expressions

    def _expr(self, e: E.Expr) -> str:
        if isinstance(e, (E.IntImm, E.FloatImm)):
            return f"np.dtype({_numpy(e.dtype)!r}).type({e.value})" if e.dtype.is_floating else repr(e.value)
        if isinstance(e, E.Var):
            return self._name(e)
        if isinstance(e, E.Load):
            found = f"{self._name(e.buffer.data)}[{self._index(e.buffer, e.indices)}]"
            return f"int({found})" if e.dtype.is_integer else found
        if isinstance(e, E.Select):
            return f"({self._expr(e.a)} if {self._expr(e.cond)} else {self._expr(e.b)})"
        if isinstance(e, E.Binary):
            return self._binary(e)
        if isinstance(e, E.Unary):
            return f"int(not {self._expr(e.a)})" if e.op == "not" else f"wrap(~{self._expr(e.a)}, {_numpy(e.dtype)!r})"
        if isinstance(e, E.Cast):
            if e.dtype.is_integer:
                return f"wrap(int({self._expr(e.value)}), {_numpy(e.dtype)!r})"
            return f"np.dtype({_numpy(e.dtype)!r}).type({self._expr(e.value)})"
        assert isinstance(e, E.Call), type(e)
        return {"get_local_id": "tid", "get_local_size": "size"}[e.op]

    def _binary(self, e: E.Binary) -> str:
        a, b = self._expr(e.a), self._expr(e.b)
        if e.op in E.LOGICAL:
            return f"int(bool({a} {e.op} {b}))"
        if e.a.dtype.is_floating and e.op not in ("min", "max"):
            sign = {
                "add": "+",
                "sub": "-",
                "mul": "*",
                "div": "/",
                "lt": "<",
                "le": "<=",
                "eq": "==",
                "ne": "!=",
                "gt": ">",
                "ge": ">=",
            }[e.op]
            return f"({a} {sign} {b})"
        made = f"ops[{e.op!r}]({a}, {b})"
        return f"wrap({made}, {_numpy(e.dtype)!r})" if e.dtype.is_integer and not e.dtype.is_bool else made


def _numpy(dtype: object) -> str:
    return str(dtype)


def _wrap(value: int, kind: str) -> int:
    bits = int(kind.lstrip("uint"))
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind.startswith("int") and value >> (bits - 1) else value


def _at(array: np.ndarray, shape: tuple[int, ...], indices: tuple[int, ...]) -> int:
    position = 0
    for extent, index in zip(shape, indices, strict=True):
        if not 0 <= index < extent:
            raise OutOfBounds(f"{indices} in a buffer of {shape}")
        position = position * extent + index
    return position

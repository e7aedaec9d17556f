"""Runs kernel IR as Python: TECs by turns from barrier to barrier, every access checked against its buffer.

Vectors are arrays. Transfers in the background take place when they are waited for, or (`early`) at once: a kernel must
not tell the difference.
"""

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

    def __init__(self, function: S.PrimFunc, tecs: int = 4, early: bool = False) -> None:
        self.function, self.tecs = function, tecs
        self.names: dict[E.Var, str] = {}
        self.lines: list[str] = []
        params = [self._name(p) for p in function.params]
        self._body(function.body, 1)
        head = f"def kernel(tid, shared, {', '.join(params)}):\n    started = []"
        text = "\n".join([head, *self.lines, "    yield"])
        names = {"np": np, "size": tecs, "early": early, **_HELPERS}
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

    _assign = _let

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
        place = f"{self._name(s.buffer.data)}, {self._index(s.buffer, s.indices, s.mask)}"
        self._emit(depth, f"put({place}, {self._expr(s.value)})")

    def _eval(self, s: S.Eval, depth: int) -> None:
        call = s.value
        assert isinstance(call, E.Call)
        if call.op == "barrier":
            self._emit(depth, "finish(started); yield")
        elif call.op in ("wait_events", "free_events"):
            self._emit(depth, "finish(started)")
        elif call.op == "dma_memset":
            self._emit(depth, f"fill({', '.join(map(self._expr, call.args))})")
        else:
            arguments = ", ".join(map(self._expr, call.args[:6]))
            kept = "started" if call.op == "async_dma_copy" else "None"
            assert call.op in ("dma_copy", "async_dma_copy"), call.op
            self._emit(depth, f"copy({kept}, early, {arguments})")

    def _index(self, buffer: E.Buffer, indices: tuple[E.Expr, ...], mask: E.Expr | None) -> str:
        assert isinstance(buffer.data.dtype, PointerType)
        shape = "".join(f"{self._expr(e)}, " for e in buffer.shape)
        where = "None" if mask is None else self._expr(mask)
        return f"at({self._name(buffer.data)}, ({shape}), ({', '.join(map(self._expr, indices))},), {where}), {where}"

    # -- expressions

    def _expr(self, e: E.Expr) -> str:
        found = _RULES.get(type(e))
        assert found is not None, type(e)
        return found(self, e)

    def _number(self, e: E.IntImm | E.FloatImm) -> str:
        if not e.dtype.is_floating:
            return repr(e.value)
        return f"np.dtype({_numpy(e.dtype)!r}).type({e.value!r})".replace("inf", "np.inf")

    def _load(self, e: E.Load) -> str:
        return f"get({self._name(e.buffer.data)}, {self._index(e.buffer, e.indices, e.mask)})"

    def _select(self, e: E.Select) -> str:
        cond, a, b = map(self._expr, (e.cond, e.a, e.b))
        return f"np.where({cond}, {a}, {b})" if e.cond.dtype.is_vector else f"({a} if {cond} else {b})"

    def _ramp(self, e: E.Ramp) -> str:
        return f"({self._expr(e.base)} + np.arange({e.lanes}) * {self._expr(e.stride)})"

    def _unary(self, e: E.Unary) -> str:
        if e.dtype.is_mask:
            return f"(~np.asarray({self._expr(e.a)}, bool))"
        return f"int(not {self._expr(e.a)})" if e.op == "not" else f"wrap(~{self._expr(e.a)}, {_numpy(e.dtype)!r})"

    def _cast(self, e: E.Cast) -> str:
        if e.dtype.is_integer and e.value.dtype.is_floating:
            return f"rounded({self._expr(e.value)}, {_numpy(e.dtype)!r})"
        if e.dtype.is_integer:
            return f"wrap(int({self._expr(e.value)}), {_numpy(e.dtype)!r})"
        return f"np.dtype({_numpy(e.dtype)!r}).type({self._expr(e.value)})"

    def _reinterpret(self, e: E.Reinterpret) -> str:
        source, kind = (_numpy(x.dtype.element_of) for x in (e.value, e))
        return f"reinterpreted({self._expr(e.value)}, {e.value.dtype.lanes}, {source!r}, {kind!r})[:{e.dtype.lanes}]"

    def _pointer(self, e: E.Pointer) -> str:
        assert isinstance(e.base, E.Var)
        return f"({self._name(e.base)}, {self._expr(e.offset)})"

    def _call(self, e: E.Call) -> str:
        plain = {"get_local_id": "tid", "get_local_size": "size", "alloc_event": "0"}
        if e.op in plain:
            return plain[e.op]
        arguments = ", ".join(map(self._expr, e.args))
        mask = "None" if e.mask is None else self._expr(e.mask)
        return f"{e.op}({arguments}, mask={mask}, kind={_numpy(e.dtype.element_of)!r})"

    def _binary(self, e: E.Binary) -> str:
        a, b = self._expr(e.a), self._expr(e.b)
        if e.a.dtype.is_vector:
            return f"lanes({e.op!r}, {a}, {b}, {_numpy(e.dtype.element_of)!r})"
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


_RULES = {
    E.IntImm: Kernel._number,
    E.FloatImm: Kernel._number,
    E.Var: Kernel._name,
    E.Load: Kernel._load,
    E.Select: Kernel._select,
    E.Binary: Kernel._binary,
    E.Unary: Kernel._unary,
    E.Cast: Kernel._cast,
    E.Reinterpret: Kernel._reinterpret,
    E.Call: Kernel._call,
    E.Pointer: Kernel._pointer,
    E.Ramp: Kernel._ramp,
    E.Broadcast: lambda self, e: f"np.full({e.lanes}, {self._expr(e.value)})",
    E.VectorLiteral: lambda self, e: f"np.array([{', '.join(map(self._expr, e.elems))}])",
    E.TailMask: lambda self, e: f"(np.arange({e.lanes}) < {self._expr(e.count)})",
    E.ConstMask: lambda self, e: f"np.array({[bool(e.bits >> i & 1) for i in range(e.lanes)]})",
    E.GetElement: lambda self, e: f"{self._expr(e.vector)}[{self._expr(e.index)}].item()",
}


def _numpy(dtype: object) -> str:
    return str(dtype)


# ------------------------------------------------------------------------------------------- what the made text calls


def _wrap(value: int, kind: str) -> int:
    bits = int(kind.lstrip("uint"))
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind.startswith("int") and value >> (bits - 1) else value


def _rounded(value: float, kind: str) -> int:
    """A float as a whole number, as the device has it: of uint32 as it is, of others the low bits of an int32."""
    low, high = (0, (1 << 32) - 1) if kind == "uint32" else (-(1 << 31), (1 << 31) - 1)
    return 0 if np.isnan(value) else _wrap(int(min(max(float(value), low), high)), kind)


def _at(array: np.ndarray, shape: tuple[int, ...], indices: tuple[object, ...], mask: object) -> object:
    """The position of an element, or those of the lanes of a vector; -1 for lanes that are not active."""
    if isinstance(indices[-1], np.ndarray):
        *outer, last = indices
        active = np.broadcast_to(True if mask is None else mask, last.shape)
        found = [_at(array, shape, (*outer, int(i)), None) if on else -1 for i, on in zip(last, active)]
        return np.array(found)
    position = 0
    if not shape:
        (position,) = indices
        if not 0 <= position < len(array):
            raise OutOfBounds(f"{indices} in a buffer of {len(array)} elements")
        return position
    for extent, index in zip(shape, indices, strict=True):
        if not 0 <= index < extent:
            raise OutOfBounds(f"{indices} in a buffer of {shape}")
        position = position * extent + index
    return position


def _get(array: np.ndarray, position: object, mask: object) -> object:
    if isinstance(position, np.ndarray):
        return np.where(position >= 0, array[np.maximum(position, 0)], 0).astype(array.dtype)
    value = array[position]
    return int(value) if array.dtype.kind in "iu" else value


def _put(array: np.ndarray, position: object, mask: object, value: object) -> None:
    if isinstance(position, np.ndarray):
        for i, v in zip(position, np.broadcast_to(value, position.shape)):
            if i >= 0:
                array[i] = v
    else:
        array[position] = value


def _lanes(op: str, a: np.ndarray, b: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bool" or np.asarray(a).dtype.kind not in "iu":
        plain = {
            "add": np.add,
            "sub": np.subtract,
            "mul": np.multiply,
            "div": np.divide,
            "min": np.minimum,
            "max": np.maximum,
            "bitand": np.logical_and,
            "bitor": np.logical_or,
            "bitxor": np.logical_xor,
            "lt": np.less,
            "le": np.less_equal,
            "eq": np.equal,
            "ne": np.not_equal,
            "gt": np.greater,
            "ge": np.greater_equal,
        }[op]
        return plain(a, b)
    made = [OPERATORS[op].evaluate(int(x), int(y)) for x, y in zip(np.asarray(a), np.asarray(b), strict=True)]
    return np.array([_wrap(v, kind) for v in made], kind)


def _cast_lanes(x: np.ndarray, *, mask: object, kind: str) -> np.ndarray:
    if not kind.startswith(("int", "uint")):
        return x.astype(kind)
    return np.array([_wrap(int(v), kind) for v in x], kind)


def _vqdpa(acc: np.ndarray, x: np.ndarray, y: np.ndarray, *, mask: object, kind: str) -> np.ndarray:
    if x.dtype.kind not in "iu":
        products = np.where(True if mask is None else mask, x.astype("float64") * y.astype("float64"), 0)
        total = acc.astype("float64")
        total[::2] += products.reshape(-1, 4).sum(1)
        return total.astype(kind)
    products = x.astype("int64") * y.astype("int64") * (1 if mask is None else np.asarray(mask))
    total = acc.astype("int64") + products.reshape(-1, 4).sum(1)
    return np.clip(total, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)


def _reinterpreted(x: object, lanes: int, source: str, kind: str) -> np.ndarray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(x, source), lanes)).view(kind)


def _vqdot(x: np.ndarray, y: np.ndarray, *, mask: object, kind: str) -> np.ndarray:
    return _vqdpa(np.zeros(len(x) // 4, kind), x, y, mask=mask, kind=kind)


def _every_second(first: int) -> object:
    def multiply(acc: np.ndarray, x: np.ndarray, y: np.ndarray, *, mask: object, kind: str) -> np.ndarray:
        x, y = x[first::2].astype("float64"), y[first::2].astype("float64")
        return (acc + x * y).astype(kind)

    return multiply


def _across(join: object) -> object:
    def reduce(x: np.ndarray, *, mask: object, kind: str) -> np.ndarray:
        total = join(x.astype("int64" if x.dtype.kind in "iu" else "float32"))
        return np.full(len(x), _wrap(int(total), kind) if x.dtype.kind in "iu" else total, kind)

    return reduce


def _gather(start: tuple, places: np.ndarray, *, mask: object, kind: str) -> np.ndarray:
    array, first = start
    found = np.zeros(len(places), kind)
    for lane in np.flatnonzero(np.broadcast_to(True if mask is None else mask, len(places))):
        place = int(places[lane])
        if not 0 <= place * array.itemsize < 1 << 16 or not 0 <= first + place < len(array):
            raise OutOfBounds(f"a gather of element {place} from {first} on, of {len(array)} elements")
        found[lane] = array[first + place]
    return found


def _finish(started: list[tuple[object, ...]]) -> None:
    for arguments in started:
        _copied(*arguments)
    started.clear()


def _copy(started: list[object] | None, early: bool, *arguments: object) -> None:
    if started is None or early:
        _copied(*arguments)
    else:
        started.append(arguments)


def _copied(to: tuple, source: tuple, width: int, src_stride: int, total: int, dst_stride: int) -> None:
    size = to[0].itemsize
    assert width % size == 0 and total % width == 0 and width > 0, (width, total)
    for row in range(total // width):
        spans = []
        for (array, first), stride in ((to, dst_stride), (source, src_stride)):
            begin = first + row * stride // size
            if not 0 <= begin <= begin + width // size <= len(array):
                raise OutOfBounds(f"a transfer of {width} bytes from {begin} of {len(array)} elements")
            spans.append((array, slice(begin, begin + width // size)))
        spans[0][0][spans[0][1]] = spans[1][0][spans[1][1]]


def _fill(to: tuple, count: int, value: int) -> None:
    array, first = to
    if not 0 <= first <= first + count // array.itemsize <= len(array):
        raise OutOfBounds(f"{count} bytes filled from {first} of {len(array)} elements")
    bits = np.array(value & ((1 << 8 * array.itemsize) - 1), f"u{array.itemsize}").view(array.dtype)
    array[first : first + count // array.itemsize] = bits


_HELPERS = {
    "ops": {k: o.evaluate for k, o in OPERATORS.items()},
    "at": _at,
    "get": _get,
    "put": _put,
    "wrap": _wrap,
    "rounded": _rounded,
    "lanes": _lanes,
    "cast": _cast_lanes,
    "rint": lambda x, *, mask, kind: np.rint(x).astype(kind),
    "copy": _copy,
    "fill": _fill,
    "finish": _finish,
    "reinterpreted": _reinterpreted,
    "vqdpa": _vqdpa,
    "vqdot": _vqdot,
    "vfmae": _every_second(0),
    "vfmao": _every_second(1),
    "vzip": lambda x, y, *, mask, kind: np.stack([x, y], 1).reshape(-1),
    "vconcat": lambda *parts, mask, kind: np.concatenate(parts),
    "vreplic": lambda x, lane, *, mask, kind: np.full(len(x), x[lane]),
    "vload_gather": _gather,
    "vrevs": lambda x, *, mask, kind: x[::-1],
    "abs": lambda x, *, mask, kind: np.abs(x),
    "vrpadd": _across(np.sum),
    "vrpmax": _across(np.max),
    "vrpmin": _across(np.min),
    "fma": lambda acc, x, y, *, mask, kind: (acc + x.astype("float64") * y).astype(kind),
}

"""Maps of indices: what they are, what they make of a shape, and back."""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from compass_core.reading.names import is_label, is_name
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import TRUE, joined
from compassc.analysis.itermap import UNKNOWN, bijective, digits_of, once
from compassc.analysis.simplify import Simplifier, negate
from compassc.analysis.structure import variables
from compassc.ir import parse_module
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.operators import as_expr, binary
from compassc.ir.printer import Printer
from compassc.ir.visit import substitute, walk_exprs
from compassc.te.axes import AXIS_SEPARATOR
from compassc.tir.blocks import add, mul, number


class IndexMap:
    """A map from indices `params` to the indices `exprs`."""

    AXIS_SEPARATOR = AXIS_SEPARATOR

    def __init__(
        self,
        params: Sequence[Var],
        exprs: Sequence[Expr],
        inverse: IndexMap | None = None,
        separators: Sequence[int] = (),
    ) -> None:
        self.params, self.exprs, self._inverse = tuple(params), tuple(exprs), inverse
        self.separators = tuple(separators)
        """How many indices stand before each boundary of physical dimensions."""

    initial_indices = property(lambda self: self.params, doc="The indices that the map takes.")
    final_indices = property(lambda self: self.exprs, doc="What it makes of them.")

    @staticmethod
    def from_func(
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: object = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """The map that a function of indices is. Indices are int32, whatever `index_dtype` says. ExpressionError for a
        function that takes other things than indices, and for separators."""
        made, separators = IndexMap.from_func_with_separators(mapping_function, ndim, inverse_index_map)
        if separators:
            raise ExpressionError("this map must not have axis separators")
        return made

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: object = None,
        *,
        index_dtype: str = "int64",
    ) -> tuple[IndexMap, list[int]]:
        """The map, and how many indices stand before each separator."""
        names: list[str] = []
        for p in inspect.signature(mapping_function).parameters.values():
            if p.kind is p.VAR_KEYWORD:
                raise ExpressionError("a map of indices takes no **keywords")
            if p.kind is p.VAR_POSITIONAL:
                if ndim is None:
                    raise ExpressionError(f"say how many indices *{p.name} are: ndim")
                names += [f"{p.name}_{i}" for i in range(ndim - len(names))]
            else:
                names.append(p.name)
        params = [Var(n, INT32) for n in names]
        given = mapping_function(*params)
        listed = list(given) if isinstance(given, Iterable) and not isinstance(given, Expr) else [given]
        exprs: list[Expr] = []
        separators: list[int] = []
        for item in listed:
            if item is IndexMap.AXIS_SEPARATOR:
                separators.append(len(exprs))
            elif isinstance(item, (int, Expr)) and not isinstance(item, bool):
                exprs.append(as_expr(item))
            else:
                raise ExpressionTypeError(f"a map gives indices, got {item!r} ({type(item).__name__})")
        inverse = None if inverse_index_map is None else as_index_map(inverse_index_map, len(exprs))
        return IndexMap(params, exprs, inverse, separators), separators

    # ------------------------------------------------------------------------------------------------------------- use

    def map_indices(self, indices: Sequence[object]) -> list[Expr]:
        """What indices become. ExpressionError for another number of them."""
        if len(indices) != len(self.params):
            raise ExpressionError(f"the map takes {len(self.params)} indices, got {len(indices)}")
        mapping = {p: as_expr(i) for p, i in zip(self.params, indices)}
        return [substitute(e, mapping) for e in self.exprs]

    def map_shape(self, shape: Sequence[object]) -> list[Expr]:
        """The extents of what the indices of a shape become. ExpressionError where they are not known."""
        facts = self._facts(shape)
        made: list[Expr] = []
        extents = dict(zip(self.params, map(as_expr, shape)))
        for e in self.exprs:
            if isinstance(e, Var) and e in extents:
                made.append(extents[e])
                continue
            low, high = facts.range_of(e)
            if low < 0 or high >= 2**31 - 2:
                raise ExpressionError(f"the index {e} has no known extent over {[str(as_expr(s)) for s in shape]}")
            made.append(number(high + 1))
        return made

    def map_ndarray(self, array: Any) -> Any:
        """A NumPy array with its elements at their new indices."""
        import numpy as np

        shape = [e.value for e in self.map_shape(array.shape)]  # type: ignore[attr-defined]
        if int(np.prod(shape)) != array.size:
            raise ExpressionError(f"{array.shape} does not become {tuple(shape)} element by element")
        inverse = self.inverse(array.shape)
        made = np.empty(shape, array.dtype)
        for index in np.ndindex(*shape):
            back = [Simplifier(Arith()).expr(e) for e in inverse.map_indices([int(i) for i in index])]
            made[index] = array[tuple(e.value for e in back)]  # type: ignore[attr-defined]
        return made

    def inverse(self, shape: Sequence[object]) -> IndexMap:
        """The map back. ExpressionError where two indices of the shape become one, or where something is left out."""
        extents = self._extents(shape)
        if self._inverse is not None:
            return self._inverse
        if not bijective(self.exprs, extents):
            raise ExpressionError(f"{self} is not surely one to one over a shape of {list(extents.values())}")
        return self._back(extents)

    def non_surjective_inverse(self, shape: Sequence[object]) -> tuple[IndexMap, Expr]:
        """The map back and the condition, in new indices, of what no index becomes."""
        extents = self._extents(shape)
        rounded = dict(extents)
        for _ in range(64):  # as much more as the digits need
            if bijective(self.exprs, rounded):
                break
            grown = {v: self._rounded(v, rounded[v]) for v in rounded}
            if grown == rounded:
                break
            rounded = grown
        if not once(self.exprs, rounded):
            raise ExpressionError(f"{self} is not surely one to one over a shape of {list(extents.values())}")
        back = self._back(rounded)
        inside = [
            Binary("lt", e, number(extents[v])) for v, e in zip(self.params, back.exprs) if rounded[v] > extents[v]
        ]
        if not inside:
            return back, IntImm(TRUE.dtype, 0)

        found = self._in_padding(extents, back.params)
        if found is None:
            found = negate(joined(inside)) if len(inside) == 1 else negate_all(inside)
        return back, found

    def _in_padding(self, extents: Mapping[Var, int], at: Sequence[Var]) -> Expr | None:
        """Where an index is padding, by the last part of each index that is parted in two; None for other maps."""
        found: list[Expr] = []
        for var in self.params:
            places = [i for i, e in enumerate(self.exprs) if var in variables(e)]
            parts = [self.exprs[i] for i in places]
            if len(parts) == 1 and parts[0] is var:
                continue
            by = {e.b.value for e in parts if isinstance(e, Binary) and e.a is var and isinstance(e.b, IntImm)}
            if len(by) != 1 or sorted(e.op for e in parts if isinstance(e, Binary)) != ["floordiv", "floormod"]:
                return None
            high, low = sorted(places, key=lambda i: self.exprs[i].op)  # type: ignore[attr-defined]
            size, step = extents[var], by.pop()
            if size % step:
                last = Binary("le", number(size % step), at[low])
                only = size < step
                found.append(last if only else Binary("and", Binary("eq", at[high], number(size // step)), last))
        return functools.reduce(lambda a, b: Binary("or", a, b), found) if found else None

    def _rounded(self, var: Var, extent: int) -> int:
        """The extent up to which a variable that is divided by a number fills that number."""
        for e in self.exprs:
            for x in walk_exprs(e):
                if (
                    isinstance(x, Binary)
                    and x.op in ("floordiv", "floormod")
                    and isinstance(x.b, IntImm)
                    and x.a is var
                ):
                    by = x.b.value
                    if extent % by:
                        return (extent // by + 1) * by
        return extent

    def _back(self, extents: dict[Var, int]) -> IndexMap:
        params = [Var(f"j{i}" if len(self.exprs) > 1 else "j", INT32) for i in range(len(self.exprs))]
        sums: dict[Var, Expr] = {v: number(0) for v in self.params}
        for param, e in zip(params, self.exprs):
            form = digits_of(e, extents)
            assert form is not None, "one to one maps are sums of digits"
            above = max((d.scale * d.extent for d in form.digits), default=1)
            for d in form.digits:
                value = binary("sub", param, number(form.base))
                if d.scale * d.extent < above:
                    value = value % (d.scale * d.extent)
                if d.scale > 1:
                    value = value // d.scale
                sums[d.var] = add(sums[d.var], mul(value, number(d.lower)))
        return IndexMap(params, [sums[v] for v in self.params], self)

    def _extents(self, shape: Sequence[object]) -> dict[Var, int]:
        found: dict[Var, int] = {}
        for param, extent in zip(self.params, shape, strict=True):
            e = as_expr(extent)
            moved = any(param in variables(x) for x in self.exprs if x is not param)
            if not isinstance(e, IntImm) and moved:
                raise ExpressionError(f"the map back is found for constant extents only, that of '{param.name}' is {e}")
            found[param] = e.value if isinstance(e, IntImm) else UNKNOWN
        return found

    def _facts(self, shape: Sequence[object]) -> Arith:
        facts = Arith()
        for param, extent in zip(self.params, shape, strict=True):
            facts.bind_loop(param, number(0), as_expr(extent), number(1))
        return facts

    def is_equivalent_to(self, other: IndexMap) -> bool:
        """Whether both give the same indices."""
        if len(self.params) != len(other.params) or len(self.exprs) != len(other.exprs):
            return False
        facts = Arith()
        simplify = Simplifier(facts).expr
        pairs = zip(self.exprs, other.map_indices(self.params))
        return all(facts.interner.same(simplify(a), simplify(b)) for a, b in pairs)

    # ------------------------------------------------------------------------------------------------------------ text

    def as_text(self) -> str:
        """The map as JSON."""
        names, exprs = self._texts()
        made = {"params": names, "exprs": exprs}
        return json.dumps({**made, "separators": list(self.separators)} if self.separators else made)

    @staticmethod
    def from_text(text: str) -> IndexMap:
        """The map that `as_text` wrote. ExpressionError for other text."""
        try:
            read = json.loads(text)
            names, exprs = [str(n) for n in read["params"]], [str(e) for e in read["exprs"]]
            separators = [int(n) for n in read.get("separators", ())]
        except (ValueError, KeyError, TypeError) as error:
            raise ExpressionError(f"this is no map of indices: {error}") from None
        if not all(map(is_name, names)) or not all(map(is_label, exprs)):
            raise ExpressionError("this is no map of indices: names and expressions stand on one line")
        parameters = ", ".join(f"{n}: T.int32" for n in names)
        lines = [f"        y{i}_: T.int32 = {e}" for i, e in enumerate(exprs)] or ["        pass"]
        head = f'@I.module(target="", entry="f")\nclass Module:\n    @T.func\n    def f({parameters}) -> T.void:\n'
        f = parse_module(head + "\n".join(lines) + "\n", "<map>").entry_func
        return IndexMap(f.params, [s.value for s in f.body if isinstance(s, S.Let)], separators=separators)

    def as_python(self) -> str:
        """The map as a Python function."""
        names, shown = self._texts()
        for n in reversed(self.separators):
            shown.insert(n, "tir.IndexMap.AXIS_SEPARATOR")
        plain = [ast.unparse(ast.parse(e, mode="eval")) for e in shown]  # parentheses where they are needed only
        return f"lambda {', '.join(names)}: ({' '.join(f'{e},' for e in plain)})"

    __repr__ = as_python

    def _texts(self) -> tuple[list[str], list[str]]:
        """Names for the indices, each its own, as axes of one block may have the same; and the texts of the expressions."""
        printer = Printer()
        names = [printer.names.define(p, p.name) for p in self.params]
        return names, [printer.expr(e) for e in self.exprs]


def negate_all(conditions: Sequence[Expr]) -> Expr:
    """That one of the conditions does not hold."""
    made = negate(conditions[0])
    for c in conditions[1:]:
        made = Binary("or", made, negate(c))
    return made


def as_index_map(given: object, ndim: int, separators: bool = False) -> IndexMap:
    """A map, or the one that a function is. `separators`: it may have some."""
    if isinstance(given, IndexMap):
        if given.separators and not separators:
            raise ExpressionError("this map must not have axis separators")
        return given
    if not callable(given):
        raise ExpressionTypeError(f"a map of indices is an IndexMap or a function, got {type(given).__name__}")
    return IndexMap.from_func_with_separators(given, ndim)[0] if separators else IndexMap.from_func(given, ndim)

"""Buffers in functions of the framework's script: how they are declared, and what the declarations say."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import INT32, DataType, pointer_type
from ..ir.exprs import Expr, IntImm, Var
from ..ir.operators import as_expr, data_type
from ..te.analyzer import Analyzer
from ..te.buffers import compact_strides
from ..tir.blocks import view
from .script_values import TYPES, Cells, Part

_ONE: E.Expr = IntImm(INT32, 1)
_SCOPES = {"global": "global", "shared": "shared", "local": "private", "lsram": "lsram"}
_ORDER = "shape dtype data strides elem_offset scope align offset_factor buffer_type axis_separators"
"""What is said of a buffer, in the order of the arguments."""


class Declarations:
    """The part of a reader that knows buffers."""

    names: dict[str, object]
    params: dict[str, Var]
    handles: list[str]
    declared: list[S.Stmt]
    out: list[S.Stmt]
    depth: int
    lowered: bool
    layout: list[Var]
    """Variables for strides and offsets of parameters, which are parameters where they are used."""

    def _value(self, node: ast.expr) -> Any:
        raise NotImplementedError

    def _dotted(self, node: ast.AST | None) -> str:
        raise NotImplementedError

    def _called(self, node: ast.AST | None) -> str:
        raise NotImplementedError

    def _error(self, node: ast.AST, message: str, help: str = "") -> CompassError:
        raise NotImplementedError

    def _parameter(self, a: ast.arg) -> None:
        name, note = a.arg, a.annotation
        called = self._called(note)
        if called == "Buffer":
            assert isinstance(note, ast.Call)
            self.names[name] = self._buffer(name, name, note)
        elif note is not None and self._dotted(note) in TYPES:
            self.params[name] = Var(name, data_type(self._dotted(note)))
            self.names[name] = self.params[name]
        elif called == "handle" and isinstance(note, ast.Call) and note.args:
            self.params[name] = Var(name, pointer_type(data_type(str(self._value(note.args[0]))), "global"))
            self.names[name] = self.params[name]
        else:
            self.handles.append(name)
            self.names[name] = name

    def _said(self, call: ast.Call, first: int = 0, order: str = _ORDER) -> dict[str, Any]:
        """What a declaration says from argument `first` on, by name. An error for what it cannot say."""
        names, given = order.split(), call.args[first:]
        unknown = [str(k.arg) for k in call.keywords if k.arg not in names]
        if unknown or len(given) > len(names):
            what = f"'{unknown[0]}'" if unknown else f"{len(given)} arguments"
            raise self._error(call, f"a buffer is not declared with {what}", f"it has {', '.join(names)}")
        positional = {name: self._value(x) for name, x in zip(names, given)}
        return {**positional, **{str(k.arg): self._value(k.value) for k in call.keywords}}

    @staticmethod
    def _shape_and_type(said: Mapping[str, object]) -> tuple[tuple[E.Expr, ...], DataType]:
        shape = said.get("shape", ())
        dims = shape if isinstance(shape, (tuple, list)) else (shape,)
        return tuple(map(as_expr, dims)) or (_ONE,), data_type(str(said.get("dtype", "float32")))

    @staticmethod
    def _separators(said: Mapping[str, Any]) -> tuple[int, ...]:
        """The boundaries between physical dimensions that a declaration says."""
        return tuple(int(getattr(n, "value", n)) for n in said.get("axis_separators") or ())

    def _buffer(self, param: str, name: str, call: ast.Call, first: int = 0) -> Cells:
        """The buffer of a parameter, of which the declaration says shape and type from argument `first` on."""
        said = self._said(call, first)
        shape, kind = self._shape_and_type(said)
        data = Var(name, pointer_type(kind, "global"))
        self.params[param] = data
        buffer = E.Buffer(data, kind, shape, self._separators(said))
        self.declared.append(S.DeclBuffer(buffer))
        made = self._cells(buffer)
        made.declared_strides = self._strides(call, made, said.get("strides"))
        made.elem_offset = self._offset(call, made, said)
        return made

    def _strides(self, call: ast.Call, cells: Cells, given: Sequence[object] | None) -> tuple[E.Expr, ...]:
        """The strides of a parameter where variables stand for some: those that an intrinsic asks for."""
        if not given:
            return ()
        if len(given) != len(cells.shape):
            raise self._error(call, f"'{cells.name}' has {len(cells.shape)} dimensions and {len(given)} strides")
        made: list[E.Expr] = []
        for dim, (stride, compact) in enumerate(zip(given, compact_strides(cells.shape))):
            if isinstance(stride, (str, Var)):
                made.append(self._named_layout(call, stride, f"{cells.name}_stride_{dim}"))
                continue
            apart = Analyzer().simplify(as_expr(stride) - compact)
            if not isinstance(apart, IntImm) or apart.value:
                raise self._error(
                    call, f"'{cells.name}' has the stride {stride}, arrays have {compact} there", "leave strides out"
                )
            made.append(as_expr(stride))
        return tuple(made)

    def _offset(self, call: ast.Call, cells: Cells, said: Mapping[str, object]) -> E.Expr:
        """Where a parameter begins in its memory: at its address, or for intrinsics behind as many elements as a variable says."""
        given = said.get("elem_offset")
        if isinstance(given, (str, Var)) or (given is None and said.get("offset_factor", 0)):
            return self._named_layout(call, given, f"{cells.name}_elem_offset")
        if not isinstance(begins := as_expr(given or 0), IntImm) or begins.value:
            raise self._error(call, f"'{cells.name}' begins at its address, not {given} elements behind it")
        return cells.elem_offset

    def _named_layout(self, call: ast.Call, given: str | Var | None, name: str) -> Var:
        """The variable of a stride or an offset, in the place of the one that the function calls so."""
        made = Var(name, INT32)
        if isinstance(given, Var) and given in self.layout:
            raise self._error(call, f"'{given.name}' says two things of buffers", "take a variable for each")
        taken = (
            [given]
            if isinstance(given, str)
            else [k for k, v in self.names.items() if v is given and given is not None]
        )
        self.names.update(dict.fromkeys(taken, made))
        self.layout.append(made)
        return made

    def _allocated(self, name: str, call: ast.Call, order: str = _ORDER) -> Cells:
        said = self._said(call, 0, order)
        shape, kind = self._shape_and_type(said)
        buffer = E.Buffer(Var(name, pointer_type(kind, self._memory(call, said))), kind, shape, self._separators(said))
        (self.out if self.depth or self.lowered else self.declared).append(S.Alloc(buffer))
        return self._cells(buffer)

    def _memory(self, call: ast.Call, said: Mapping[str, object]) -> str:
        scope = said.get("scope") or "global"
        if not isinstance(scope, str):
            raise self._error(call, "a memory is named by a text")
        return _SCOPES.get(scope.split(".")[0], "private")  # of other machines: plain memory

    def _table(self, name: str, call: ast.Call) -> Cells:
        """`T.allocate_const(data, dtype, extents)`: numbers that are part of the function."""
        said = self._said(call, 0, "data dtype shape annotations")
        shape, kind = self._shape_and_type(said)
        sizes = [e.value for e in shape if isinstance(e, IntImm)]
        if len(sizes) != len(shape):
            raise self._error(call, "a table has constant extents")
        values = np.asarray(said["data"], str(kind)).reshape(sizes)
        buffer = E.Buffer(Var(name, pointer_type(kind, "constant")), kind, shape)
        self.out.append(S.AllocConst(buffer, values.tobytes()))
        return self._cells(buffer)

    def _cells(self, buffer: E.Buffer) -> Cells:
        made = Cells(buffer)
        made.shaped = self.lowered
        return made

    def _part(self, call: ast.Call) -> Cells:
        """`T.match_buffer(A[i:i + 4, j], shape)`: accesses of it are those of `A`."""
        region = self._region(call.args[0])
        assert isinstance(region, E.BufferRegion) and isinstance(call.args[0], ast.Subscript)
        whole, said = self._value(call.args[0].value), self._said(call, 1)
        part = Part(whole, region.starts, self._shape_and_type(said)[0] if "shape" in said else region.extents)
        named = [said.get("elem_offset"), *(said.get("strides") or ())]
        for given, value in zip(named, (part.elem_offset, *part.strides)):
            taken = [given] if isinstance(given, str) else [k for k, v in self.names.items() if v is given]
            if isinstance(given, (str, Var)):
                self.names.update(dict.fromkeys(taken, value))
        return part

    def _alias(self, name: str, call: ast.Call) -> Cells:
        """`T.Buffer(shape, dtype, data=A)`: another form of the memory of `A`; without one memory that `T.realize` allocates."""
        said = self._said(call)
        shape, kind = self._shape_and_type(said)
        data = said.get("data")
        if data is None:
            memory = self._memory(call, said)
            return self._cells(E.Buffer(Var(name, pointer_type(kind, memory)), kind, shape, self._separators(said)))
        buffers = [c for c in self.names.values() if isinstance(c, Cells) and not isinstance(c, Part)]
        known = next((c for c in buffers if c is data or c.data is data), None)
        if known is None or known.dtype is not kind:
            raise self._error(call, "T.Buffer as a statement has the memory of a buffer of the same type: data=A.data")
        buffer = E.Buffer(known.buffer.data, kind, shape)
        if [getattr(e, "value", e) for e in shape] == [getattr(e, "value", e) for e in known.shape]:
            return known
        self.out.append(S.DeclBuffer(buffer))
        return self._cells(buffer)

    def _region(self, node: ast.expr) -> Expr:
        """The part of a buffer that `A[i, 0:4]` is."""
        if not isinstance(node, ast.Subscript):
            raise self._error(node, "a region is a buffer with indices and slices")
        cells, at = self._value(node.value), self._value(node.slice)
        simplify = Analyzer().simplify
        ends = [
            (i.start, simplify(as_expr(i.stop - i.start))) if isinstance(i, slice) else (i, 1)
            for i in (at if isinstance(at, tuple) else (at,))
        ]
        starts, extents = (tuple(map(as_expr, side)) for side in zip(*ends))
        return E.BufferRegion(view(cells.buffer), starts, extents)

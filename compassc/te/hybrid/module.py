"""What is built of hybrid scripts: a schedule as the text of another hybrid script, which can be saved and run."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from pathlib import Path

from compass_core import files
from compass_core.errors import UsageError
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, Var
from compassc.ir.names import NamePool, identifier
from compassc.ir.stmts import Body, PrimFunc
from compassc.te.errors import LowerError
from compassc.te.hybrid.runtime import HYBRID_GLOBALS, Value
from compassc.te.hybrid.script import script
from compassc.te.lowering import lower
from compassc.te.machine import Machine
from compassc.te.schedule.schedule import Schedule
from compassc.te.tensor import Tensor

_LOOPS = {"serial": "range", "parallel": "parallel", "vectorized": "vectorize", "unrolled": "unroll"}
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "floormod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "and": "and", "or": "or", "bitand": "&", "bitor": "|", "bitxor": "^", "shl": "<<", "shr": ">>",
}  # fmt: skip


class HybridModule:
    """A hybrid script in a module of its own: called like one, with tensors or arrays."""

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.src, self.name = src or "", name or ""
        self._function: Callable[..., Value] | None = None
        if src is not None:
            self._run()

    def _run(self) -> None:
        """Takes the function out of the text; a file of its own name has the lines for who parses it."""
        file = f"<hybrid script {self.name}>"
        linecache.cache[file] = len(self.src), None, self.src.splitlines(keepends=True), file
        names: dict[str, Value] = {}
        exec(compile(self.src, file, "exec"), names)  # noqa: S102 - running the text is the purpose
        found = [v for v in names.values() if callable(v) and getattr(v, "__module__", "") != __name__]
        functions = [v for v in found if hasattr(v, "__code__")]
        if len(functions) != 1:
            raise UsageError(f"the text has {len(functions)} functions, a hybrid script is one", code="input")
        self.name, self._function = functions[0].__name__, script(functions[0])

    def __call__(self, *args: Value) -> Value:
        """The tensors of tensors, or the arrays of arrays. UsageError before there is a script."""
        if self._function is None:
            raise UsageError("this module has no script yet", code="input", help="load(path) reads one")
        return self._function(*args)

    def get_source(self) -> str:
        """The text of the script."""
        return self.src

    def save(self, path: str) -> None:
        """Writes the text to a file; `.py` is added where it is missing."""
        files.write(Path(path if path.endswith(".py") else f"{path}.py"), self.src)

    def load(self, path: str) -> None:
        """Reads the text of a file that `save` wrote."""
        self.src = Path(path if path.endswith(".py") else f"{path}.py").read_text(encoding="utf-8")
        self._run()


def build(
    sch: Schedule, inputs: Sequence[Tensor | Var], outputs: Sequence[Tensor], name: str = "hybrid_func"
) -> HybridModule:
    """The loop nest of a schedule as a hybrid script of the inputs that returns the outputs. LowerError for statements that
    hybrid scripts do not have."""
    function = lower(sch, [*inputs, *outputs], name, Machine(""), simple_mode=True).entry_func
    return HybridModule(_Printer(function, len(inputs)).text(name), name)


class _Printer:
    """A function of loops as the text of a hybrid script. `given`: how many of its parameters are inputs."""

    def __init__(self, function: PrimFunc, given: int) -> None:
        self.function = function
        self.pool = NamePool({*HYBRID_GLOBALS, "range", "min", "max", "abs"})
        self.names: dict[Var, str] = {}
        self.inputs, self.outputs = function.params[:given], function.params[given:]
        declared = (s.buffer for s in function.body if isinstance(s, S.DeclBuffer))
        self.buffers = {buffer.data: buffer for buffer in declared}
        self.lines: list[str] = []

    def name(self, var: Var) -> str:
        if var not in self.names:
            self.names[var] = self.pool.take(identifier(var.name))
        return self.names[var]

    def text(self, name: str) -> str:
        parameters = [self.name(v) for v in self.inputs]
        results = [v for v in self.outputs if v in self.buffers]
        for var in (v for v in self.outputs if v not in self.buffers and v not in self.names):
            self._size(var)
        for var in results:
            self._memory("output_tensor", self.buffers[var])
        self.body(self.function.body, 1)
        self.lines.append(f"    return {', '.join(map(self.name, results))}")
        return f"def {name}({', '.join(parameters)}):\n" + "\n".join(self.lines) + "\n"

    def _size(self, var: Var) -> None:
        """A size that no parameter of the script is: a dimension of an input."""
        for data in (v for v in self.inputs if v in self.buffers):
            for i, dim in enumerate(self.buffers[data].shape):
                if dim is var:
                    self.lines.append(f"    {self.name(var)} = {self.name(data)}.shape[{i}]")
                    return
        raise LowerError(f"'{var.name}' is no size of an input", "add it to the inputs")

    def _memory(self, maker: str, buffer: E.Buffer, depth: int = 1) -> None:
        sizes = ", ".join(map(self.expr, buffer.shape))
        self.lines.append(f'{"    " * depth}{self.name(buffer.data)} = {maker}(({sizes},), "{buffer.dtype}")')

    def body(self, body: Body, depth: int) -> None:
        for s in body:
            self.statement(s, depth)
        if not any(not isinstance(s, S.DeclBuffer) for s in body):
            self.lines.append("    " * depth + "pass")

    def statement(self, s: S.Stmt, depth: int) -> None:
        indent = "    " * depth
        if isinstance(s, S.DeclBuffer):
            return
        if isinstance(s, S.Alloc):
            self._memory("allocate", s.buffer, depth)
        elif isinstance(s, S.BufferStore) and s.mask is None:
            self.lines.append(f"{indent}{self._element(s.buffer, s.indices)} = {self.expr(s.value)}")
        elif isinstance(s, (S.Let, S.Assign)):
            self.lines.append(f"{indent}{self.name(s.var)} = {self.expr(s.value)}")
        elif isinstance(s, S.For) and s.kind in _LOOPS and isinstance(s.step, E.IntImm) and s.step.value == 1:
            ends = ", ".join(map(self.expr, (s.min, s.stop)))
            self.lines.append(f"{indent}for {self.name(s.loop_var)} in {_LOOPS[s.kind]}({ends}):")
            self.body(s.body, depth + 1)
        elif isinstance(s, S.IfThenElse):
            self.lines.append(f"{indent}if {self.expr(s.condition)}:")
            self.body(s.then_case, depth + 1)
            if s.else_case:
                self.lines.append(f"{indent}else:")
                self.body(s.else_case, depth + 1)
        else:
            raise LowerError(f"hybrid scripts have no statement for this {type(s).__name__}")

    def _element(self, buffer: E.Buffer, indices: Sequence[Expr]) -> str:
        return f"{self.name(buffer.data)}[{', '.join(map(self.expr, indices))}]"

    def expr(self, e: Expr) -> str:
        """The text of a value."""
        if isinstance(e, Var):
            return self.name(e)
        if isinstance(e, (E.IntImm, E.FloatImm)):
            plain = ("int32", "float32", "bool")
            number = repr(bool(e.value) if str(e.dtype) == "bool" else e.value)
            return number if str(e.dtype) in plain else f"{e.dtype}({number})"
        if isinstance(e, E.BufferLoad) and e.mask is None:
            return self._element(e.buffer, e.indices)
        if isinstance(e, E.Binary) and (e.op in ("min", "max", "mod") or (e.op == "div" and e.a.dtype.is_integer)):
            name = {"mod": "truncmod", "div": "truncdiv"}.get(e.op, e.op)
            return f"{name}({self.expr(e.a)}, {self.expr(e.b)})"
        if isinstance(e, E.Binary) and e.op in _OPERATORS:
            return f"({self.expr(e.a)} {_OPERATORS[e.op]} {self.expr(e.b)})"
        if isinstance(e, E.Unary) and e.op == "not":
            return f"(not {self.expr(e.a)})"
        if isinstance(e, E.Select):
            return f"({self.expr(e.true_value)} if {self.expr(e.condition)} else {self.expr(e.false_value)})"
        if isinstance(e, E.Cast):
            return f"{e.dtype}({self.expr(e.value)})"
        if isinstance(e, E.Call) and e.op in _CALLS and e.mask is None:
            return f"{_CALLS[e.op]}({', '.join(map(self.expr, e.args))})"
        raise LowerError(f"hybrid scripts have no expression for {e}")


_CALLS = {"exp": "exp", "log": "log", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt", "pow": "power", "popcount": "popcount",
          "abs": "abs", "rint": "round"}  # fmt: skip
"""Operations and their names in hybrid scripts."""

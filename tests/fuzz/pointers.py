"""Random pointers: calls that return one, changes of type, addresses of variables, comparisons."""

from __future__ import annotations

from compassc.ir.dtypes import BOOL, VOID, DataType

from .draw import COMPARISONS
from .memory import Memory
from .scope import Region, SubFunction, Variable
from .tree import Expr

ORDER = COMPARISONS[:4]


class Pointers(Memory):
    """Pointers that are no names, for what takes a pointer without subscripting it."""

    def pointed(self, elem: DataType, size: int, writable: bool = False) -> Region | None:
        """A region with a name, or one behind an expression."""
        found = None
        if self.chance(0.4):
            found = self.returned_pointer(elem, size, writable)
        elif self.chance(0.08):
            found = self.retyped(elem, size, writable)
        return found or self.region(elem, size, writable)

    def returned_pointer(self, elem: DataType, size: int, writable: bool = False) -> Region | None:
        """What lies behind the result of a sub-function; its arguments are simple."""
        found = [f for f in self.functions if f.gives and f.gives.type is elem and f.gives.size >= size]
        if not found:
            return None
        function = self.rng.choice(found)
        texts, behind = [], []
        for param in function.params:
            if isinstance(param, Variable):
                texts.append(self.gen(param.type, 0, param.width).text())
                continue
            region = self.argument_region(param, writable)
            if region is None:
                return None
            behind.append(region)
            start = Expr(str(self.rng.randint(0, region.size - param.size)), [], param.type)
            texts.append(self.address(region, start)[0].format(start.text()))
        text = f"{function.name}({', '.join(texts)})"
        assert function.gives is not None
        writable, raw = all(r.writable for r in behind), all(r.raw for r in behind)
        return Region(text, elem, function.gives.size, function.gives.scope, writable, raw)

    def argument_region(self, param: Region, writable: bool) -> Region | None:
        """A region that can stand for a parameter."""
        found = [
            r
            for r in self.scope.regions
            if r.type is param.type and r.scope == param.scope and r.size >= param.size and (r.writable or not writable)
        ]
        return self.rng.choice(found) if found else None

    def retyped(self, elem: DataType, size: int, writable: bool = False) -> Region | None:
        """Memory seen as elements of another type: input bytes, or integers as other integers."""
        found = []
        for r in self.scope.regions:
            plain = r.type.is_integer and elem.is_integer or (r.raw and not writable)
            if plain and r.type is not elem and not r.buffer and (r.writable or not writable):
                found += [r] if r.size * r.type.total_bytes >= size * elem.total_bytes else []
        if not found:
            return None
        r = self.rng.choice(found)
        behind = r.size * r.type.total_bytes // elem.total_bytes
        return Region(f'{r.name}.as_ptr("{elem}")', elem, behind, r.scope, writable, r.raw)

    def addressed(self, t: DataType) -> str:
        """The address of a variable of a type, if there is one that may change."""
        found = [v for v in self.mutable() if v.type is t]
        return f"{self.rng.choice(found).name}.addr" if found and not t.is_bool else ""

    def pointer_comparison(self) -> Expr | None:
        """An order within one piece of memory, equality anywhere in one scope, or whether a pointer is null."""
        found = [r for r in self.scope.regions if not r.buffer]
        if not found:
            return None
        region = self.rng.choice(found)
        if self.chance(0.2):
            return Expr(f"{region.name}.is_nullptr", [], BOOL)
        symbol = self.rng.choice(COMPARISONS)
        others = [r for r in found if r.type is region.type and r.scope == region.scope]
        if symbol in ORDER:
            others = [r for r in others if r.root == region.root]
        other = self.rng.choice(others)
        (a, first), (b, second) = (self.address(r, self.index(r.size - 1, 1)) for r in (region, other))
        return Expr(f"({a} {symbol} {b})", [*first, *second], BOOL)

    # ---------------------------------------------------------------------------------------------- calls

    def sub_call(self, t: DataType | None, depth: int, width: int = 0) -> Expr | None:
        """A call of a generated function that returns `t` (None: one that writes memory)."""
        found = [f for f in self.functions if f.returns is t and f.width == width and not f.gives]
        if not found:
            return None
        function = self.rng.choice(found)
        made = self.call_texts(function, depth)
        if made is None:
            return None
        return Expr(f"{function.name}({', '.join(made[0])})", made[1], t or VOID, width)

    def call_texts(self, function: SubFunction, depth: int) -> tuple[list[str], list[Expr]] | None:
        """The arguments of a call, by position first, then by name; some that have a default are left out."""
        texts: list[str] = []
        args: list[Expr] = []
        count = len(function.params) - self.rng.randint(0, function.defaults)
        for param in function.params[:count]:
            text, more = self.argument(param, depth)
            if text is None:
                return None
            named = self.chance(0.1) or (texts and "=" in texts[-1].split("(")[0])
            texts.append(f"{param.name}={text}" if named else text)
            args += more
        return texts, args

    def argument(self, param: Variable | Region, depth: int) -> tuple[str | None, list[Expr]]:
        if isinstance(param, Variable):
            return "{}", [self.gen(param.type, depth - 1, param.width)]
        if param.writable and param.scope == "private" and param.size == 1 and self.chance(0.7):
            text = self.addressed(param.type)
            if text:
                return text, []
        region = self.pointed(param.type, param.size, param.writable)
        if region is None or region.scope != param.scope:
            region = self.argument_region(param, param.writable)
        if region is None:
            return None, []
        return self.address(region, self.index(region.size - param.size, depth - 1))

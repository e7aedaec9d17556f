"""Instrumentation of a kernel's C text with counters, and the meaning of each counter.

The text is cut into regions that always run as a whole. Each has a counter, which the text increases where the region
begins; before every call to the device the text tells the engine where it is, so that the engine knows how much work
lies between two such calls. Functions take the counters as their first parameter (sim/include/compass/profile.h).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from compass_core.bounded import Bounded
from compass_core.dataclass import dataclass
from compass_core.elf.hostcode import entry_symbol
from compass_core.errors import ToolchainError
from compass_core.hostcc import factors, whole_vectors
from compass_core.hostcc.clang import find_clang
from compass_core.hostcc.foreign import is_trusted
from compass_core.hostcc.sources import Source
from compass_runtime.profile import syntax
from compass_runtime.profile.costs import CostModel, class_of
from compass_runtime.profile.expressions import Expressions, Loop, Value
from compass_runtime.profile.parse import OWN, Node, Text, parse
from compass_runtime.profile.regions import Location, Region, cost

_COUNTERS = "__compass_counters"
_ENTRY = entry_symbol("")
_SKIP = re.compile(r"(?:\s|^#[^\n]*$)*;?", re.MULTILINE)
_PRAGMAS = re.compile(r'(?:_Pragma\("(?:\\.|[^"\\])*"\)\s*(?:^#[^\n]*\n\s*)*)+\Z', re.MULTILINE)
_LONGEST_PRAGMAS = 500
_EMPTY = re.compile(r"\s*(?:void\s*)?\)")


@dataclass(frozen=True)
class Instrumented:
    """A translation unit whose text counts; `first` and `first_site` are the numbers where its own begin."""

    source: Source
    first: int
    regions: tuple[Region, ...]
    masks: int
    """How many counters of active lanes follow those of the regions."""
    first_site: int
    sites: tuple[Location, ...]

    @property
    def counters(self) -> int:
        return len(self.regions) + self.masks


def instrument(
    source: Source, model: CostModel, first: int = 0, first_site: int = 0, clang: str | None = None
) -> Instrumented:
    """Puts counters into a translation unit. ToolchainError when clang is missing or cannot read the text, and for C that
    is beyond what is understood here: the text need not be one of this toolchain's."""
    unit = source.name, source.define, source.macros, source.options, source.text, is_trusted(source)
    key = unit, id(model), first, first_site, find_clang(clang).identity
    found = _known.get(key)
    if found is None:
        found = _known[key] = model, _instrumented(source, model, first, first_site, clang)
    made = found[1]
    return replace(made, source=replace(source, text=made.source.text, macros=made.source.macros))


_known: Bounded[tuple[object, ...], tuple[CostModel, Instrumented]] = Bounded(64)
"""What was made of units, as a network is profiled more than once and candidates of a search come again; with the model of costs,
which so lives as long as its number is in the key."""


def _instrumented(source: Source, model: CostModel, first: int, first_site: int, clang: str | None) -> Instrumented:
    try:
        counted = replace(source, text=factors.whole(whole_vectors.called(source.text)))
        return _Writer(parse(counted, clang), model, first, first_site).result(counted)
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError) as error:
        raise ToolchainError(
            f"the kernel's C text ('{source.name}') cannot be profiled: it is too involved ({type(error).__name__})",
            code="no-variant",
            help="split long expressions and statements that lie deep in each other",
        ) from error


class _Writer:
    """Walks the functions of a text, collects regions and where counters go."""

    def __init__(self, text: Text, model: CostModel, first: int, first_site: int) -> None:
        self._text = text
        self._model = model
        self._first, self._first_site = first, first_site
        self._regions: list[Region] = []
        self._masks = 0
        self._sites: list[Location] = []
        self._insertions: list[tuple[int, int, str]] = []
        self._on = Expressions(text, self._arm, self._mask)
        self._devices = _talking_functions(text)

    def result(self, source: Source) -> Instrumented:
        for function in self._text.declarations:
            self._function(function)
        for region in self._regions:
            region.cycles = cost(region, self._model)
        del self._on  # each refers to the other, and both to the tree, which is large and goes with them now
        costs = ", ".join(str(region.cycles) for region in self._regions)
        head = (
            "#include <compass/profile.h>\n"
            f"#define __COMPASS_COUNTED_REGIONS {len(self._regions)}\n"
            f"#define __COMPASS_COUNTED ({len(self._regions) + self._masks} * sizeof(ulong))\n"
            f"__constant uint __compass_costs[] = {{{costs}}};\n"
        )
        text = head + self._rewritten().replace(OWN, "")
        return Instrumented(
            replace(source, text=text, macros=()),  # they are in the text by now
            self._first,
            tuple(self._regions),
            self._masks,
            self._first_site,
            tuple(self._sites),
        )

    def _rewritten(self) -> str:
        parts, last = [], 0
        for offset, _, addition in sorted(self._insertions):
            parts += [self._text.text[last:offset], addition]
            last = offset
        return "".join(parts) + self._text.text[last:]

    def _insert(self, offset: int, addition: str) -> None:
        """Later insertions at the same place stand behind earlier ones."""
        self._insertions.append((offset, len(self._insertions), addition))

    # Regions

    def _new_region(self) -> Region:
        region = Region(len(self._regions))
        self._regions.append(region)
        return region

    def _open(self, offset: int) -> None:
        """Makes sure that there is a current region, which begins at `offset` when it is a new one."""
        if self._on.region is None:
            self._on.region = region = self._new_region()
            self._insert(offset, f"{_COUNTERS}[{region.number}]++; ")

    def _nested(self, node: Node, visit: Callable[[], None]) -> None:
        """Visits what lies within a control statement; then the region around it goes on, if it always does."""
        outer = self._on.region
        self._on.region = None
        visit()
        self._on.region = None if syntax.leaves(node) or self._talks(node) else outer

    def _talks(self, node: Node) -> bool:
        return any(syntax.callee(call) in self._devices or _is_point(call) for call in syntax.calls(node))

    def _calls(self, node: Node) -> bool:
        return any(_is_point(call) or syntax.callee(call).startswith(OWN) for call in syntax.calls(node))

    def _arm(self, node: Node, evaluate: Callable[[], Value]) -> Value:
        """A part of an expression with a counter of its own: `(counter++, part)`."""
        outer = self._on.region
        self._on.region = region = self._new_region()
        self._insert(syntax.begin(node), f"({_COUNTERS}[{region.number}]++, ")
        evaluate()
        self._insert(self._text.end(node), ")")
        self._on.region = outer
        return ()

    def _mask(self, node: Node) -> int:
        """The mask's active lanes are added to a counter; gives its number among those."""
        number, self._masks = self._masks, self._masks + 1
        self._insert(syntax.begin(node), "__compass_count_lanes(")
        self._insert(self._text.end(node), f", &{_COUNTERS}[__COMPASS_COUNTED_REGIONS + {number}])")
        return number

    # Functions

    def _function(self, node: Node) -> None:
        name = node["name"]
        is_entry = name.startswith(OWN + _ENTRY)
        if not is_entry:
            self._first_argument(node["loc"]["offset"] + len(name), "__COMPASS_COUNTERS")
        for call in syntax.calls(node):
            if syntax.callee(call).startswith(OWN):
                self._first_argument(syntax.end(syntax.children(call)[0]), _COUNTERS)
        body = next((child for child in syntax.children(node) if child["kind"] == "CompoundStmt"), None)
        if body is None:
            return
        if is_entry:
            enter = (
                f"__compass_profile_enter(__compass_costs, {self._first}, __COMPASS_COUNTED_REGIONS, __COMPASS_COUNTED)"
            )
            self._insert(syntax.begin(body) + 1, f" __COMPASS_COUNTERS = {enter}; ")
        self._on.region = None
        self._compound(body)
        if is_entry:
            self._point(syntax.end(body) - 1)

    def _first_argument(self, offset: int, addition: str) -> None:
        """Puts a parameter or an argument behind the next parenthesis."""
        text = self._text.text
        at = text.index("(", offset) + 1
        if empty := _EMPTY.match(text, at):
            # `(void)` would become a list with a parameter of type void: the word goes into a comment.
            self._insert(at, addition if empty[0].strip() == ")" else f"{addition} /*")
            if empty[0].strip() != ")":
                self._insert(empty.end() - 1, "*/")
        else:
            self._insert(at, f"{addition}, ")

    def _point(self, offset: int) -> None:
        """Tells the engine where the kernel is. The last one is at its end, so that all counters are in memory then."""
        self._insert(offset, f"__compass_profile_point({_COUNTERS}, {self._first_site + len(self._sites)}); ")
        self._sites.append(self._text.place(offset))

    # Statements

    def _statement(self, node: Node) -> None:
        self._STATEMENTS.get(node["kind"], _Writer._plain)(self, node)

    def _plain(self, node: Node) -> None:
        if node["kind"] == "NullStmt":
            return
        at = self._start(node)
        self._open(at)
        if any(map(_is_point, syntax.calls(node))):
            self._point(at)
        self._on.value(node)
        if syntax.leaves(node) or self._talks(node):
            self._on.region = None

    def _compound(self, node: Node) -> None:
        for child in syntax.children(node):
            self._statement(child)

    def _body(self, node: Node, counted: bool = False) -> None:
        """The body of a control statement, in braces; `counted`: its region is there even when it is empty."""
        inside = self._start(node) + (node["kind"] == "CompoundStmt")
        if node["kind"] != "CompoundStmt":
            self._insert(inside, "{ ")
        if counted:
            self._open(inside)
        self._statement(node)
        if node["kind"] != "CompoundStmt":
            self._insert(self._behind(node), " }")

    def _start(self, node: Node) -> int:
        """The start of a statement, including the pragmas before it, which must not be separated from it."""
        at = syntax.begin(node)
        pragmas = _PRAGMAS.search(self._text.text, max(at - _LONGEST_PRAGMAS, 0), at)
        return pragmas.start() if pragmas else at

    def _behind(self, node: Node) -> int:
        """The end of a statement, including its `;`."""
        last = node
        while last["kind"] in ("IfStmt", "ForStmt", "WhileStmt", "SwitchStmt", *_LABELS):
            last = syntax.children(last)[-1]
        if last["kind"] in ("CompoundStmt", "NullStmt", "DeclStmt"):
            return syntax.end(last)
        end = self._text.end(last)
        match = _SKIP.match(self._text.text, end)
        return match.end() if match else end

    def _if(self, node: Node) -> None:
        condition, *branches = syntax.children(node)
        self._open(self._start(node))
        self._on.add("branch", node, self._on.value(condition))
        self._nested(node, lambda: self._branches(branches))

    def _branches(self, branches: Sequence[Node]) -> None:
        for branch in branches:
            self._on.region = None
            self._body(branch)

    def _loop(self, node: Node, body: Node, each: Sequence[Node], at_entry: bool) -> None:
        """A loop: `each` is evaluated once per run of the body, the last of it once more at entry when a loop may run
        zero times. (After a `break` that is one evaluation too many.)"""
        before = self._on.region
        assert before is not None
        loop = Loop(syntax.written(node), before)

        def visit() -> None:
            self._on.loops.append(loop)
            self._body(body, counted=True)
            last = self._regions[first] if syntax.continues(body) else self._on.region or self._regions[first]
            self._on.region = last
            tests = len(last.ops)
            for part in each:
                tests = len(last.ops)
                self._on.value(part)
            self._on.add("branch", node)
            last.whole_loop = len(self._regions) == first + 1 and not self._calls(body)
            if at_entry:
                before.ops += [replace(op, operands=()) for op in last.ops[tests:] if op.mask is None]
            self._on.loops.pop()

        first = len(self._regions)
        self._nested(node, visit)

    def _for(self, node: Node) -> None:
        start, _, condition, step, body = node["inner"]
        self._open(self._start(node))
        if start.get("kind"):
            self._on.value(start)
        self._loop(node, body, [part for part in (step, condition) if part.get("kind")], bool(condition.get("kind")))

    def _while(self, node: Node) -> None:
        *_, condition, body = syntax.children(node)
        self._open(self._start(node))
        self._loop(node, body, [condition], True)

    def _do(self, node: Node) -> None:
        body, condition = syntax.children(node)
        self._open(self._start(node))
        self._loop(node, body, [condition], False)

    def _switch(self, node: Node) -> None:
        *_, value, body = syntax.children(node)
        self._open(self._start(node))
        self._on.add("branch", node, self._on.value(value))
        self._nested(node, lambda: self._statement(body))

    def _label(self, node: Node) -> None:
        """Statements after a label run more often than those before it."""
        self._on.region = None
        self._attributed(node)

    def _attributed(self, node: Node) -> None:
        self._statement(syntax.children(node)[-1])

    _STATEMENTS: ClassVar[dict[str, Callable[[_Writer, Node], None]]] = {
        "CompoundStmt": _compound,
        "IfStmt": _if,
        "ForStmt": _for,
        "WhileStmt": _while,
        "DoStmt": _do,
        "SwitchStmt": _switch,
        "CaseStmt": _label,
        "DefaultStmt": _label,
        "LabelStmt": _label,
        "AttributedStmt": _attributed,
    }


_LABELS = ("CaseStmt", "DefaultStmt", "LabelStmt", "AttributedStmt")


@syntax.noted
def _is_point(call: Node) -> bool:
    """Whether a call talks to the device."""
    kind = class_of(syntax.callee(call))
    return kind is not None and kind.point


def _talking_functions(text: Text) -> frozenset[str]:
    """The text's own functions that talk to the device, themselves or through others."""
    calls: dict[str, set[str]] = {}
    talking = set()
    for function in text.declarations:
        for call in syntax.calls(function):
            calls.setdefault(syntax.callee(call), set()).add(function["name"])
            if _is_point(call):
                talking.add(function["name"])
    pending = list(talking)
    while pending:
        for caller in calls.get(pending.pop(), set()) - talking:
            talking.add(caller)
            pending.append(caller)
    return frozenset(talking)

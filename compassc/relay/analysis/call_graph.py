"""Which functions of a module call which."""

from __future__ import annotations

from collections import Counter

from compassc.relay.analysis.counts import functions_of
from compassc.relay.expr import GlobalVar
from compassc.relay.module import IRModule
from compassc.relay.visit import children, post_order


class CallGraph:
    """The functions of a module with the functions they mention, and how often. Functions are given by name or variable."""

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self.calls: dict[str, Counter[str]] = {}
        """Of each function how often it mentions others."""
        for name, function in functions_of(module):
            mentioned = [c for e in post_order(function) for c in children(e) if isinstance(c, GlobalVar)]
            self.calls[name] = Counter(v.name_hint for v in mentioned)

    def _name(self, var: GlobalVar | str) -> str:
        return self.module.get_global_var(var if isinstance(var, str) else var.name_hint).name_hint

    def ref_count(self, var: GlobalVar | str) -> int:
        """How often functions of the module mention a function."""
        name = self._name(var)
        return sum(mentioned[name] for mentioned in self.calls.values())

    def global_call_count(self, var: GlobalVar | str) -> int:
        """How often a function mentions functions of the module."""
        return sum(self.calls.get(self._name(var), Counter()).values())

    def is_recursive(self, var: GlobalVar | str) -> bool:
        """Whether a function mentions itself."""
        name = self._name(var)
        return self.calls.get(name, Counter())[name] > 0

    def print_var(self, var: GlobalVar | str) -> str:
        """A function with what it mentions, as text."""
        name = self._name(var)
        lines = [f"Call graph node: {name} #refs = {self.ref_count(name)}"]
        return "\n".join(lines + [f"  calls {callee} {n} times" for callee, n in self.calls.get(name, {}).items()])

    def __str__(self) -> str:
        return "\n\n".join(self.print_var(v) for v in sorted(self.calls))

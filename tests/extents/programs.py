"""Random extents programs, what they really access, and ways to damage them."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np

from compass_core.operators import OPERATORS, wrap

TECS = 4
POINTERS = ("a", "b")
SCALARS = ("n", "m")
_MOST_STEPS = 4000
_BINARY = ("add", "sub", "mul", "min", "max", "add", "sub", "div", "mod", "floordiv", "floormod", "bitand", "bitxor")
_TESTS = ("lt", "le", "gt", "ge", "eq", "ne")
_CUTS = ("i32", "u8", "i8", "u16")


class TooLong(Exception):
    """The program takes more steps than a test has time for."""


class _Leave(Exception):
    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind, self.value = kind, value


class Generator:
    """One random program: loops, conditions and moving variables as kernels have them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def program(self) -> dict[str, Any]:
        helper = {"params": ["p", "k"], "body": self._body(1, ["k"], ["p"], 2) + [["return", self._expr(["k"], 2)]]}
        body = [["let", "s", self._expr(list(SCALARS), 2)], ["let", "q", ["addr", "b", 8]]]
        body += self._body(0, [*SCALARS, "s"], ["a", "b", "q"], 4, ["s"], ["q"])
        functions = {"f": helper, "k": {"params": [*POINTERS, *SCALARS], "body": body}}
        return {"entry": "k", "params": {"a": 4, "b": 1}, "functions": functions}

    def scalars(self) -> dict[str, int]:
        return {name: self.random.choice([0, 1, 2, 3, 5, 8, 13, 21, 40, -4]) for name in SCALARS}

    def _name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def _expr(self, names: list[str], depth: int) -> Any:
        r = self.random
        if depth == 0 or r.random() < 0.3:
            leaf = r.random()
            return r.choice(names) if leaf < 0.6 else r.randint(-3, 12) if leaf < 0.95 else ["tid"]
        sub = lambda: self._expr(names, depth - 1)
        kind = r.random()
        if kind < 0.6:
            op = r.choice(_BINARY)
            return [op, sub(), r.choice([1, 2, 3, 4, 7, 8]) if op in ("div", "mod", "floordiv", "floormod") else sub()]
        if kind < 0.7:
            return [r.choice(("shl", "shr")), sub(), r.randint(0, 3)]
        if kind < 0.8:
            return [r.choice(_CUTS), sub()]
        if kind < 0.84:
            return ["select", self._test(names, depth - 1), sub(), sub()]
        if kind < 0.87:
            return ["int", ["mul", ["float", sub()], r.choice([0.3, 0.1, 1.7])]]
        if kind < 0.9:
            return ["abs", sub()]
        if kind < 0.93:
            return ["ceildiv", sub(), r.choice([2, 3, 8])]
        return ["?", 0, r.randint(0, 9)] if kind < 0.98 else ["?"]

    def _test(self, names: list[str], depth: int) -> Any:
        r = self.random
        if r.random() < 0.15:
            return [r.choice(("and", "or")), self._test(names, depth), self._test(names, depth)]
        if r.random() < 0.1:
            return ["not", self._test(names, depth)]
        return (
            [r.choice(_TESTS), self._expr(names, depth), self._expr(names, depth)] if r.random() < 0.9 else ["?", 0, 1]
        )

    def _body(
        self,
        depth: int,
        names: list[str],
        pointers: list[str],
        length: int,
        variables: Any = (),
        moving: Any = (),
        loop: bool = False,
    ) -> list[Any]:
        r, out = self.random, []
        names, variables = list(names), list(variables)
        for _ in range(r.randint(1, length)):
            kind = r.random()
            if kind < 0.35 or depth > 3:
                out.append(["access", r.choice(pointers), ["mul", self._expr(names, 2), 4], self._bytes(names)])
            elif kind < 0.45:
                name = self._name()
                out.append(["let", name, self._expr(names, 2)])
                names.append(name)
                if r.random() < 0.5:
                    variables.append(name)
            elif kind < 0.55 and variables:
                name = r.choice(variables)
                step = r.choice([["i32", ["add", name, r.randint(1, 8)]], ["sub", name, 2], self._expr(names, 2)])
                out.append(["set", name, step])
            elif kind < 0.6 and moving:
                out.append(["set", moving[0], ["addr", moving[0], ["mul", r.randint(-2, 8), 4]]])
            elif kind < 0.8:
                out.append(self._for(depth, names, pointers, length, variables, moving))
            elif kind < 0.85:
                out += self._while(depth, names, pointers, length, variables, moving)
            elif kind < 0.95:
                bodies = [self._body(depth + 1, names, pointers, 2, variables, moving, loop) for _ in range(2)]
                out.append(["if", self._test(names, 2), bodies[0], bodies[1] if r.random() < 0.4 else []])
                if loop and r.random() < 0.3:
                    out[-1][2].append(["break"])
            elif kind < 0.97:
                out.append(["if", self._test(names, 1), [["return", r.randint(0, 3)]], []])
            elif depth == 0:
                name = self._name()
                out.append(["let", name, ["call", "f", r.choice(pointers), self._expr(names, 1)]])
                names.append(name)
        return out

    def _bytes(self, names: list[str]) -> Any:
        r = self.random
        lanes = ["max", 0, ["min", self._expr(names, 2), 8]]
        return 4 if r.random() < 0.5 else ["mul", lanes if r.random() < 0.8 else ["between", 0, 8], 4]

    def _for(self, depth: int, names: Any, pointers: Any, length: int, variables: Any, moving: Any) -> list[Any]:
        r, var = self.random, self._name()
        start = 0 if r.random() < 0.6 else self._expr(names, 1)
        stop = r.choice([names[0], r.choice(names), 7, 20]) if r.random() < 0.7 else self._expr(names, 2)
        if r.random() < 0.1:
            return [
                "tec",
                var,
                0,
                r.randint(1, 4),
                self._body(depth + 1, [*names, var], pointers, 2, variables, moving),
            ]
        body = self._body(depth + 1, [*names, var], pointers, max(1, length - 1), variables, moving, True)
        return ["for", var, start, stop, r.choice([1, 1, 1, 2, 8]), body]

    def _while(self, depth: int, names: Any, pointers: Any, length: int, variables: Any, moving: Any) -> list[Any]:
        r, var = self.random, self._name()
        body = self._body(depth + 1, [*names, var], pointers, max(1, length - 1), variables, moving, True)
        step = ["set", var, ["i32", ["add", var, r.choice([1, 3, 8])]]]
        body.insert(r.choice([0, len(body)]), step)
        return [["let", var, r.randint(0, 3)], ["while", [r.choice(("lt", "le")), var, r.choice([names[0], 30])], body]]


class Reference:
    """Runs a program one step after the other; data is random. `top`: bytes accessed of each pointer."""

    def __init__(self, program: dict[str, Any], scalars: dict[str, int], seed: int) -> None:
        self.program, self.scalars, self.random = program, scalars, random.Random(seed)
        self.top = dict.fromkeys(program["params"], 0)
        self.steps = 0
        for self.tid in range(TECS):
            entry = program["functions"][program["entry"]]
            self.call(entry, [(n, 0) if n in self.top else scalars[n] for n in entry["params"]])

    def call(self, function: Any, args: list[Any]) -> Any:
        try:
            self.body(function["body"], dict(zip(function["params"], args, strict=True)))
        except _Leave as leave:
            return leave.value
        return None

    def body(self, body: list[Any], env: dict[str, Any]) -> None:
        for s in body:
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise TooLong
            getattr(self, "do_" + s[0])(s, env)

    def do_let(self, s: Any, env: Any) -> None:
        env[s[1]] = self.expr(s[2], env)

    do_set = do_let

    def do_break(self, s: Any, env: Any) -> None:
        raise _Leave("break")

    def do_return(self, s: Any, env: Any) -> None:
        raise _Leave("return", None if s[1] is None else self.expr(s[1], env))

    def do_if(self, s: Any, env: Any) -> None:
        self.body(s[2] if self.expr(s[1], env) else s[3], env)

    def do_tec(self, s: Any, env: Any) -> None:
        if self.expr(s[2], env) <= self.tid < self.expr(s[3], env):
            env[s[1]] = self.tid
            self.body(s[4], env)

    def do_for(self, s: Any, env: Any) -> None:
        for i in range(self.expr(s[2], env), self.expr(s[3], env), s[4]):
            env[s[1]] = i
            if self.once(s[5], env):
                return

    def do_while(self, s: Any, env: Any) -> None:
        while self.expr(s[1], env):
            if self.once(s[2], env):
                return

    def once(self, body: Any, env: Any) -> bool:
        try:
            self.body(body, env)
        except _Leave as leave:
            if leave.kind == "return":
                raise
            return True
        return False

    def do_access(self, s: Any, env: Any) -> None:
        pointer = self.expr(s[1], env)
        size, offset = self.expr(s[3], env), self.expr(s[2], env)
        if size > 0:
            self.top[pointer[0]] = max(self.top[pointer[0]], pointer[1] + offset + size)

    def expr(self, e: Any, env: Any) -> Any:
        self.steps += 1
        if isinstance(e, str):
            return env[e]
        if not isinstance(e, list):
            return e
        op = e[0]
        if op == "?":
            return self.random.randint(*e[1:]) if len(e) > 1 else self.random.choice([-100, 0, 3, 100])
        if op == "tid":
            return self.tid
        if op == "call":
            return self.call(self.program["functions"][e[1]], [self.expr(x, env) for x in e[2:]])
        if op in ("and", "or", "select"):
            first = self.expr(e[1], env)
            if op == "select":
                return self.expr(e[2] if first else e[3], env)
            return self.expr(e[2], env) if bool(first) == (op == "and") else first
        return self.operator(op, [self.expr(x, env) for x in e[1:]])

    def operator(self, op: str, args: list[Any]) -> Any:
        if op == "addr":
            return args[0][0], args[0][1] + args[1]
        if op in _CUTS:
            return wrap(args[0], int(op[1:]), op[0] == "i")
        if op == "mul" and type(args[1]) is float:
            return float(np.float32(args[0]) * np.float32(args[1]))
        one = {"not": lambda a: int(not a), "abs": abs, "int": int, "float": lambda a: float(np.float32(a))}
        if op == "int" and not np.isfinite(args[0]):
            raise TooLong  # no whole number: what a device makes of it is its own
        if op in one:
            return one[op](*args)
        if op == "ceildiv":
            return OPERATORS["div"].evaluate(args[0] + args[1] - 1, args[1])
        if op == "between":
            return self.random.randint(*args)
        return OPERATORS[op].evaluate(*args)


_JUNK: list[Any] = [
    None,
    True,
    [],
    {},
    "",
    "zz",
    -1,
    0,
    1 << 70,
    10**4000,
    1e308,
    float("nan"),
    ["?"],
    ["while", 1, []],
    ["for", "i", 0, 1 << 62, 1, []],
    ["call", "f", "a", 1],
    ["call", "k", "a", "b", 1, 1],
]


def damaged(program: dict[str, Any], seed: int) -> Any:
    """A program with parts replaced, removed, repeated or nested deeply."""
    r = random.Random(seed)
    broken = copy.deepcopy(program)
    deepened: list[tuple[Any, Any]] = []
    for _ in range(r.randint(1, 4)):
        places: list[tuple[Any, Any]] = []
        stack: list[Any] = [broken]
        while stack:
            x = stack.pop()
            keys = x if isinstance(x, dict) else range(len(x))
            places += [(x, k) for k in keys]
            stack += [x[k] for k in keys if isinstance(x[k], (dict, list))]
        if not places:  # all of it is gone already
            break
        parent, key = r.choice(places)
        way = r.random()
        if way < 0.5:
            parent[key] = copy.deepcopy(r.choice(_JUNK))
        elif way < 0.7:
            other, k = r.choice(places)
            parent[key] = copy.deepcopy(other[k])
        elif way < 0.8:
            del parent[key]
        elif way < 0.9 and isinstance(parent, list):
            parent[key:key] = [copy.deepcopy(parent[key])] * r.choice([2, 500])
        else:
            deepened.append((parent, key))
    for parent, key in deepened:
        if isinstance(parent, dict) and key in parent or isinstance(parent, list) and key < len(parent):
            for _ in range(r.choice([3, 50, 5000])):
                parent[key] = [r.choice(("i32", "not", "abs")), parent[key]]
    return broken

"""Runs the index arithmetic of a kernel, and notes how far into each tensor it goes.

A loop is first looked at as a whole: its counter, and whatever moves by the same amount in each iteration, are forms in
the number of the iteration (`values`), so that the time does not depend on how often it runs. Where iterations behave
differently it is looked at in parts (`Split`), where that does not settle it, iteration by iteration as long as that is
cheap. What is left then is an upper bound, and accesses that may or may not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from .loops import DISTANCE, Break, Loop, Returned, iteration, moved
from .reach import Reach
from .runs import Run, Runs
from .structure import Code, Program, Structure, mentions, size
from .values import (
    Address,
    Counter,
    Env,
    Form,
    Linear,
    Split,
    Value,
    add,
    apply,
    between,
    bounds,
    either,
    is_exact,
    number,
    numbers,
    reason_of,
    unknown,
    unknown_like,
)

REFINED = 600
"""Steps (statements and parts of expressions) after which loops are only looked at as a whole; about a millisecond."""
TECS_REFINED = 6_000
"""Steps up to which each TEC is looked at by itself, where all of them together give too large a size."""
STEP_LIMIT = 60_000
"""Steps after which the answer is that it takes too long."""
ENV_PER_STEP = 100
"""Variables that are copied at the cost of a step."""
CALL_LIMIT = 32
"""Functions that may have called each other."""


class TooLong(Exception):
    pass


class Interpreter:
    """One run of a program. `reach` is what it found; TooLong and RecursionError leave what was found so far."""

    def __init__(self, program: Program, scalars: Mapping[str, float], tecs: int, nulls: Container[str]) -> None:
        self.functions = program["functions"]
        self.reach = Reach(program["params"])
        self.scalars, self.nulls, self.tecs = scalars, nulls, tecs
        self.tid: Linear = 0
        self.steps = 0
        self.depth = 0
        self.maybe = False
        """Whether what runs now may also not run."""
        self.fixed = False
        """Whether `maybe` is so for a reason that looking closer at the loop at hand does not remove."""
        self.left = False
        """Whether the function may have returned already."""
        self.results: Code = []
        self.breaks: list[Env] = []
        """Variables where a loop may have been left."""
        self.structure = Structure()
        self.runs = Runs()
        self.sizes: dict[int, int] = {}

    def run(self, entry: str, tids: int) -> None:
        """The kernel on TECs 0 to `tids` - 1."""
        env = {name: self._argument(name) for name in self.functions[entry]["params"]}
        body = [["kernel", self.functions[entry]["body"]]]
        self._iterate(Loop(body, env, tids, {}, [], False), self._become)

    def _argument(self, name: str) -> Value:
        if name in self.reach.certain:
            return Address(name, 0)
        value = self.scalars.get(name)
        return unknown(f"the scalar {name!r} has no value") if value is None else value

    # -- statements

    def body(self, statements: list[Code], env: Env) -> None:
        for s in self.runs.of(statements):
            if isinstance(s, Run):
                self._accesses(s, env)
                continue
            self.steps += 1
            if self.steps > STEP_LIMIT:
                raise TooLong
            _STATEMENTS[s[0]](self, s, env)

    def count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > STEP_LIMIT:
            raise TooLong

    def _let(self, s: Code, env: Env) -> None:
        env[s[1]] = self.expr(s[2], env)

    def _do(self, s: Code, env: Env) -> None:
        self.expr(s[1], env)

    def _break(self, s: Code, env: Env) -> None:
        raise Break

    def _return(self, s: Code, env: Env) -> None:
        raise Returned(None if s[1] is None else self.expr(s[1], env))

    def _kernel(self, s: Code, env: Env) -> None:
        """The whole kernel, on one TEC."""
        saved = self.maybe
        try:
            self.body(s[1], dict(env))
        except Returned:
            pass
        self.maybe, self.left = saved, False

    def _become(self, tid: Linear) -> None:
        self.tid = tid

    def _if(self, s: Code, env: Env) -> None:
        cond = s[1]
        if isinstance(cond, list) and cond[0] == "and" and not s[3]:
            self._if(["if", cond[1], [["if", cond[2], s[2], []]], []], env)
            return
        truth = self.truth(cond, env)
        if not isinstance(truth, Form):
            self.body(s[2] if truth else s[3], env)
            return
        self.count(len(env) // ENV_PER_STEP)
        before, saved, fixed, left = dict(env), self.maybe, self.fixed, False
        self.fixed = fixed or bool(truth.reason)
        breaks = len(self.breaks)
        results = []
        for branch in (s[2], s[3]):
            inner = dict(before)
            self.maybe = True
            try:
                self.body(branch, inner)
            except (Break, Returned) as leave:
                left = True
                self._leave(leave, inner)
                continue
            finally:
                left = left or self.left
                self.maybe = saved
            results.append(inner)
        left = left or len(self.breaks) > breaks  # also by a break of an if in a branch
        self.maybe, self.fixed = saved or left, fixed
        for name in before if results else ():
            first, last = results[0][name], results[-1][name]
            env[name] = first if first is last else either(first, last, truth.reason)

    def _leave(self, leave: Exception, env: Env) -> None:
        """A break or return that may happen, with these variables."""
        if isinstance(leave, Returned):
            self.left = True
            self.results.append(leave.value)
        else:
            self.breaks.append(env)

    def _tec(self, s: Code, env: Env) -> None:
        _, var, start, stop, body = s
        inside = ["and", ["le", start, ["tid"]], ["lt", ["tid"], stop]]
        self._if(["if", inside, [["let", var, ["tid"]], *body], []], env)

    # -- loops

    def _for(self, s: Code, env: Env) -> None:
        _, var, start, stop, step, body = s
        over: list[Any] = [self.expr(e, env) for e in (start, stop, step)]
        low, high, stride = over
        if isinstance(low, Form) or isinstance(high, Form) or isinstance(stride, Form) or stride <= 0:
            self._uncertain_for(var, low, high, stride, body, env)
            return
        count = max(0, -((low - high) // stride))
        moving, others = _changes(body, env, self)
        moving[var] = stride
        self._repeat(
            Loop(body, {**env, var: low}, count, moving, others, self.structure.of(body).leaves), env, local=var
        )

    def _uncertain_for(self, var: str, low: object, high: object, stride: object, body: list[Code], env: Env) -> None:
        """A loop whose bounds are not known."""
        least, most = bounds(low)[0], bounds(high)[1] - 1
        if most < least:
            return
        why = reason_of(low, high, stride)
        if bounds(stride)[0] <= 0:
            why = why or "a loop has no end"
            inner: Linear = unknown(why)
        else:
            inner = between(least, most, why)
            if not reason_of(low, high):  # it differs between the iterations of an outer loop
                counter = Counter(0, max(0, most - least))
                counter.active = False
                inner = Form({counter: 1}, least, least)
        self._once(body, env, why, {var: inner})

    def _while(self, s: Code, env: Env) -> None:
        moving, others = _changes(s[2], env, self)
        body = self.structure.of(s[2])
        fixed = not mentions(s[1], body.defined - moving.keys())
        count = self._while_count(s[1], env, moving) if fixed else None
        if count is not None:
            self._repeat(Loop(s[2], env, count, moving, others, body.leaves), env)
            return
        names = [name for name in body.changed if name in env]
        self._loop(lambda: self._step_by_step(s, env), env, names)

    def _step_by_step(self, s: Code, env: Env) -> Env:
        """A `while` loop as long as its condition is known and that is cheap."""
        env = dict(env)
        try:
            while True:
                self.count(1)
                cond = self.truth(s[1], env)
                if isinstance(cond, Form) or self.steps > REFINED:
                    self._once(s[2], env, reason_of(cond) or "a loop's end is not known", {})
                    return env
                if not cond:
                    return env
                self.body(s[2], env)
        except Break:
            return env

    def _while_count(self, cond: object, env: Env, moving: dict[str, int]) -> int | None:
        """The number of iterations of a loop whose condition compares linear values; None for other loops."""
        if not (moving and isinstance(cond, list) and cond[0] in DISTANCE):
            return None
        counter = Counter(0, 0)
        start = moved(env, moving, Form({counter: 1}, 0, 0))
        difference = add(self.number(cond[1], start), self.number(cond[2], start), -1)
        if not isinstance(difference, Form) or set(difference.terms) != {counter} or not is_exact(difference):
            return None
        count = DISTANCE[cond[0]](difference.low, difference.terms[counter])
        if count is None:
            return None
        counter.last = count  # it holds that far only if nothing wraps on the way
        again = add(self.number(cond[1], start), self.number(cond[2], start), -1)
        same = isinstance(again, Form) and again.terms == difference.terms and again.low == again.high == difference.low
        return count if same else None

    def _once(self, body: list[Code], env: Env, why: str, given: Env) -> None:
        """A loop of unknown length: one pass over its accesses, with all that it changes unknown."""
        before, saved, breaks, fixed = dict(env), self.maybe, self.breaks, self.fixed
        self.maybe, self.breaks, self.fixed = True, [], fixed or bool(why)
        others = self.changed(body, env)
        try:
            inner = self._settle(body, {**env, **given}, others, why)
            try:
                self.body(body, inner)
            except (Break, Returned) as leave:
                self._leave(leave, inner)
        finally:
            self.maybe, self.fixed = saved or self.left, fixed
            left, self.breaks = self.breaks, breaks
        for name in others:
            for end in (inner, *left):
                env[name] = either(before[name] if end is inner else env[name], end[name], why)

    def changed(self, body: list[Code], env: Env) -> list[str]:
        """The variables of the surroundings that a body changes."""
        found = [name for name in self.structure.of(body).changed if name in env]
        self.count(len(found) + len(env) // ENV_PER_STEP)
        return found

    def _settle(self, body: list[Code], env: Env, others: list[str], why: str) -> Env:
        """Possible values of variables at the start of any iteration: those before the loop or after an iteration."""
        if not others:
            return dict(env)
        reach, saved, left, breaks = self.reach, self.maybe, self.left, self.breaks
        self.reach, self.maybe, self.breaks = Reach(reach.certain), True, []
        inner = {**env, **{name: unknown_like(env[name], why) for name in others}}
        try:
            self.body(body, inner)
        except (Break, Returned):
            pass
        finally:
            self.reach, self.maybe, self.left = reach, saved, left
            self.breaks = breaks
        return {**env, **{name: either(env[name], inner[name], why) for name in others}}

    def _repeat(self, loop: Loop, env: Env, local: str = "") -> None:
        """A loop that runs `loop.count` times; afterwards `env` is as it leaves it."""
        if loop.count:
            names = [name for name in (*loop.moving, *loop.others) if name != local and name in env]
            self._loop(lambda: self._iterate(loop, None), env, names)

    def _loop(self, run: Callable[[], Env], env: Env, names: list[str]) -> None:
        """Run a loop, which `run` executes and which changes the variables `names`; returns their values at its end."""
        saved, left, breaks, fixed = self.maybe, self.left, self.breaks, self.fixed
        self.left, self.breaks, self.fixed = False, [], fixed or saved
        attained = dict(self.reach.attained) if saved and not fixed else None
        ends: list[Env] = []
        try:
            ends.append(run())
        except Returned as leave:
            if not self.breaks:
                raise
            self._leave(leave, env)  # or the loop was left before
        finally:
            ends += self.breaks
            self.maybe, self.left, self.fixed = saved or self.left, left or self.left, fixed
            self.breaks = breaks
            if attained is not None:
                self.reach.attained = attained
        for name in names:
            value = ends[0][name]
            for end in ends[1:]:
                value = either(value, end[name], _CHANGES)
            env[name] = value

    def _iterate(self, loop: Loop, start: Callable[[Linear], None] | None) -> Env:
        """The iterations of a loop; what variables are afterwards. `start` is called before each, with its number."""
        if loop.count <= 2 or (loop.others and self._affordable(loop)):
            return self._each(loop, start)
        before = self.reach.saved()
        ends = self._together(loop, 0, loop.count - 1, start)
        most = REFINED if start is None else TECS_REFINED
        if self.reach.settled(before) or self.steps > most:
            return ends
        roughly = self.reach.saved()
        self.reach.restore(before)
        if self._affordable(loop, most):
            return self._each(loop, start)
        self._first_and_last(loop, start)
        if loop.others or loop.leaves:
            self.reach.restore(roughly)
            return ends
        return self._together(loop, 1, loop.count - 2, start) if loop.count > 2 else ends

    def _affordable(self, loop: Loop, most: int = REFINED) -> bool:
        key = id(loop.body)
        if key not in self.sizes:
            self.sizes[key] = size(loop.body)
        return loop.count * self.sizes[key] <= most - self.steps

    def _each(self, loop: Loop, start: Callable[[Linear], None] | None) -> Env:
        """Iteration by iteration."""
        env = dict(loop.env)
        for k in range(loop.count):
            env.update(iteration(loop, k))
            if start is not None:
                start(k)
            try:
                self.body(loop.body, env)
            except Break:
                return env
        return {**env, **iteration(loop, loop.count)}

    def _first_and_last(self, loop: Loop, start: Callable[[Linear], None] | None) -> None:
        """The two iterations that mostly go farthest."""
        saved = self.maybe
        for k in (0, loop.count - 1):
            if k and loop.others:
                break
            self.maybe = saved or (k > 0 and loop.leaves)
            env = {**loop.env, **iteration(loop, k)}
            if start is not None:
                start(k)
            try:
                self.body(loop.body, env)
            except (Break, Returned) as leave:
                self._leave(leave, env)
        self.maybe = saved

    def _together(self, loop: Loop, first: int, last: int, start: Callable[[Linear], None] | None) -> Env:
        """The iterations `first` to `last` at once, or in a few parts."""
        saved, left = self.maybe, self.left
        parts = [(first, last)]
        changed: Env = {}
        doubt = False
        while parts:
            first, last = parts.pop()
            counter = Counter(first, last)
            k = first if first == last else Form({counter: 1}, 0, 0)
            env = {**loop.env, **iteration(loop, k)}
            if start is not None:
                start(k)
            before, known, breaks = self.reach.saved(), dict(self.reach.certain), len(self.breaks)
            self.maybe = saved or doubt
            try:
                env = self._settle(loop.body, env, loop.others, _CHANGES)
                self.body(loop.body, env)
            except Split as split:
                self.left = left
                if split.counter is not counter:
                    raise
                self.reach.restore(before)
                self.reach.certain = known  # an iteration of the first part may end the loop
                parts += [(split.at, last), (first, split.at - 1)]
                continue
            except (Break, Returned) as leave:
                if first == last:
                    return self._end(leave, env, doubt)
                self.reach.restore(before)
                self.reach.certain = known
                parts = [(first, first)]
                continue
            finally:
                counter.active = False
                self.maybe = saved
            if not doubt and (len(self.breaks) > breaks or self.left != left):
                doubt = True
                if first < last:  # once more, for a later iteration may not happen
                    self.reach.certain = known
                    parts.append((first, last))
            for name in loop.others:
                changed[name] = either(changed.get(name, loop.env.get(name)), env[name], _CHANGES)
        return {**loop.env, **changed, **iteration(loop, loop.count)}

    def _end(self, leave: Exception, env: Env, doubt: bool) -> Env:
        """The loop ends here; with `doubt` it may have ended before."""
        if isinstance(leave, Returned) and not doubt:
            raise leave
        if doubt:
            self._leave(leave, env)
        return env

    # -- accesses

    def _access(self, s: Code, env: Env) -> None:
        pointer = self.expr(s[1], env)
        if not isinstance(pointer, Address):
            if isinstance(pointer, Form):
                self.reach.blame_all(pointer.reason or "an address is a number")
            return
        root = pointer.root
        if root is None:
            return
        size = self.number(s[3], env)
        end = add(add(pointer.offset, self.number(s[2], env)), size)
        self.reach.note(root, end, size, self.maybe, self.fixed)

    def _accesses(self, run: Run, env: Env) -> None:
        ends = run.ends(env) if self.steps + run.steps <= STEP_LIMIT else None
        if ends is None:
            for s in run.statements:
                self.body([s], env)
            return
        self.steps += run.steps
        for root, end in ends:
            self.reach.note(root, end, 1, self.maybe, self.fixed)

    # -- expressions

    def number(self, e: object, env: Env) -> Linear:
        """The value of an expression that is a number."""
        return number(self.expr(e, env))

    def truth(self, e: object, env: Env) -> bool | Form:
        """A condition: true, false, or a Form where it may be either."""
        value = self.number(e, env)
        if not isinstance(value, Form):
            return bool(value)
        low, high = bounds(value)
        return value if low <= 0 <= high else True

    def expr(self, e: Any, env: Env) -> Value:
        kind = type(e)
        if kind is int or kind is float or kind is bool:
            literal: Linear = e
            return literal
        self.steps += 1
        if self.steps > STEP_LIMIT:
            raise TooLong
        if kind is str:
            found = env.get(e)
            return unknown(f"{e!r} is not known") if found is None else found
        rule = _EXPRESSIONS.get(e[0])
        if rule is not None:
            return rule(self, e, env)
        args = numbers([x if type(x) is int else self.expr(x, env) for x in e[1:]])
        try:
            return apply(e[0], args, self.steps < REFINED)
        except OverflowError:
            return unknown(f"the index arithmetic fails at `{e[0]}`")

    def _select(self, e: Code, env: Env) -> Value:
        cond = self.truth(e[1], env)
        if not isinstance(cond, Form):
            return self.expr(e[2] if cond else e[3], env)
        return either(self.expr(e[2], env), self.expr(e[3], env), cond.reason)

    def _logical(self, e: Code, env: Env) -> Value:
        left = self.truth(e[1], env)
        decides = e[0] == "or"
        if left is decides:
            return 1 if decides else 0
        right = self.truth(e[2], env)
        if not isinstance(left, Form):
            return right if isinstance(right, Form) else int(right)
        return (1 if decides else 0) if right is decides else left

    def _address(self, e: Code, env: Env) -> Value:
        base, offset = self.expr(e[1], env), self.number(e[2], env)
        if not isinstance(base, Address):
            return base if isinstance(base, Form) else unknown("a pointer made from a number")
        return base if base.root is None else Address(base.root, add(base.offset, offset))

    def _isnull(self, e: Code, env: Env) -> Value:
        pointer = self.expr(e[1], env)
        return int(pointer.root in self.nulls) if isinstance(pointer, Address) else Form({}, 0, 1, reason_of(pointer))

    def _data(self, e: Code, env: Env) -> Value:
        why = "an address depends on data"
        return between(e[1], e[2], why) if len(e) == 3 else unknown(why)

    def _call(self, e: Code, env: Env) -> Value:
        function = self.functions[e[1]]
        inner = dict(zip(function["params"], [self.expr(x, env) for x in e[2:]]))
        if self.depth >= CALL_LIMIT:
            raise TooLong
        saved, left, results = self.maybe, self.left, self.results
        self.left, self.results = False, []
        self.depth += 1
        try:
            self.body(function["body"], inner)
        except Returned as r:
            self.results.append(r.value)
        finally:
            values, self.results = self.results, results
            self.maybe, self.left = saved, left
            self.depth -= 1
        found = values[0] if values else None
        for other in values[1:]:
            found = either(found, other, "a function may give several values")
        return found


_CHANGES = "an address depends on what a loop changes"


def _changes(body: list[Code], env: Env, interpreter: Interpreter) -> tuple[dict[str, int], list[str]]:
    """The variables that a body moves by the same amount each time, and the others that it changes."""
    changed, summary = interpreter.changed(body, env), interpreter.structure.of(body)
    moving = {}
    for name in changed:
        step = _step(name, summary.changed[name], summary.defined, env, interpreter)
        if step is not None:
            moving[name] = step
    return moving, sorted(set(changed) - set(moving))


def _step(name: str, e: object, inside: frozenset[str], env: Env, interpreter: Interpreter) -> int | None:
    """The amount that `e` adds to the variable; None when it is not constant. `inside`: what the loop defines."""
    while isinstance(e, list) and len(e) == 2 and e[0] in ("i32", "i64"):  # beyond these is no address
        e = e[1]
    if not (isinstance(e, list) and len(e) == 3 and e[0] in ("add", "sub", "addr")):
        return None
    _, a, b = e
    if b == name and e[0] == "add":
        a, b = b, a
    if a != name or mentions(b, inside) or not isinstance(env[name], (int, Address, Form)):
        return None
    step = interpreter.expr(b, env)
    if type(step) is not int:
        return None
    return -step if e[0] == "sub" else step


_STATEMENTS: dict[str, Callable[[Interpreter, Code, Env], None]] = {
    "let": Interpreter._let,
    "set": Interpreter._let,
    "for": Interpreter._for,
    "tec": Interpreter._tec,
    "kernel": Interpreter._kernel,
    "while": Interpreter._while,
    "if": Interpreter._if,
    "access": Interpreter._access,
    "do": Interpreter._do,
    "break": Interpreter._break,
    "return": Interpreter._return,
}
_EXPRESSIONS: dict[str, Callable[[Interpreter, Code, Env], Value]] = {
    "?": Interpreter._data,
    "tid": lambda m, e, env: m.tid,
    "tecs": lambda m, e, env: m.tecs,
    "local": lambda m, e, env: Address(None, 0),
    "select": Interpreter._select,
    "and": Interpreter._logical,
    "or": Interpreter._logical,
    "addr": Interpreter._address,
    "isnull": Interpreter._isnull,
    "call": Interpreter._call,
}

"""Integer division that never traps: NPUs have no such fault, hosts do, and C leaves it undefined.

`x / 0` and `x % 0` are 0. The least number divided by -1 is itself.

A text that divides by anything but plain numbers becomes one that calls `__compass_quotient` and `__compass_remainder`
(`compass/scalar.h`) where all its divisions stand alone in brackets, as those of our C printer do. Others, and those of types
which these functions do not take, are compiled in two steps: to clang's intermediate representation, where `/` and `%` are
an instruction each, whose place calls of the functions below take, and from there to the object.

In checked runs the functions tell the engine of a scalar divided by 0, and of a lane other than 0: lanes of which both
are 0 are what masked loads leave behind.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

_QUOTED = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*(?:"|$|\\\Z)' + r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*(?:'|$|\\\Z)"
_IGNORED = re.compile(rf"//[^\n]*|/\*.*?(?:\*/|\Z)|\n[ \t]*#[ \t]*include[^\n]*|{_QUOTED}", re.DOTALL | re.MULTILINE)
"""Comments, includes behind the end of a line, and text in quotes: all begin with a certain character, by which they are found
quickly. What is not closed ends with the line or the text, so that each of them is found where it begins, and the search takes
no more time than the text is long."""
_HARMLESS = re.compile(
    r"\s*(?:(?:0[xX][0-9a-fA-F]*[1-9a-fA-F][0-9a-fA-F]*|[1-9]\d*)[uU]?|0[xX][\da-fA-F.]+[pP][-+]?\d+[fF]?)(?![\w.])"
)
"""A number that is not an integer 0."""
_INSTRUCTION = re.compile(
    r"^(?P<result> *%[\w.]+ = )(?P<op>[su](?:div|rem)) (?P<type>i\d+|<\d+ x i\d+>) (?P<operands>.+?)(?P<notes>(?:, !.*)?)$",
    re.MULTILINE,
)
_EXPONENT = re.compile(r"\b0[xX][\da-fA-F.]+[pP]\Z")
"""What is before the sign of a real number's exponent."""
_MACRO = re.compile(r"\n[ \t]*#[ \t]*define\b(?![ \t]+\w+(?:\([\w, ]*\))?[ \t\w]*$)", re.MULTILINE)
"""The definition of a macro with more in it than words."""
_DIVISION = re.compile(r"[/%]=?")
_CALLS = {"/": "__compass_quotient(", "%": "__compass_remainder("}
_FARTHEST = 4096
"""How far a division may be from its brackets."""
_VECTOR = re.compile(r"<(\d+) x i(\d+)>")
_NUMBER = re.compile(r"-?\d+")
REPRESENTATION = ".ll"
"""What the names of files of clang's intermediate representation end with."""
REPORT = "__compass_divided_by_zero"
"""The function of the engine that a checked run calls."""
_DECLARED = re.compile(rf"^declare .*@{REPORT}\(", re.MULTILINE)


def divides(text: str) -> bool:
    """Whether a C text may divide integers by something other than plain numbers."""
    code = _code(text)
    return any(not _HARMLESS.match(code, m.end()) for m in _DIVISION.finditer(code))


@lru_cache(maxsize=1)
def _code(text: str) -> str:
    """The text with spaces in the place of what is no code: every character stays where it is."""
    return _IGNORED.sub(_blank, "\n" + text)[1:]


def _blank(match: re.Match[str]) -> str:
    ignored = match[0]
    return " " * len(ignored) if "\n" not in ignored else "\n".join(" " * len(line) for line in ignored.split("\n"))


def called(text: str) -> str | None:
    """The C text with calls in the place of its divisions by something other than plain numbers; None where one of them does
    not stand alone in brackets: `(x / y)`, whose operands are names, numbers, calls, casts or brackets. In a text that
    defines macros brackets need not be what they seem."""
    if _MACRO.search("\n" + text):
        return None
    code = _code(text)
    changes: list[tuple[int, int, str]] = []
    for match in _DIVISION.finditer(code):
        if _HARMLESS.match(code, match.end()):
            continue
        if match[0] not in _CALLS:  # an assignment
            return None
        begin, end = _bracket(code, match.start(), -1), _bracket(code, match.end() - 1, 1)
        if begin is None or end is None:
            return None
        changes += [(begin + 1, begin + 1, _CALLS[match[0]]), (*match.span(), ","), (end, end, ")")]
    parts, at = [], 0
    for start, stop, new in sorted(changes):
        parts += [text[at:start], new]
        at = stop
    return "".join([*parts, text[at:]])


def _bracket(code: str, at: int, step: int) -> int | None:
    """Where the bracket is that begins or ends what `at` is in, from there on by `step`; None where an operator comes first."""
    depth, inwards, outwards = 0, *((")]}", "([{") if step < 0 else ("([{", ")]}"))
    for here in range(at + step, at + step * _FARTHEST, step):
        if not 0 <= here < len(code):
            return None
        char = code[here]
        if char in inwards:
            depth += 1
        elif char in outwards:
            if depth == 0:
                return here
            depth -= 1
        elif depth == 0 and char in "-+*/%<>=!&|^~?:,;" and not _EXPONENT.search(code, max(here - 40, 0), here):
            return None
    return None


def checks(flags: Sequence[str]) -> bool:
    """Whether compiler flags ask for code that is checked for memory and arithmetic."""
    return "-D__COMPASS_CHECK" in flags


def guarded(ir: str, checked: bool) -> str:
    """The text of a module of clang's intermediate representation whose integer divisions do not trap."""
    used: dict[tuple[str, str], str] = {}

    def call(match: re.Match[str]) -> str:
        op, kind = match["op"], match["type"]
        x, y = _operands(match["operands"])
        if _NUMBER.fullmatch(y) and int(y) not in (0, -1):
            return match[0]
        name = used.setdefault((op, kind), f"@__compass_{op}_{re.sub('[^0-9a-z]', '', kind)}")
        return f"{match['result']}call {kind} {name}({kind} {x}, {kind} {y}){match['notes']}"

    text = _INSTRUCTION.sub(call, ir)
    parts = [text]
    if used and checked and not _DECLARED.search(ir):
        parts.append(f"declare void @{REPORT}()\n")
    for (op, kind), name in used.items():
        vector = _VECTOR.fullmatch(kind)
        body = _vector(op, kind, int(vector[1]), int(vector[2]), checked) if vector else _scalar(op, kind, checked)
        lines = "\n".join(body)
        parts.append(f"define internal {kind} {name}({kind} %x, {kind} %y) alwaysinline {{\n{lines}\n}}\n")
    return "\n".join(parts)


def _operands(text: str) -> tuple[str, str]:
    """Both operands of an instruction; those of vectors may be lists of numbers."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "<([{") - (char in ">)]}")
        if char == "," and depth == 0:
            return text[:at], text[at + 1 :].strip()
    raise ValueError(f"an instruction with one operand: {text}")


def _scalar(op: str, kind: str, checked: bool) -> Iterator[str]:
    """The body of a scalar division; branches cost less than the instruction waits for a selected divisor."""
    yield f"  %zero = icmp eq {kind} %y, 0"
    yield "  br i1 %zero, label %nothing, label %something"
    yield "nothing:"
    if checked:
        yield f"  call void @{REPORT}()"
    yield f"  ret {kind} 0"
    yield "something:"
    if op.startswith("s"):
        yield f"  %minus = icmp eq {kind} %y, -1"
        yield "  br i1 %minus, label %negated, label %divided"
        yield "negated:"
        yield f"  %negative = sub {kind} 0, %x"
        yield f"  ret {kind} {'%negative' if op == 'sdiv' else '0'}"
        yield "divided:"
    yield f"  %value = {op} {kind} %x, %y"
    yield f"  ret {kind} %value"


def _vector(op: str, kind: str, lanes: int, bits: int, checked: bool) -> Iterator[str]:
    """The body of a vector division, through floating point that holds the operands exactly where there is one.

    Its rounding cannot reach the next whole quotient. Hosts have no vector instruction for integers.
    """
    flags = f"<{lanes} x i1>"
    yield f"  %zero = icmp eq {kind} %y, zeroinitializer"
    if checked:
        yield f"  %some = icmp ne {kind} %x, zeroinitializer"
        yield f"  %bad = and {flags} %zero, %some"
        yield f"  %all = bitcast {flags} %bad to i{lanes}"
        yield f"  %any = icmp ne i{lanes} %all, 0"
        yield "  br i1 %any, label %report, label %compute"
        yield f"report:\n  call void @{REPORT}()\n  br label %compute"
        yield "compute:"
    signed = op.startswith("s")
    trivial = "%zero"
    if signed:
        yield f"  %minus = icmp eq {kind} %y, splat (i{bits} -1)"
        yield f"  %trivial = or {flags} %zero, %minus"
        trivial = "%trivial"
    yield f"  %safe = select {flags} {trivial}, {kind} splat (i{bits} 1), {kind} %y"
    sign, real = ("s" if signed else "u"), f"<{lanes} x {'float' if bits <= 16 else 'double'}>"
    if bits <= 32:
        yield f"  %fx = {sign}itofp {kind} %x to {real}"
        yield f"  %fy = {sign}itofp {kind} %safe to {real}"
        yield f"  %fq = fdiv {real} %fx, %fy"
        yield f"  %quotient = fpto{sign}i {real} %fq to {kind}"
    else:
        yield f"  %quotient = {sign}div {kind} %x, %safe"
    if op.endswith("rem"):  # a trivial divisor was taken for 1, which leaves 0
        yield f"  %back = mul {kind} %quotient, %safe"
        yield f"  %value = sub {kind} %x, %back"
        yield f"  ret {kind} %value"
        return
    quotient = "%quotient"
    if signed:
        yield f"  %negative = sub {kind} zeroinitializer, %x"
        yield f"  %signed = select {flags} %minus, {kind} %negative, {kind} %quotient"
        quotient = "%signed"
    yield f"  %value = select {flags} %zero, {kind} zeroinitializer, {kind} {quotient}"
    yield f"  ret {kind} %value"


if __name__ == "__main__":  # as the log of a build has it: python -m compass_core.hostcc.divisions FILE [--checked|NEW]
    _file, *_rest = sys.argv[1:]
    _text = Path(_file).read_text(encoding="utf-8", errors="surrogateescape")
    _new = guarded(_text, bool(_rest)) if _file.endswith(REPRESENTATION) else called(_text) or _text
    Path(_file if _file.endswith(REPRESENTATION) else _rest[0]).write_text(
        _new, encoding="utf-8", errors="surrogateescape"
    )

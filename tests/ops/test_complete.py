"""Every operation has all its parts: in the declaration, or joined to it by name, or a reason there why not."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from compass_core.hostcc.clang import find_clang
from compass_core.hostcc.command import kernel_flags
from compass_core.operators import OPERATORS
from compass_runtime.profile.costs import class_of, op_classes
from compassc.codegen.c_calls import FORMS
from compassc.dsl import script
from compassc.ops import Op, core, docs
from compassc.ops.example import Example
from compassc.passes import _split_rules, legalize_signedness
from compassc.pysim import meanings
from compassc.reference import costs
from tests.choosing import some

ROOT = Path(__file__).parents[2]
OPS = list(core.load().values())


@cache
def c_names() -> frozenset[str]:
    """The functions and macros that the headers of the simulator define."""
    found: set[str] = set()
    for target in ("__AIPUX2__", "__AIPUX3P__"):
        flags = [*kernel_flags(find_clang(), target), "-E", "-dD", "-include", "compass/dsl.h"]
        command = [str(find_clang().path), "-x", "cl", *flags, os.devnull]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found |= {*re.findall(r"\b([A-Za-z_]\w*)\(", text)}
    return frozenset(found)


def missing(op: Op) -> Iterator[str]:
    """What an operation lacks, in words. A reason for a part that is there is a fault, too."""
    text = dict(op.exempt)
    reasons = {part: bool(text.pop(part, "")) for part in ("c", "cost", "definition", "example")}
    yield from (f"a reason for {part!r}, which is no part" for part in text)
    has = {
        "c": bool(op.c) or op.name in FORMS,
        "cost": op.cost is not None,
        "definition": op.definition is not None,
        "example": op.example is not None,
    }
    for part, there in has.items():
        if there == reasons[part]:
            yield f"{part}, or a reason in `exempt`" if not there else f"{part} both declared and exempt"
    if op.public and (not hasattr(script, op.name) or op.name not in dir(script)):
        yield "S." + op.name
    if len(op.doc) < 20 or "." not in op.doc:
        yield "the text of its page"
    if op.example is not None and f"S.{op.name}(" not in op.example.source(op.name, "example"):
        yield "a call in its example"
    yield from missing_in_c(op)
    yield from missing_rules(op)


def missing_in_c(op: Op) -> Iterator[str]:
    for _, template in op.c:
        yield from (f"the C function {name}" for name in costs.called(template) if name not in c_names())
    if op.cost is None:
        return
    kinds = {op.cost.kind, op.cost.scalar, *op.cost.functions.values()}
    yield from (f"the class {kind!r} in classes.yaml" for kind in kinds if kind not in op_classes())
    if not (costs.functions(op) or op.cost.borrows or op.name in FORMS or "c" in op.exempt):
        yield "a C function"
    for name, kind in costs.functions(op).items():
        found = class_of(name)
        if found is None or found.name != kind:
            yield f"{name} in operations.yaml (run `make docs`)"
    others = {name for other in OPS if other is not op for name in costs.functions(other)}
    yield from (f"an owner of the C function {name} that it borrows" for name in op.cost.borrows if name not in others)


def missing_rules(op: Op) -> Iterator[str]:
    if op.special and op.name not in meanings.load():
        yield "a meaning in PySim"
    if op.split not in ("lanes", "none") and op.split not in _split_rules.RULES:
        yield f"the rule {op.split!r} by which wide vectors are cut"
    if op.split == "lanes" and getattr(op.typing, "width", "") == "native":
        yield 'split="none", for it takes one register only'
    if op.signs and op.signs not in legalize_signedness.RULES:
        yield f"the rule {op.signs!r} of LegalizeSignedness"
    if op.touches and not any(
        op.effect == ("write" if how == "w" else "read") or op.effect == "write" for _, how, _ in op.touches
    ):
        yield "an effect that agrees with the memory it touches"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_operation_has_all_its_parts(op: Op) -> None:
    assert list(missing(op)) == []


VADD = core.get("vadd")
FORGOTTEN = {
    "c": ({"c": ()}, "c, or a reason"),
    "C function": ({"c": (("", "__vnosuch({r}, {x}, {y}, {m})"),)}, "the C function __vnosuch"),
    "cost": ({"cost": None}, "cost, or a reason"),
    "class": ({"cost": core.Cost("vectors")}, "the class 'vectors'"),
    "class of the function": ({"cost": core.Cost("mul")}, "__vadd in operations.yaml"),
    "definition": ({"definition": None}, "definition, or a reason"),
    "example": ({"example": None}, "example, or a reason"),
    "call": ({"example": Example("S.vstore(S.vload(x), out)")}, "a call in its example"),
    "page": ({"doc": ""}, "the text of its page"),
    "export": ({"name": "vaad"}, "S.vaad"),
    "meaning": ({"name": "vaad", "typing": None}, "a meaning in PySim"),
    "split": ({"split": "halves"}, "the rule 'halves'"),
    "signs": ({"signs": "any"}, "the rule 'any'"),
    "borrowed": ({"cost": core.Cost("alu", borrows=("__vnone",))}, "an owner of the C function __vnone"),
    "effect": ({"touches": (core.Touch(0, "w", 4),)}, "an effect"),
    "reason": ({"exempt": {"c": "no need"}}, "c both declared and exempt"),
}


@pytest.mark.parametrize("part", FORGOTTEN)
def test_a_forgotten_part_is_found(part: str) -> None:
    change, words = FORGOTTEN[part]
    assert any(words in line for line in missing(dataclasses.replace(VADD, **change)))


def test_meanings_and_forms_are_of_operations() -> None:
    names = core.load().keys()
    assert meanings.load().keys() <= names
    assert {name for name in FORMS if not name.startswith("__") and name != "init_event_state"} <= names


def test_operators_are_of_one_operation_each() -> None:
    declared = [op.operator for op in OPS if op.operator]
    assert len(set(declared)) == len(declared) and set(declared) <= OPERATORS.keys()


def test_rules_are_used() -> None:
    assert {op.signs for op in OPS} - {""} == legalize_signedness.RULES.keys()


def test_classes_of_c_functions_are_up_to_date() -> None:
    assert costs.PATH.read_text() == costs.text(), "run `make docs` and commit operations.yaml"


def test_every_operation_has_a_page() -> None:
    assert {path.stem for path in (ROOT / "docs/ops").glob("*.md")} - {"README"} == {
        op.name for op in docs.documented()
    }


def parameters(function: object) -> list[tuple[str, object]]:
    """Names and defaults, of definitions and meanings alike: what the result's type is called does not matter."""
    signature = function if isinstance(function, inspect.Signature) else inspect.signature(function)
    return [
        ("to" if p.name == "dtype" and p.default is p.empty else p.name, p.default)
        for p in signature.parameters.values()
    ]


def test_meanings_in_pysim_have_the_parameters_of_what_they_are_of():
    for name, meaning in some(meanings.load().items()):
        op, meant = core.get(name), parameters(meaning)
        assert meant == parameters(op.definition or op.signature), name
        if op.definition is not None:
            known = {n for n, _ in meant} - {"to"}
            lanes = {"mask", "r"} if op.mask_aware else {"r"} & {*op.operands}
            assert {*op.operands} <= known <= {*op.operands, *op.options} | lanes, name

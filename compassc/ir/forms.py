"""The text forms that node declarations give (`@node(text="T.ramp(base, stride, lanes)")`): printer and reader use them."""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple

from . import exprs, stmts
from .node import MANY, Field, Node


class Form(NamedTuple):
    """`T.NAME(...)`, the class it stands for, and its fields in the order of the text."""

    name: str
    node: type[Node]
    parts: tuple[Field, ...]


def _form(cls: type[Node]) -> Form:
    head, _, inner = cls.text_form.removesuffix(")").partition("(")
    fields = {"*" * (f.kind is MANY) + f.name: f for f in cls.declared}
    return Form(head.removeprefix("T."), cls, tuple([fields[word] for word in inner.split(", ")]))


_CLASSES = [c for m in (exprs, stmts) for c in vars(m).values() if isinstance(c, type) and issubclass(c, Node)]
FORMS = {c: _form(c) for c in _CLASSES if c.text_form}
BY_NAME = {form.name: form for form in FORMS.values()}

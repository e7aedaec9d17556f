"""`compassc operators`."""

from __future__ import annotations

import click

from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import artifact
from compassc.cli.tables import table_text


@click.command(epilog=options.example("compassc operators\ncompassc operators softmax\ncompassc operators --layers"))
@click.argument("name", default="")
@click.option("--layers", is_flag=True, help="The layer types instead: what defines each, and what computes it where.")
@options.talk_options
def command(name: str, layers: bool) -> None:
    """List the operators, of which tensor expressions and layers of graphs are made.

    With NAME those whose name contains it; of one alone also which default schedule each kind of target has for it.
    """
    from compassc.layers import matrix

    rows = matrix.layer_rows(name) if layers else matrix.operator_rows(name)
    if not rows:
        what, lists = ("layer type", "compassc operators --layers") if layers else ("operator", "compassc operators")
        raise UsageError(f"no {what} is called '{name}'", code="unknown-op", help=f"`{lists}` lists them")
    artifact(table_text(("", tuple(field.replace("_", " ") for field in type(rows[0])._fields), rows)))
    exact = [row.name for row in rows if row.name == name]
    if exact and not layers:
        artifact(table_text(("", ("target", "schedule"), _schedules(name))))


def _schedules(name: str) -> list[tuple[str, str]]:
    """For each kind of target the default schedule of an operator's first sample, or why it has none."""
    from compassc.operators.calls import all_operators
    from compassc.topi.schedules import KINDS, implementation_of

    operator = all_operators()[name]
    sample = operator.samples[0]
    made = operator.define(*sample.inputs(operator.types[0])[0], **sample.options)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    return [(kind, implementation_of(outputs, target)) for kind, target in KINDS.items()]

"""`tvm.contrib.tedd`: schedules as pictures, in the language of Graphviz: who reads whom, where loops and stages lie, and which
loops were made of which."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from compass_core import files
from compass_core.errors import UsageError

from .. import te
from ..te.schedule.relations import Fuse, Split

Edges = Iterator[str]


def viz_dataflow_graph(
    sch: te.Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | None:
    """The stages and the tensors that they read of each other. `dot_file_path`: a file for the text, `output_dot_string`: it is
    returned. UsageError for `show_svg`: nothing here draws."""
    return _given(_dataflow, sch, "data flow", show_svg, dot_file_path, output_dot_string)


def viz_schedule_tree(
    sch: te.Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | None:
    """The loops of each stage, the outermost first, and the loop that a stage is computed at (`viz_dataflow_graph`)."""
    return _given(_tree, sch, "schedule", show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(
    sch: te.Schedule, show_svg: bool = False, dot_file_path: str = "", output_dot_string: bool = False
) -> str | None:
    """The axes of each stage and what was split and fused to which (`viz_dataflow_graph`)."""
    return _given(_relations, sch, "axes", show_svg, dot_file_path, output_dot_string)


def _given(
    lines: Callable[[te.Schedule], Edges], sch: te.Schedule, title: str, show_svg: bool, path: str, as_text: bool
) -> str | None:
    if show_svg:
        raise UsageError(
            "nothing here draws pictures",
            code="compat-name",
            help="write `dot_file_path`, and call dot -Tsvg on the file",
        )
    text = "\n".join([f"digraph {_quoted(title)} {{", "  node [shape=box];", *(f"  {e};" for e in lines(sch)), "}", ""])
    if path:
        files.write(Path(path), text)
    return text if as_text else None


def _quoted(text: object) -> str:
    shown = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{shown}"'


def _node(name: str, label: object) -> str:
    return f"{_quoted(name)} [label={_quoted(label)}]"


def _dataflow(sch: te.Schedule) -> Edges:
    for stage in sch.stages:
        shapes = "\n".join(f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in stage.op.outputs)
        yield _node(stage.label, f"{stage.name} ({stage.scope or 'global'})\n{shapes}")
    made_by = {t.op: stage.label for stage in sch.stages for t in (*stage.origin_op.outputs, *stage.op.outputs)}
    for stage in sch.stages:
        for t in stage.op.input_tensors:
            yield f"{_quoted(made_by.get(t.op, t.name))} -> {_quoted(stage.label)} [label={_quoted(t.name)}]"


def _loop(stage: te.Stage, axis: te.IterVar) -> str:
    return f"{stage.label}/{axis.name}"


def _axis_label(stage: te.Stage, axis: te.IterVar) -> str:
    note = stage.iter_var_attrs.get(axis)
    how = ""
    if note is not None:
        how = note.thread.name if note.thread is not None else note.loop or ("tensorized" if note.intrin else "")
    extent = "" if axis.dom is None else f" {axis.dom}"
    return f"{axis.name}{extent}{' (reduction)' if axis.is_reduction else ''}{f': {how}' if how else ''}"


def _tree(sch: te.Schedule) -> Edges:
    yield _node("root", "root")
    for stage in sch.stages:
        if stage.inlined:
            continue
        above = "root"
        if stage.attach_stage is not None and stage.attach_ivar is not None:
            above = _loop(stage.attach_stage, stage.attach_ivar)
        for axis in stage.leaf_iter_vars:
            yield _node(_loop(stage, axis), _axis_label(stage, axis))
            yield f"{_quoted(above)} -> {_quoted(_loop(stage, axis))}"
            above = _loop(stage, axis)
        yield _node(stage.label, stage.name)
        yield f"{_quoted(above)} -> {_quoted(stage.label)}"


def _relations(sch: te.Schedule) -> Edges:
    for stage in sch.stages:
        axes = {axis.name: axis for axis in (*stage.all_iter_vars, *stage.leaf_iter_vars)}
        for axis in axes.values():
            yield _node(_loop(stage, axis), f"{stage.name}: {_axis_label(stage, axis)}")
        for relation in stage.relations:
            if isinstance(relation, Split):
                kind, sources, results = "split", [relation.parent], [relation.outer, relation.inner]
            elif isinstance(relation, Fuse):
                kind, sources, results = "fuse", [relation.outer, relation.inner], [relation.fused]
            else:
                continue
            for source in sources:
                for result in results:
                    yield f"{_quoted(_loop(stage, source))} -> {_quoted(_loop(stage, result))} [label={kind}]"

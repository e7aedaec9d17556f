"""From layers that plugins take to kernel launches: runs the plugins' methods."""

from __future__ import annotations

from pathlib import Path

from compass_core.aipubin import KernelInfo
from compass_core.errors import CompassError, Span
from compass_core.namedtuple import NamedTuple
from compassc.gbuilder.memory import Step, owner
from compassc.gbuilder.plugin_api import BuilderParams, Tensor
from compassc.gbuilder.plugin_host import Match, call

DEFAULT_STACK = 0x10000


class Launch(NamedTuple):
    """One kernel launch: its object and kernel, and its parameter and descriptor words."""

    match: Match
    object_path: Path
    kernel: str
    params: BuilderParams
    desc: BuilderParams
    info: KernelInfo | None
    stack: int
    printf: bool


def launches(matches: list[Match], folders: list[Path]) -> list[Launch]:
    """Runs the plugins' methods in the documented order. `folders` are searched for the object files."""
    return [_launch(match, folders) for match in matches]


def _launch(match: Match, folders: list[Path]) -> Launch:
    plugin, path = match.plugin.instance, match.plugin.path
    merged, nodes = match.merged, match.nodes
    if not call(path, "setup", plugin.setup, merged, nodes):
        raise CompassError(
            f"the plugin {match.plugin.name} refuses the layer '{nodes[0].name}' in setup",
            Span(str(path), 1),
            code="plugin",
        )
    code_name = str(call(path, "generate_code_name", plugin.generate_code_name, merged, nodes))
    object_path = next((f / code_name for f in folders if (f / code_name).is_file()), None)
    if object_path is None:
        raise CompassError(
            f"the object file '{code_name}' of the layer '{nodes[0].name}' does not exist",
            Span(str(path), 1),
            code="no-object",
            notes=("looked in " + ", ".join(str(f) for f in folders),),
            help="compile the kernel first (compassc cc)",
        )
    kernel = call(path, "generate_kernel", plugin.generate_kernel, merged, nodes) or Path(code_name).stem
    desc = call(path, "generate_descriptor", plugin.generate_descriptor, merged, nodes)
    params = call(path, "generate_params", plugin.generate_params, merged, nodes)
    for block in (desc, params):
        if not isinstance(block, BuilderParams):
            raise CompassError(
                f"the plugin {match.plugin.name} gives {block!r:.40} where BuilderParams are expected",
                Span(str(path), 1),
                code="plugin",
            )
    text = getattr(plugin, "compassc_kernel", None)
    info = KernelInfo.from_bytes(text.encode(), str(path)) if isinstance(text, str) else None
    # what a kernel needs beyond its parameters: from the note, or as the built-in layers say; else the usual
    stack = info.stack_size if info else getattr(plugin, "compassc_stack", DEFAULT_STACK)
    printf = bool(info and info.uses_printf)
    return Launch(match, object_path, str(kernel), params, desc, info, stack, printf)


def steps_of(runs: list[Launch]) -> list[Step]:
    """What each launch reads and writes; tensors that only its parameters name count as written."""
    steps = []
    for run in runs:
        merged = run.match.merged
        own = {id(t) for t in (*merged.inputs, *merged.attrs.private_buffers, merged.attrs.descriptorbase)}
        named = [owner(word) for word in (*run.params.words, *run.desc.words) if isinstance(word, Tensor)]
        scratch = [t for t in named if id(t) not in own and not t.is_constant]
        steps.append(Step(tuple(merged.inputs), tuple({id(t): t for t in (*merged.outputs, *scratch)}.values())))
    return steps

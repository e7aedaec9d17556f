"""The files one DSL kernel becomes for the graph builder: a one-layer Compass IR, its constants, and a plugin."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.aipubin.dtypes import scalar_bits
from compass_core.aipubin.kernelinfo import KernelInfo, Param
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compassc.graph import Graph, GraphBuilder, Tensor, write
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.values import IRDType

if TYPE_CHECKING:
    import numpy as np

LAYER = "dsl_func"
IR_TEXT, IR_BIN = "compass_ir.txt", "compass_ir.bin"
DescriptorWord = int | tuple[str, int | str, int]
"""A number, or an address: role and number (of a constant: its name) of a tensor, and bytes behind its start. The role
`descriptor` is the descriptors' own start."""
UNKNOWN = -1
"""The dimension written for sizes that are unknown at build time."""


def op_type(kernel: str) -> str:
    """The operator type of a kernel's layer."""
    return f"DSL_{kernel}"


def plugin_name(kernel: str) -> str:
    """The file name of a kernel's plugin."""
    return f"aipubt_gb_{kernel}.py"


def constant_bytes(info: KernelInfo, consts: Mapping[str, np.ndarray | bytes]) -> dict[str, bytes]:
    """The bytes of every constant parameter, in parameter order; CompassError when one is missing, of wrong type or
    size, or when there is no such constant."""
    out = {}
    known = info.by_role("const")
    for name in consts:
        if all(param.name != name for param in known):
            raise CompassError(
                f"the kernel '{info.kernel}' has no parameter '{name}' among its constants",
                code="no-parameter",
                notes=("constants are the pointers of the scope global.1",),
                help=help_for(name, [param.name for param in known], "constants"),
            )
    for param in known:
        if param.name not in consts:
            raise CompassError(
                f"the constant parameter '{param.name}' has no data",
                code="no-constant",
                help="constants (scope global.1) become part of aipu.bin and must be given at build time",
            )
        value = consts[param.name]
        if not isinstance(value, bytes) and value.dtype.kind != "V" and value.dtype.name != param.element.name:
            raise CompassError(
                f"the constant '{param.name}' is {param.element.name}, but its array is {value.dtype.name}",
                code="tensor-dtype",
                help=f"convert it: array.astype('{param.element.name}')",
            )
        data = value if isinstance(value, bytes) else value.astype(value.dtype.newbyteorder("="), copy=False).tobytes()
        if len(data) % param.element.size or param.nbytes not in (None, len(data)):
            raise CompassError(
                f"the constant '{param.name}' is {len(data)} bytes, but {param.element.name} of shape "
                f"{list(param.shape or ())} needs {param.nbytes}",
                code="constant-size",
            )
        out[param.name] = data
    return out


def _tensor(name: str, param: Param) -> Tensor:
    return Tensor(name, (UNKNOWN,) if param.shape is None else tuple(param.shape), param.element.name)


def kernel_graph(info: KernelInfo, consts: Mapping[str, bytes]) -> Graph:
    """The graph with one layer that runs the kernel."""
    build = GraphBuilder("unknown")
    inputs = [
        build.layer("Input", [], name=f"{i}_input", outputs=[_tensor(f"input{i}", param)])[0]
        for i, param in enumerate(info.by_role("input"))
    ]
    constants = {param.name: _constant(param, consts[param.name]) for param in info.by_role("const")}
    attributes: dict[str, object] = {
        f"{p.name}_type": IRDType(p.element.name)
        for p in info.by_role("const")
        if constants[p.name].dtype.name != p.element.name
    }
    for param in info.by_role("attr"):
        value = bool(param.value) if param.dtype == "bool" and param.value is not None else param.value
        attributes[param.name] = "None" if value is None else value  # a run-time scalar
    outputs = build.layer(
        op_type(info.kernel),
        inputs,
        name=LAYER,
        outputs=[_tensor(f"output{i}", param) for i, param in enumerate(info.by_role("output"))],
        attributes=attributes,
        constants=constants,
    )
    header = {"data_format": "NHWC", "precision": IRDType("float32"), "batch_size": 1, "compat_quantized_model": False}
    return build.finish(outputs, **header)


def _constant(param: Param, data: bytes) -> Array:
    import numpy as np

    return np.frombuffer(data, numpy_dtype(param.element.name)).reshape(-1 if param.shape is None else param.shape)


def scalar_word(param: Param) -> int:
    """The signed integer whose bits are the scalar's; 0 for a run-time scalar. CompassError when it does not fit."""
    if param.value is None:
        return 0
    try:
        return scalar_bits(param.element, param.value)
    except CompassError as error:
        raise CompassError(f"parameter '{param.name}': {error.message}", code=error.code) from None


def _param_line(param: Param, descriptor_at: Mapping[str, int]) -> str:
    """The statement that appends one kernel parameter to the plugin's parameter list."""
    if param.role == "descriptor":
        return f'params.append(address(sgnode, "descriptor", 0, {descriptor_at[param.name]}))  # {param.name}'
    if param.role in ("input", "output"):
        return f"params.append(sgnode.{param.role}s[{param.index}])  # {param.name}"
    if param.role == "const":
        return f'params.append(sgnode.constants["{LAYER}/{param.name}"])'
    meaning = f"{param.dtype}, set at run time" if param.value is None else f"{param.dtype} {param.value}"
    return f"params.append({scalar_word(param)})  # {param.name}: {meaning}"


_PLUGIN = '''\
"""Graph builder plugin for the kernel {kernel}."""

from AIPUBuilder.core import BuilderOpPlugin, BuilderParams, Tensor, register_optype
from AIPUBuilder.plugin_loader import PluginType, register_plugin

OP_TYPE = register_optype("{op}")

# the words of the hardware descriptors: numbers, or (kind, number, bytes behind its start) of a tensor
DESCRIPTOR = {descriptor}


def address(sgnode, kind, number, offset):
    if kind == "descriptor":
        base = sgnode.attrs.descriptorbase
    elif kind == "const":
        base = sgnode.constants["{layer}/" + number]
    else:
        base = (sgnode.inputs if kind == "input" else sgnode.outputs)[number]
    tensor = Tensor(base)
    tensor.memory_offset().set_base_offset(base.memory_offset())
    tensor.memory_offset().relative_offset = offset
    return tensor


@register_plugin(PluginType.Builder, 0)
class {op}Plugin(BuilderOpPlugin):
    # what compassc knows of the kernel; other builders do not look at it
    compassc_kernel = {json}

    def get_graph_pattern(self):
        return ([("useless", OP_TYPE)], [])

    def get_score(self):
        return 10

    def set_target(self, target):
        return True

    def check_params(self, nodes):
        return True

    def setup(self, sgnode, nodes):
        sgnode.attrs.keeping_layout = False
        return True

    def generate_code_name(self, sgnode, nodes):
        return {code}

    def generate_descriptor(self, sgnode, nodes):
        desc = BuilderParams()
        for word in DESCRIPTOR:
            desc.append(word if isinstance(word, int) else address(sgnode, *word))
        return desc

    def generate_params(self, sgnode, nodes):
        params = BuilderParams()
        {params}
        return params
'''


def descriptor_words(
    info: KernelInfo, descriptors: Mapping[str, Sequence[DescriptorWord]]
) -> tuple[dict[str, int], list[DescriptorWord]]:
    """The byte offset of each parameter's descriptors, and the words of all descriptors."""
    starts: dict[str, int] = {}
    words: list[DescriptorWord] = []
    for param in info.by_role("descriptor"):
        if param.name not in descriptors:
            raise CompassError(
                f"the parameter '{param.name}' is a hardware descriptor, which has no content at build time",
                code="descriptor",
                help="run the kernel through an Executor with descriptor chains",
            )
        starts[param.name] = 4 * len(words)
        words += descriptors[param.name]
    return starts, words


def plugin_text(info: KernelInfo, code_name: str, descriptors: Mapping[str, Sequence[DescriptorWord]]) -> str:
    """The plugin's Python source; `code_name` is the object file as the builder looks it up.

    Names are identifiers (`compass_core.reading.names`), all else is written as Python spells it.
    """
    starts, words = descriptor_words(info, descriptors)
    return _PLUGIN.format(
        kernel=info.kernel,
        op=op_type(info.kernel),
        json=repr(json.dumps(info.to_json())),
        code=repr(code_name),
        layer=LAYER,
        descriptor=repr(words),
        params="\n        ".join(_param_line(p, starts) for p in info.params),
    )


def write_files(
    graph: Graph,
    info: KernelInfo,
    code_name: str,
    folder: Path,
    descriptors: Mapping[str, Sequence[DescriptorWord]] | None = None,
) -> None:
    """Writes the graph of a kernel, its constants and the plugin into `folder`.

    `descriptors`: the words of each descriptor parameter.
    """
    content, weights = write(graph)
    files.write(folder / IR_TEXT, content)
    files.write(folder / IR_BIN, weights)
    files.write(folder / plugin_name(info.kernel), plugin_text(info, code_name, descriptors or {}))

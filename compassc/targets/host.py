"""The host: C by the project's clang, called in this process. `c` and `llvm` are the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compass_runtime.host_module import HostLibrary
from compassc import pass_manager
from compassc.targets import host_c, library, signature
from compassc.targets.kind import Kind, Option, register_kind
from compassc.te.external import EXTERN
from compassc.te.machine import Machine
from compassc.te.packed import PACKED

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.ir.stmts import IRModule
    from compassc.targets.target import Target

_NPU_ONLY = ("StorageRewrite", "UnrollLoop", "RenameLoopVariables")
"""Passes of the NPU's lowering that are about its memory, or that clang does itself."""


def lowered(module: IRModule) -> IRModule:
    """The module after the passes of the host: flat memory, vectors."""
    names = pass_manager.pipeline_names("lower")
    return pass_manager.run_pipeline(tuple(name for name in names if name not in _NPU_ONLY), module)


def _machine(target: Target) -> Machine:
    return Machine("host")


def _generate(module: IRModule, target: Target) -> Module:
    described = signature.of(module.entry_func)
    text, parallel = host_c.text_of(lowered(module))
    sources = {"kernel.c": text}
    for i, imported in enumerate(module.entry_func.attr("import_llvm", ())):
        sources[f"imported{i}.ll"] = imported
    native = target.attrs["mcpu"] == "native"
    packed = host_c.packed_functions(module)
    calls = [f.attr(EXTERN) for f in module.functions if f.attr(EXTERN) and f not in packed]
    described |= {"parallel": parallel, "threads": target.attrs["num-cores"], "native": native}
    described["flags"] = library.flags_of(target)
    if packed:
        described["packed"] = [f.attr(PACKED) for f in packed]
    content = library.begun(library.Library(sources, parallel, target, calls))
    return HostLibrary(content, text, described)


C = register_kind(
    Kind(
        "c",
        "cpu",
        "this machine: C by the project's clang, in this process",
        _machine,
        _generate,
        ("cpu",),
        {
            "mcpu": Option(str, "native", "the processor, as clang's -march takes it"),
            "num-cores": Option(
                int, 0, "how many threads run parallel loops; 0: as the switch COMPASS_THREADS says", range(1025)
            ),
            "opt-level": Option(int, 3, "clang's level of optimisation, 0 to 3", range(4)),
        },
    )
)
LLVM = register_kind(replace(C, name="llvm"))

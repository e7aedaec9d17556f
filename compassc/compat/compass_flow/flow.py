"""`Compass`: a model to a program of host and NPU, stage by stage, as a configuration says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compass_core import files
from compass_core.errors import CompassError, UsageError
from compass_core.reading import arrays
from compassc.compat.compass_flow.config import CODE, CompassConfig, CompassFunctionConfig
from compassc.compat.compass_flow.deployable import Deployable
from compassc.compat.compass_flow.pruning import worth
from compassc.graph import GraphBuilder
from compassc.pass_manager import pipeline_names
from compassc.pass_manager.context import PassContext, Sequential
from compassc.quantizer import vendor
from compassc.quantizer.settings import Settings
from compassc.relay import frontend
from compassc.relay.backend.build import bind_main, build, partitioned, placed
from compassc.relay.backend.calibration import Observed, observe, quantize_regions
from compassc.relay.backend.placement import SETTING, numbered_calls
from compassc.relay.backend.regions import COMPILER
from compassc.relay.expr import Call, Expr, Function, GlobalVar, Tuple
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.operators import op_name
from compassc.relay.parser import parse
from compassc.relay.passes import FOLDER, fuse_ops, infer_type, make
from compassc.relay.passes._functions import changed
from compassc.relay.transform import InlineCompilerFunctionsBoundTo
from compassc.relay.types import TensorType
from compassc.relay.visit import children, post_order, rewrite
from compassc.targets import Target

if TYPE_CHECKING:
    from compassc.graph import Graph

SYMBOL = "tvm_compass_subfunc"
ENGINES = {
    "driver": "",
    "opt_int": "",
    "opt_float": "",
    "gt": "there is no ground truth apart from the host's floats: opt_float",
}
"""Engines, and why there are none. The integers of the quantiser's references (`opt_int`) are those of the simulator to the bit."""
MODEL_TYPES = {
    "tensorflow": "convert it to ONNX (tf2onnx) or TFLite",
    "tf": "convert it to ONNX (tf2onnx) or TFLite",
    "relax": "give the text of a Relay module: model_type = relay",
}
LOWERING = ("QnnLegalize", "QnnCanonicalizeOps")
"""Passes that lower operators of quantised numbers, which layers of the NPU are made of."""
Hint = Callable[[Mapping[object, Expr], Expr], bool]


class Compass:
    """A flow. `ir_mod`: the module as the last stage left it, to be read and changed."""

    def __init__(self, config: str) -> None:
        """`config`: the path of a .cfg file, or its text. The process's `CompassConfig` is this one from now on."""
        self.config = CompassConfig.reset(config)
        self.ir_mod: IRModule = IRModule()
        self.observed: list[Observed] = []

    # -- stages

    def parse(self, update_params: Mapping[str, object] | None = None) -> None:
        """Read the model that [Parser] names. `update_params`: arrays for parameters of `main`, which become constants."""

        kind = self.config.parser["model_type"].lower()
        path = Path(vendor.required(self.config.parsed, "parser", "input_model") and self.config.parser["input_model"])
        readers: dict[str, Callable[[], tuple[IRModule, Mapping[str, object]]]] = {
            "onnx": lambda: frontend.from_onnx(path, vendor.shapes_of(self.config.parsed)),
            "relay": lambda: (parse(files.read_text(path), str(path)), {}),
        }
        if kind not in readers:
            known = ", ".join(readers)
            raise self.config.parsed.error(
                "parser",
                "model_type",
                f"models of the type {kind!r} cannot be read",
                MODEL_TYPES.get(kind, f"known are {known}"),
            )
        module, params = readers[kind]()
        self.ir_mod = bind_main(module, {**params, **(update_params or {})})

    @property
    def is_quantised(self) -> bool:
        """Whether the model has operators on quantised numbers: then it is computed in its own integers."""
        functions = [f for f in self.ir_mod.functions.values() if isinstance(f, Function)]
        return any(op_name(e).startswith("qnn.") for f in functions for e in post_order(f.body))

    def optimize(self) -> None:
        """Run the passes that come before kernels, but those of `disabled_pass`. What a quantised model computes between and before
        its dequantisations becomes operators of whole numbers, which stay what they are for functions of the NPU."""
        names = pipeline_names("optimize", FOLDER)
        passes = [make(name) for name in [*names[: names.index(fuse_ops.NAME)], "ToGraphNormalForm", "InferType"]]
        if self.is_quantised:
            whole = make("FakeQuantizationToInteger", use_qat=True)
            passes = [make("InferType"), whole, *(p for p in passes if p.info.name not in LOWERING)]
        with self._context():
            self.ir_mod = Sequential(passes)(self.ir_mod)

    def partition(
        self,
        postprocess_hint_fn: Hint | None = None,
        fallback_nodes: Mapping[str, Sequence[str]] | None = None,
        fallback_indices: Sequence[int] = (),
    ) -> None:
        """Put what the NPU runs into functions of their own, `tvm_compass_subfunc0` and so on.

        `postprocess_hint_fn`: called with a mapping (empty: expressions stand where they are used) and each call; what it is true
        of, and all that needs its value, stays on the host. `fallback_nodes`: names of functions by the name of their caller, which
        are put back to the host; `fallback_indices`: the same by number. Functions with less to compute than `compute_threshold`
        are, too, unless all have.
        """
        self.optimize()
        host = [] if postprocess_hint_fn is None else self._after(postprocess_hint_fn)
        with self._context({SETTING: {"host": host}}):
            self.ir_mod = _renamed(placed(self.ir_mod).module)
        back = [str(name) for names in (fallback_nodes or {}).values() for name in names]
        back += [f"{SYMBOL}{n}" for n in fallback_indices]
        for name in back:
            if name not in self.regions():
                known = ", ".join(self.regions()) or "none"
                raise UsageError(f"there is no function '{name}' of the NPU", code=CODE, help=f"there are: {known}")
        self._put_back(back)
        threshold = float(self.config.common["compute_threshold"])
        small = [name for name, f in self.regions().items() if worth(f) < threshold]
        if len(small) < len(self.regions()):
            self._put_back(small)
        files.write(self.config.output_dir / "partitioned_graph.txt", self.ir_mod.astext(show_meta_data=False))

    def regions(self) -> dict[str, Function]:
        """The functions of the NPU by name."""
        return {
            v.name_hint: f
            for v, f in self.ir_mod.functions.items()
            if isinstance(f, Function) and f.attrs.get("Compiler") == COMPILER
        }

    def collect_calibration_data(self) -> None:
        """Compute what each function of the NPU is given on the data that [Optimizer] names, and store it in `calibration_data.npz`.
        Nothing where it names none: then they stay in floats. Nor for quantised models, which are in integers."""
        samples = None if self.is_quantised else vendor.samples_of(self.config.parsed, self._inputs())
        if samples is None:
            return
        self.observed = observe(partitioned(self.ir_mod), samples)
        for one in self.observed:
            _store(one, CompassFunctionConfig(one.name).calibration_data_file)

    def build(self, target: str = "llvm", bypass_output_dequant: Sequence[int] = ()) -> Deployable:
        """Build all of it: functions of the NPU in integers where there are calibration data, the others for `target`. Outputs of the
        numbers `bypass_output_dequant` stay integers."""
        engine = self.config.common["forward_engine"].lower()
        if ENGINES.get(engine, "unknown"):
            raise self.config.parsed.error(
                "common",
                "forward_engine",
                f"there is no engine {engine!r}",
                ENGINES.get(engine, "") or ", ".join(ENGINES),
            )
        if engine == "opt_float":
            self._put_back(list(self.regions()))
            return Deployable(build(self.ir_mod, target), self.config, engine)
        module = partitioned(self.ir_mod)
        if self.observed:
            module, made = quantize_regions(
                module, self.observed, self._settings, lambda name: CompassFunctionConfig(name).quant_compass_ir_path[0]
            )
            self.outcomes = {region.name: region.outcome for region in made}
        for number in bypass_output_dequant:
            module = _without_dequantize(module, number)
        library = build(module, Target.of(self.config.gbuilder["target"]).with_host(target))
        return Deployable(library, self.config, engine)

    def compile(
        self,
        update_params: Mapping[str, object] | None = None,
        target: str = "llvm",
        postprocess_hint_fn: Hint | None = None,
        fallback_nodes: Mapping[str, Sequence[str]] | None = None,
        bypass_output_dequant: Sequence[int] = (),
    ) -> Deployable:
        """All stages."""
        self.parse(update_params)
        self.optimize()
        self.partition(postprocess_hint_fn, fallback_nodes)
        self.collect_calibration_data()
        return self.build(target, bypass_output_dequant)

    def save(self, path: str, show_meta: bool = True) -> None:
        """Write `ir_mod` as text; without `show_meta` it leaves constants out, and cannot be read again."""
        files.write(Path(path), self.ir_mod.astext(show_meta_data=show_meta))

    def load(self, path: str) -> None:
        """Read `ir_mod` from text."""
        self.ir_mod = infer_type.run(parse(files.read_text(Path(path)), path))

    # -- within

    def _context(self, config: Mapping[str, object] | None = None) -> PassContext:
        disabled = [n.strip() for n in self.config.common["disabled_pass"].split(",") if n.strip()]
        return PassContext(opt_level=3, disabled_pass=disabled, config=config)

    def _main(self) -> Function:
        main = self.ir_mod[MAIN]
        assert isinstance(main, Function)
        return main

    def _after(self, hint: Hint) -> list[str]:
        """The numbers of the calls that a hint is true of, and of those that need their values."""
        late: set[int] = set()
        for e in post_order(self._main().body, lambda e: isinstance(e, Function)):
            if any(id(c) in late for c in children(e)) or (isinstance(e, Call) and hint({}, e)):
                late.add(id(e))
        return [str(n) for n, c in enumerate(numbered_calls(self._main())) if id(c) in late]

    def _put_back(self, names: Sequence[str]) -> None:
        if names:
            found = [v for v in self.ir_mod.functions if v.name_hint in names]
            self.ir_mod = infer_type.run(InlineCompilerFunctionsBoundTo(found)(self.ir_mod))

    def _inputs(self) -> Graph:
        """A graph with the inputs of `main` alone, which says what samples are to look like."""

        g = GraphBuilder(MAIN)
        made = []
        for p in self._main().params:
            assert isinstance(p.checked_type, TensorType)
            made.append(g.input(p.name_hint, p.checked_type.concrete_shape, p.checked_type.dtype))
        return g.finish(made)

    def _settings(self, graph: Graph) -> Settings:
        return vendor.settings_of(self.config.parsed, graph)


def _store(one: Observed, path: Path) -> None:
    """Write what a function is given: an array for each parameter, samples along the first axis."""
    found = {f"arr_{i}": np.concatenate(given) for i, given in enumerate(zip(*one.given))}

    def content(partial: Path) -> None:
        with partial.open("wb") as file:
            arrays.write_archive(file, found, packed=True)

    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, content)


def _renamed(module: IRModule) -> IRModule:
    """The module with the functions of the NPU under the names of the flow, in the order they are called in."""
    called = [e.op for e in post_order(module[MAIN]) if isinstance(e, Call) and isinstance(e.op, GlobalVar)]
    regions = [v for v in dict.fromkeys(called) if module[v].attrs.get("Compiler") == COMPILER]
    names = {v: f"{SYMBOL}{n}" for n, v in enumerate(regions)}
    new = {id(v): GlobalVar(names[v]) for v in regions}

    def replaced(_: Expr, e: Expr) -> Expr:
        return new.get(id(e), e)

    made: dict[GlobalVar, BaseFunc] = {}
    for v, f in module.functions.items():
        if v in names:
            f = f.with_attr("global_symbol", names[v]).with_attr("Codegen", COMPILER)
        made[new.get(id(v), v)] = rewrite(f, replaced) if isinstance(f, Function) else f  # type: ignore[assignment]  # functions stay
    return infer_type.run(changed(module, made))


def _without_dequantize(module: IRModule, number: int) -> IRModule:
    """The module whose output of a number is the integers that it was made of. CompassError where it is of floats."""
    main = module[MAIN]
    assert isinstance(main, Function)
    fields = list(main.body.fields) if isinstance(main.body, Tuple) else [main.body]
    found = fields[number] if 0 <= number < len(fields) else None
    if not isinstance(found, Call) or op_name(found) != "qnn.dequantize":
        raise CompassError(
            f"output {number} is not made of integers", code=CODE, help="leave it out of bypass_output_dequant"
        )
    fields[number] = found.args[0]
    body = Tuple(fields) if isinstance(main.body, Tuple) else fields[0]
    functions: dict[GlobalVar, BaseFunc] = dict(module.functions)
    functions[module.get_global_var(MAIN)] = Function(main.params, body, None, (), main.attrs)
    return infer_type.run(changed(module, functions))

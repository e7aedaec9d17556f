"""The configuration of a flow: sections of a .cfg file, with defaults and what the environment says instead."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compassc.ir.errors import warn
from compassc.quantizer import vendor

CODE = "vendor-config"
MARK = ".compass_output"
"""The file by which a folder is known as one that a flow has made, and may make anew."""


@dataclass(frozen=True)
class Key:
    """A key that has a default, or is asked for in the environment. `of`: other sections that may hold it."""

    default: str | None = None
    variable: str = ""
    of: tuple[str, ...] = ()


KEYS: Mapping[str, Mapping[str, Key]] = {
    "common": {
        "output_dir": Key(),
        "forward_engine": Key("driver", "CPS_TVM_FORWARD_ENGINE"),
        "calibrate_collector": Key("relax_vm", "CPS_TVM_CALIBRATE_COLLECTOR"),
        "continuous_similarity": Key("false", "CPS_TVM_CONTINUOUS_SIM"),
        "disabled_pass": Key("ForwardFoldScaleAxis", "CPS_TVM_DISABLED_PASS"),
        "log_level": Key("INFO", "CPS_TVM_LOG_LEVEL"),
        "log_file": Key(None, "CPS_TVM_LOG_FILE"),
        "disable_op_spec_checker": Key("false", "CPS_TVM_DISABLE_OP_SPEC_CHECKER"),
        "compat_quantized_model": Key("false", "CPS_TVM_COMPAT_QUANTIZED_MODEL", ("parser",)),
        "without_batch_dim": Key("false", "CPS_TVM_WITHOUT_BATCH_DIM", ("optimizer",)),
        "compute_threshold": Key("2e5", "CPS_TVM_COMPUTE_THRESHOLD"),
        "dump_annotation_graph": Key("false", "CPS_TVM_DUMP_ANNOTATION_GRAPH"),
        "dump_partitioning_graph": Key("false", "CPS_TVM_DUMP_PARTITIONING_GRAPH"),
        "dump_building_graph": Key("false", "CPS_TVM_DUMP_BUILDING_GRAPH"),
        "simplify": Key("", "CPS_TVM_SIMPLIFY"),
    },
    "parser": {"model_type": Key("tensorflow"), "model_name": Key("model")},
    "optimizer": {
        "cast_dtypes_for_lib": Key("true"),
        "save_statistic_info": Key(None, "CPS_TVM_OPTIMIZER_SAVE_STATISTIC_INFO"),
    },
    "gbuilder": {
        "target": Key("X1_1204", "CPS_TVM_GBUILDER_TARGET"),
        "profile": Key("false", "CPS_TVM_GBUILDER_PROFILE"),
        "tcm_size": Key(None, "CPS_TVM_GBUILDER_TCM_SIZE"),
    },
    "runtime": {"verbose": Key("false"), "dump": Key("false", "CPS_TVM_RUNTIME_DUMP"), "simulator": Key()},
}
PATHS = {"parser": ("input_model",), "optimizer": ("calibration_data", "data", "label", "opt_config", "statistic_file")}
"""Keys whose values are paths: variables and `~` in them are expanded."""
PASSED_OVER = {
    "simulator": "programs run on this project's own simulator",
    "dump_annotation_graph": "`compassc partition` shows where each operator runs",
    "continuous_similarity": "`compassc evaluate` compares tensor by tensor",
}
"""Keys that change nothing here, and what to use instead."""


class CompassConfig:
    """The configuration of the process. `common`, `parser`, `gbuilder` and `runtime` are dicts of texts; `optimizers` has those of
    the quantiser by number, "0" the plain one."""

    _current: CompassConfig | None = None

    def __init__(self, config: str | os.PathLike[str]) -> None:
        """`config`: a path that ends in `.cfg`, or the text of a configuration, which may be empty. FileNotFoundError for a file
        that is not there, CompassError naming the lines that are wrong."""
        self.parsed = _parsed(config)
        self.warnings = self.parsed.warnings
        self.common, self.parser, optimizer, self.gbuilder, self.runtime = (self._section(name) for name in KEYS)
        self.optimizers = {"0": optimizer}
        self.gbuilder["target"] = self.gbuilder["target"].upper()
        for name, section in (("common", self.common), ("runtime", self.runtime)):
            for key in PASSED_OVER.keys() & self.parsed.sections.get(name, {}).keys():
                if section[key].lower() not in ("", "false"):
                    self.warnings.append(f"[{name.title()}] '{key}' has no effect: {PASSED_OVER[key]}")
        for text in dict.fromkeys(self.warnings):
            warn(text)
        given = self.common["output_dir"] if self.common.get("output_dir") else ""
        stem = self.parsed.path.stem if self.parsed.path.suffix == ".cfg" else "compass"
        self.output_dir = Path(given or f"compass_output_{stem}_{uuid.uuid4().hex[:8]}").expanduser().absolute()
        self.common["output_dir"] = str(self.output_dir)

    def _section(self, name: str) -> dict[str, str]:
        """A section with what the environment says, and defaults."""
        said = self.parsed.sections.get(name, {})
        found = {key: self._path(value) if key in PATHS.get(name, ()) else value for key, value in said.items()}
        for key, known in KEYS[name].items():
            elsewhere = (self.parsed.sections.get(section, {}).get(key) for section in known.of)
            in_file = said.get(key) or next((value for value in elsewhere if value), None)
            value = os.environ.get(known.variable) if known.variable else None
            value = in_file if value is None else value
            value = known.default if value is None else value
            if value is not None:
                found[key] = value
        return found

    def _path(self, text: str) -> str:
        folder = str(self.parsed.path.parent.absolute())
        expanded = os.path.expanduser(os.path.expandvars(text.replace("__CURRENT_CFG_DIR__", folder)))
        beside = self.parsed.path.parent / expanded
        return str(beside.absolute() if beside.exists() else Path(expanded).absolute()) if expanded else ""

    @classmethod
    def get(cls) -> CompassConfig:
        """The configuration of the flow that was made last. UsageError before there is one."""
        if cls._current is None:
            raise UsageError("there is no configuration yet", code=CODE, help='Compass("model.cfg") reads one')
        return cls._current

    @classmethod
    def reset(cls, config: str | os.PathLike[str]) -> CompassConfig:
        """Read a configuration, which is the process's from now on, and make its empty folder."""
        cls._current = made = cls(config)
        _emptied(made.output_dir)
        return made

    def optimizer(self, name: str = "0") -> dict[str, str]:
        """The section of the quantiser with a number. KeyError where there is none."""
        return self.optimizers[name]

    def flag(self, section: str, key: str) -> bool:
        """Whether a key is true. CompassError naming the line of one that is neither true nor false."""
        text = getattr(self, section)[key].lower()
        if text not in ("true", "false", ""):
            raise self.parsed.error(section, key, f"'{key}' is {text!r}, expected true or false")
        return bool(text == "true")

    @property
    def deploy_dir(self) -> Path:
        """The folder of what is sent to boards."""
        return self.output_dir / f"{self.parser['model_type']}_{self.parser['model_name']}"


class CompassFunctionConfig:
    """The files of one function of the NPU, in a folder of its name."""

    def __init__(self, func_name: str) -> None:
        self.func_name = func_name
        self.output_dir = CompassConfig.get().output_dir / func_name
        self.compass_ir_path = (self.output_dir / "nn_model.txt", self.output_dir / "nn_model.bin")
        optimizer = self.output_dir / "optimizer"
        self.quant_compass_ir_path = (optimizer / "quant_nn_model.txt", optimizer / "quant_nn_model.bin")
        self.calibration_data_file = optimizer / "calibration_data.npz"
        self.executable_path = self.output_dir / "gbuilder" / "aipu.bin"


def _parsed(config: str | os.PathLike[str]) -> vendor.Config:
    text = os.fspath(config)
    if not text.endswith(".cfg"):
        return vendor.parsed(text, Path("configuration"), also=KEYS)
    if not Path(text).is_file():
        raise FileNotFoundError(f"there is no configuration file '{text}'")
    return vendor.read(Path(text), also=KEYS)


def _emptied(folder: Path) -> None:
    """Make an empty folder; one that no flow has made is refused unless it is empty."""
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).exists())):
        raise UsageError(
            f"output_dir '{folder}' would be emptied, and holds what no flow has written",
            code=CODE,
            help="name a folder that is empty or not there yet",
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files.write(folder / MARK, b"")

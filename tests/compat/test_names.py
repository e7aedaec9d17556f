"""The vendor's import names: what each leads to, and what is said about those that do not exist."""

import importlib
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import compassc.dsl
from compass_core.errors import CompassError
from compassc.compat import install, modules
from compassc.compat.names import FUNCTIONS, MISSING, MODULES, SCALARS
from compassc.dsl import BuildManager, script

pytestmark = pytest.mark.usefixtures("names")


def test_every_name_of_the_table_leads_somewhere():
    offered = {module: modules._names(module) for module in MODULES}
    assert sum(map(len, offered.values())) > 300
    for module, given in MODULES.items():
        imported = importlib.import_module(module)
        for name in offered[module] if not given.like else given.given:
            assert getattr(imported, name) is not None, f"{module}.{name}"
        for like in given.like:
            importlib.import_module(like)


def test_the_pages_have_every_name():
    page = "".join((Path(__file__).parents[2] / "docs" / name).read_text() for name in ("compat.md", "tvm.md"))
    told = {name for names in re.findall(r"`([\w. ]+)`", page) for name in names.split()} | set(
        f"{SCALARS} {FUNCTIONS}".split()
    )
    wanted = {name for names in MODULES.values() for name in names.given if not name.startswith("_")}
    assert wanted - told == set()
    modules_told = told | {f"tvm.compass.dsl{name}" for name in told if name.startswith(".")}
    assert {module for module, names in MODULES.items() if wanted & {*names.given}} - modules_told == set()
    assert {
        full for full in MISSING if not {full, full.rpartition(".")[2], f"T.{full.rpartition('.')[2]}"} & told
    } == set()


def test_modules_that_stand_for_one_of_ours_have_its_objects():
    from tvm import aipu, compass
    from tvm.aipu import script as old
    from tvm.compass import dsl
    from tvm.compass.dsl import script as new

    assert dsl.BuildManager is aipu.tir.BuildManager is BuildManager and compass.dsl is dsl
    assert new.vload is old.vload is script.vload and aipu.script is old
    assert dsl.Aiff is dsl.aiff.Aiff and dsl.testing.rand is compassc.dsl.testing.rand
    assert dsl.CompassInfo.get("X2_1204") == dsl.info.CompassInfo.get("compass -mcpu=X2_1204")
    assert str(new.i32x8) == str(script.i32x8) and hasattr(new, "u8x64")
    assert set(dir(dsl)) >= {"BuildManager", "CompassInfo", "script", "utils", "hw_native_vdtype"}


def test_a_module_gives_all_its_names_at_once():
    seen: dict[str, object] = {}
    exec("from tvm.compass.dsl.script import *", seen)  # noqa: S102 - no statement for a function
    assert seen["vadd"] is script.vadd and "prim_func" in seen and "i8x32" in seen


def test_errors_are_caught_under_the_framework_s_name():
    import tvm

    with pytest.raises(tvm.TVMError, match="unknown target"):
        BuildManager("X5")
    assert issubclass(CompassError, tvm.error.DiagnosticError)


@pytest.mark.parametrize(
    "full", [*MISSING, "tvm.relay.no_such", "tvm.compass.dsl.Nothing", "tvm.no_such", "tvm.script.tir.prim"]
)
def test_what_does_not_exist_says_why(full):
    parent, _, name = full.rpartition(".")
    why = MISSING.get(full, MISSING.get(parent, f"module '{parent}' has no attribute '{name}'"))
    with pytest.raises(ImportError) as imported:
        exec(f"from {parent} import {name}", {})  # noqa: S102 - an import statement for a name known only here
    assert isinstance(imported.value, CompassError) and why in str(imported.value) and imported.value.help
    with pytest.raises(ImportError):
        importlib.import_module(full)
    if parent in MODULES:
        found = importlib.import_module(parent)
        assert not hasattr(found, name)
        with pytest.raises(AttributeError) as looked_up:
            getattr(found, name)
        assert why in str(looked_up.value)


def test_the_nearest_name_is_proposed():
    import tvm

    with pytest.raises(CompassError) as caught:
        tvm.DataTyp  # noqa: B018
    assert caught.value.help == "did you mean tvm.DataType?"


def test_data_types():
    import tvm
    from tvm.compass.dsl import utils

    kind = tvm.DataType("i8x32")
    assert (str(kind), kind.bits, kind.lanes, kind.total_bytes) == ("int8x32", 8, 32, 32)
    assert kind is tvm.runtime.DataType("int8x32") is pickle.loads(pickle.dumps(kind))
    assert kind.is_int8 and kind.is_int_vector and kind.is_integer_vector and not kind.is_int16
    assert not kind.is_int8_scalar and tvm.DataType("float16").is_float16_scalar and not kind.is_floating
    with pytest.raises(AttributeError, match="is_round"):
        kind.is_round  # noqa: B018
    assert tvm.get_range("uint8") == (0, 255) and tvm.get_range("i16x16") == (-32768, 32767)
    assert tvm.int_within_range(255, "uint8") and not tvm.int_within_range(-1, "uint8")
    convert = tvm.can_implicit_convert
    assert convert("int8", "int32") and convert("int32", "int8") and convert("int32", "float16")
    assert not convert("int16x16", "int8x16") and not convert("int8x8", "int8x16") and not convert("float32", "int32")
    assert [str(utils.double_elem_width(d)) for d in ("int8x32", "int8x16", "i32x8", "fp16")] == [
        "int16x16",
        "int16x16",
        "int32x8",
        "float32",
    ]
    assert str(utils.double_elem_width("i32x8", allow_64bit=True)) == "int64x4"
    assert [str(utils.half_elem_width("int16x16", double)) for double in (True, False)] == ["int8x32", "int8x16"]
    with pytest.raises(CompassError, match="half its width"):
        utils.half_elem_width("int8")
    assert [
        str(utils.get_binary_op_result_type(*pair))
        for pair in (("int8", 1), ("int8", 300), ("u8", "i16"), ("i32x8", 2.5))
    ] == ["int8", "int32", "int16", "float32x8"]
    natives = [utils.is_hw_native_dtype(d) for d in ("int8", "int8x32", "int8x16", "boolx8", "int64")]
    assert natives == [True, True, False, True, False]
    assert utils.is_hw_native_vdtype("boolx32") and not utils.is_hw_native_scalar_dtype("int8x32")


@script.prim_func
def add_one(a: script.ptr("int32", "global"), b: script.ptr("int32", "global"), n: script.i32):
    for i in range(n):
        b[i] = a[i] + 1


def test_modules_of_the_framework(capsys):
    import tvm
    from tvm import tir
    from tvm.compass.dsl import transform

    module = BuildManager().lower(add_one)
    assert isinstance(module, tvm.IRModule) and isinstance(module["add_one"], tir.PrimFunc)
    assert "def add_one" in str(module) and str(module["add_one"]) in module.script().replace('"X2_1204"', '""')
    module.show()
    assert capsys.readouterr().out.rstrip("\n") == str(module).rstrip("\n")
    same = transform.FoldConstant()(transform.CommonSubexprElimTIR()(module))
    tvm.ir.assert_structural_equal(same, module)
    with pytest.raises(AssertionError, match="not structurally equal"):
        tvm.ir.assert_structural_equal(module, BuildManager().lower(add_one, name="other"))


def test_modules_made_of_functions_are_built():
    import tvm

    function = BuildManager().lower(add_one)["add_one"]
    for module in (tvm.IRModule({"main": function}), tvm.IRModule.from_expr(function)):
        assert isinstance(module, tvm.ir.IRModule) and isinstance(module, tvm.tir.IRModule)
        for target in ("X2_1204", "X3P_1304"):
            ex = BuildManager(target).build(module)
            ex(np.arange(3, dtype=np.int32), b := np.zeros(3, np.int32), 3)
            assert (ex.name, b.tolist()) == ("add_one", [1, 2, 3])
    assert not isinstance(function, tvm.IRModule)
    other = function.replace(name="other")
    assert tvm.IRModule({"other": other, "main": function}).entry == "add_one"
    assert tvm.IRModule({"b": other, "a": function}).entry == "other"
    with pytest.raises(CompassError, match="no function 'main'"):
        BuildManager().build(tvm.IRModule())


def test_targets():
    import tvm
    from tvm.compass.utils import canonicalize_target

    target = tvm.target.Target("compass -mcpu=X3P_1304")
    assert (str(target), target.mcpu, target.kind.name) == ("compass -mcpu=X3P_1304", "X3P_1304", "compass")
    assert BuildManager(target).target.name == "X3P_1304" and canonicalize_target("X3P_1304") == target
    assert tvm.target.Target.current() is None
    with target, tvm.target.Target("X2_1204"):
        assert tvm.target.Target.current().mcpu == "X2_1204"
    with target:
        assert compassc.dsl.CompassInfo.current().name == "X3P_1304"
    with pytest.raises(CompassError, match="unknown target"):
        tvm.target.Target("toaster")


def test_arrays_and_functions_of_the_runtime():
    import tvm

    given = np.arange(6, dtype="int16").reshape(2, 3)
    for device in (tvm.cpu(), tvm.cuda(0), tvm.nd.cuda(1)):
        assert (tvm.nd.array(given, device).numpy() == tvm.convert(given).numpy()).all()
    array = tvm.nd.array(given, tvm.cpu())
    assert isinstance(array, tvm.runtime.NDArray) and (array.numpy() == given).all()
    tvm.register_func("tests.compat.twice", lambda x: 2 * x, override=True)
    assert tvm.get_global_func("tests.compat.twice")(4) == 8


LOOPS = """
from tvm.compass.dsl import BuildManager, script as S
from tvm.script import tir as T


@S.prim_func
def k(b: S.ptr("int32", "global"), n: S.i32):
    for t in T.thread_binding(0, 4, thread="threadIdx.x"):
        for i in T.serial(n):
            for j in T.unroll(2):
                b[t * n * 2 + i * 2 + j] = t * 100 + i * 10 + j
        for i in T.serial(1, 4, 2):
            b[t * n * 2 + i] = T.int32(b[t * n * 2 + i]) - 5
"""


def test_loops_of_the_framework_run_the_same_compiled_and_in_pysim(tmp_path):
    (tmp_path / "k.py").write_text(LOOPS)
    kernel = compassc.dsl.load_kernels(tmp_path / "k.py").entry("k")
    a, b = np.zeros(24, np.int32), np.zeros(24, np.int32)
    BuildManager().build(kernel)(a, 3)
    kernel(b, 3)
    wanted = np.array([t * 100 + i * 10 + j for t in range(4) for i in range(3) for j in range(2)])
    wanted.reshape(4, 6)[:, [1, 3]] -= 5
    assert a.tolist() == b.tolist() == wanted.tolist()


def test_the_logger(tmp_path, capsys, monkeypatch):
    from tvm.compass import logger

    monkeypatch.setattr(logger.logger, "handlers", [])
    monkeypatch.setattr(logger.logger, "propagate", True)
    monkeypatch.setattr(logger.logger, "level", 0)
    logger.set_logger(log_level="WARN")
    logger.INFO("not said")
    logger.WARN("said %d", 1)
    assert capsys.readouterr().out.endswith("[WARN] said 1\n")
    logger.set_logger(tmp_path / "log", "debug")

    @logger.timer
    def work():
        logger.DEBUG_ONCE("once")
        logger.DEBUG_ONCE("once")

    work()
    lines = (tmp_path / "log").read_text().splitlines()
    assert [line.partition("]")[2].split(" ")[0] for line in lines] == ["[INFO]", "[DEBUG]", "[INFO]"]
    with pytest.raises(ValueError, match="unknown log level 'loud'"):
        logger.set_logger(log_level="loud")


def test_options_are_those_of_the_import(monkeypatch):
    monkeypatch.setenv("CPS_DSL", "asm;rs=5")
    from tvm.compass.utils import abspath, control_option

    monkeypatch.delenv("CPS_DSL")
    assert control_option.is_asm and control_option.random_seed == 5 and not control_option.is_debug
    monkeypatch.setenv("WHERE", "there")
    assert abspath("$WHERE/x", "/base") == "/base/there/x" and abspath(None) is None


def test_remote_sessions_say_what_they_need(monkeypatch):
    from tvm.compass import dsl, utils

    assert dsl.get_rpc_session is utils.get_rpc_session
    for name in ("RPC_KEY", "RPC_TRACKER_IP", "RPC_TRACKER_PORT", "RPC_PRIORITY", "VALID_RPC_KEYS"):
        monkeypatch.delenv(f"CPS_TVM_{name}", raising=False)
    for given, message in (
        ({}, "needs a key"),
        ({"rpc_key": "key"}, "needs a tracker"),
        ({"rpc_key": "key", "tracker_host": "127.0.0.1"}, "needs a port"),
        ({"rpc_key": "key", "tracker_host": "127.0.0.1", "tracker_port": "x"}, "is a number"),
    ):
        with pytest.raises(CompassError, match=message):
            dsl.get_rpc_session(**given)
    monkeypatch.setenv("CPS_TVM_VALID_RPC_KEYS", "a|b")
    with pytest.raises(CompassError, match="not one of a|b"):
        dsl.get_rpc_session(rpc_key="key", tracker_host="127.0.0.1", tracker_port=1)


def test_installing_twice_changes_nothing():
    before = list(sys.meta_path)
    assert install() and install(shadow=True) and sys.meta_path == before

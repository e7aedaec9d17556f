"""Modules as mappings, and what watches passes: as programs for the framework use them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.ir import structural_equal

pytestmark = pytest.mark.usefixtures("names")


def lowered(name: str = "twice", target: str = "llvm"):
    import tvm
    from tvm import te

    a = te.placeholder((8,), "int32", name="a")
    b = te.compute((8,), lambda i: a[i] * 2, name="b")
    with tvm.target.Target(target):
        return tvm.lower(te.create_schedule(b.op), [a, b], name=name)


def test_a_module_is_a_mapping_from_names():
    import tvm

    module = lowered()
    var = module.get_global_var("twice")
    assert module[var] is module["twice"] is next(iter(module.functions)) and str(var) == "twice"
    assert "twice" in module and var in module and "thrice" not in module
    assert module.get_global_vars() == list(module) == [var]
    assert isinstance(var, tvm.ir.GlobalVar)
    for ask in (module.__getitem__, module.get_global_var):
        with pytest.raises(ValueError, match="'twise'") as caught:
            ask("twise")
        assert "twice" in caught.value.help


def test_functions_are_put_into_copies_and_their_module_stays():
    import tvm

    module, other = lowered(), lowered("other")
    copy = module.clone()
    copy["again"] = module["twice"]
    copy.update(other)
    assert [f.name for f in copy.functions] == ["again", "other", "twice"] and len(module.functions) == 1
    assert structural_equal(copy["again"].with_attr("global_symbol", "twice"), module["twice"])
    copy.update_func(copy.get_global_var("twice"), other["other"])
    assert copy["twice"].name == "twice" and copy.entry == module.entry
    empty = tvm.IRModule()
    empty["main"] = module["twice"]
    found = np.zeros(8, "int32")
    tvm.build(empty, target="llvm")(np.arange(8, dtype="int32"), found)
    assert found.tolist() == list(range(0, 16, 2))


def test_attributes_come_with_copies():
    module = lowered()
    noted = module.with_attrs({"a": 1, "b": 2}).without_attr("a").with_attr("c", [3])
    assert noted.attrs["b"] == 2 and "a" not in noted.attrs and noted.get_attr("c") == [3]
    assert (
        module.get_attr("b") is None
        and not module.attrs
        and dict(pickle.loads(pickle.dumps(noted)).attrs) == dict(noted.attrs)
    )
    function = module["twice"].with_attr("note", "x")
    assert function.attrs["note"] == "x" and "note" not in function.without_attr("note").attrs
    assert "note" not in module["twice"].attrs


def test_what_is_built_by_the_names_of_generators():
    import tvm

    module = lowered()
    for name in ("target.build.llvm", "codegen.build_llvm"):
        found = np.zeros(8, "int32")
        tvm.get_global_func(name)(module, tvm.target.Target("llvm"))(np.arange(8, dtype="int32"), found)
        assert found[7] == 14
    assert tvm.compile(module, "llvm").type_key == tvm.tir.build(module, "llvm").type_key
    with pytest.raises(CompassError, match="no pipeline 'zero'"):
        tvm.compile(module, "llvm", relax_pipeline="zero")
    with pytest.raises(TypeError, match="cannot lower a int"):
        tvm.lower(3)


def test_settings_are_named_with_their_types():
    from tvm.transform import PassContext

    configs = PassContext.list_configs()
    assert configs["tir.disable_vectorize"] == {"type": "bool", "default": False}
    for name, config in configs.items():
        PassContext(config={name: config["default"]})
        with pytest.raises(TypeError, match=f"'{name}' is a {config['type']}, got a bytes"):
            PassContext(config={name: b"x"})
    with pytest.raises(AttributeError, match="no setting 'tir.unroll'") as caught:
        PassContext(config={"tir.unroll": {}})
    assert caught.value.help


def test_passes_run_by_level_and_names():
    """Required ones whatever their level, and before those that require them; left out wins."""
    from tvm import transform

    ran = []

    def own(name, level, **options):
        return transform.module_pass(lambda m, c: ran.append(name) or m, opt_level=level, name=name, **options)

    first, deep = own("first", 3), own("deep", 1, required=["first"])
    both = transform.Sequential([first, deep])
    for options, wanted in (
        ({}, ["first", "deep"]),
        ({"opt_level": 0}, []),
        ({"opt_level": 0, "required_pass": ["first"]}, ["first"]),
        ({"opt_level": 3}, ["first", "first", "deep"]),
        ({"opt_level": 3, "disabled_pass": ["deep"], "required_pass": ["deep"]}, ["first"]),
    ):
        ran.clear()
        with transform.PassContext(**options):
            both(lowered())
        assert ran == wanted, options
    assert (deep.info.name, deep.info.opt_level, deep.info.required) == ("deep", 1, ("first",))


def test_classes_are_passes_with_arguments():
    from tvm import tir, transform

    seen = []

    @transform.module_pass(opt_level=1)
    class Looks:
        def __init__(self, word):
            self.word = word

        def transform_module(self, module, context):
            seen.append(self.word)
            return module

    @tir.transform.prim_func_pass(opt_level=0)
    class Renames:
        def transform_function(self, function, module, context):
            return function.with_attr("global_symbol", "renamed")

    assert "renamed" in Renames()(Looks("word")(lowered())) and seen == ["word"]


def test_instruments_watch_passes_and_may_leave_them_out(capsys):
    from tvm import tir, transform
    from tvm.ir.instrument import PassTimingInstrument, PrintAfterAll, pass_instrument

    log = []

    @pass_instrument
    class Watch:
        def enter_pass_ctx(self):
            log.append("enter")

        def exit_pass_ctx(self):
            log.append("exit")

        def should_run(self, module, info):
            return info.name != "skipped"

        def run_before_pass(self, module, info):
            log.append(f"before {info.name}")

        def run_after_pass(self, module, info):
            log.append(f"after {info.name}")

    own = transform.module_pass(lambda m, c: log.append("runs") or m, opt_level=0, name="own")
    skipped = transform.module_pass(lambda m, c: log.append("never") or m, opt_level=0, name="skipped")
    timing = PassTimingInstrument()
    module = lowered()
    with transform.PassContext(instruments=[Watch(), timing]):
        transform.Sequential([own, skipped, tir.transform.Simplify()], name="all")(module)
    inside = ["before own", "runs", "after own", "before Simplify", "after Simplify"]
    assert log == ["enter", "before all", *inside, "after all", "exit"]
    assert [line.partition(":")[0] for line in timing.render().splitlines()] == ["all", "  own", "  Simplify"]
    with transform.PassContext(instruments=[PrintAfterAll()]):
        tir.transform.PrintIR("here")(module)
    printed = capsys.readouterr()
    assert printed.err.startswith("PrintIR(here):\n# from tvm.script") and "# after PrintIR\n" in printed.out
    with pytest.raises(CompassError, match="no instrument"):
        transform.PassContext(instruments=[3])

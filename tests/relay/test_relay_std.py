"""The standard definitions."""

from __future__ import annotations

import pytest

from compassc import relay
from compassc.ir.errors import ExpressionError
from compassc.relay.variables import free_vars
from tests.choosing import some

FILES = ["prelude.rly", "nat.rly", "gradient.rly", "core.rly"]


def test_the_prelude_has_its_functions_as_attributes():
    prelude = relay.Prelude()
    assert prelude.map is prelude.mod.get_global_var("map")
    assert [c.name_hint for c in prelude.mod.get_type("List")[1:]] == ["Cons", "Nil"]
    assert relay.Prelude(prelude.mod).map is prelude.map


@pytest.mark.parametrize("name", FILES)
def test_files_are_whole_and_read_back(name):
    module = relay.IRModule()
    module.import_from_std("prelude.rly")
    module.import_from_std(name)
    typed = module.import_from_std(name)
    for v, function in some(module.functions.items()):
        assert free_vars(function) == [], v
    again = relay.parse(typed.astext())
    relay.assert_structural_equal(typed, again)
    assert all(f.checked_type_ is not None for f in some(typed.functions.values()))


def test_unknown_files_are_refused():
    with pytest.raises(ExpressionError, match=r"no standard file 'prelud.rly'"):
        relay.IRModule().import_from_std("prelud.rly")

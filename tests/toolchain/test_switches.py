"""Switches: one order of precedence, read live, unknown names and bad values are errors."""

import pytest

from compass_core import switches
from compass_core.errors import UsageError
from tests.choosing import some


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    for switch in switches.SWITCHES:
        monkeypatch.delenv(switch.variable, raising=False)
    monkeypatch.setenv("COMPASS_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


def test_flag_beats_environment_beats_config_beats_default(clean, monkeypatch):
    assert switches.TIMEOUT.setting().origin == "default"
    clean.write_text("# limits\ntimeout = 7 # seconds\n")
    assert switches.TIMEOUT.get() == 7
    assert switches.TIMEOUT.setting().origin == f"{clean}:2"
    monkeypatch.setenv("COMPASS_TIMEOUT", "8")
    assert (switches.TIMEOUT.get(), switches.TIMEOUT.setting().origin) == (8, "environment")
    assert (switches.TIMEOUT.get("9"), switches.TIMEOUT.setting("9").origin) == (9, "flag")


def test_unknown_variable_is_an_error_that_suggests(monkeypatch):
    switches.check()
    monkeypatch.setenv("COMPASS_CACHE_DRI", "x")
    with pytest.raises(UsageError) as caught:
        switches.check()
    assert "COMPASS_CACHE_DIR" in caught.value.help


def test_unknown_config_name_is_an_error_at_its_line(clean):
    clean.write_text("\ncoulor = never\n")
    with pytest.raises(UsageError) as caught:
        switches.check()
    assert (caught.value.span.line, "color" in caught.value.help) == (2, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TIMEOUT", "0"),
        ("TIMEOUT", "nan"),
        ("TIMEOUT", "soon"),
        ("CACHE", "2"),
        ("COLOR", "red"),
        ("CACHE_LIMIT", "-1"),
    ],
)
def test_bad_value_is_an_error_not_on(monkeypatch, name, text):
    monkeypatch.setenv(f"COMPASS_{name}", text)
    with pytest.raises(UsageError, match=f"COMPASS_{name}"):
        switches.check()


def test_every_switch_is_listed(clean):
    """What is not among them cannot be set in the config file, and its misspellings are not told."""
    declared = [value for value in vars(switches).values() if isinstance(value, switches.Switch)]
    assert {switch.name for switch in declared} == {switch.name for switch in switches.SWITCHES}
    clean.write_text("aiff_assume = Half-Up, clamp\n")
    assert switches.AIFF_ASSUME.get() == {"half-up", "clamp"}


def test_every_default_is_valid_and_every_switch_explains_itself():
    for switch, setting in some(switches.settings()):
        assert setting.origin == "default"
        assert switch.help

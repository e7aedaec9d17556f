"""Targets: the small reader agrees with YAML, and unknown names are explained."""

import pytest
import yaml

from compass_core import costs, targets
from compass_core.errors import CompassError, UsageError


@pytest.mark.parametrize("name", targets.names())
def test_reader_agrees_with_yaml(name):
    path = targets.folder() / f"{name}.yaml"
    assert vars(targets.load(name)) == yaml.safe_load(path.read_text())


@pytest.mark.parametrize("name", targets.names())
def test_device_word_follows_from_the_name(name):
    target = targets.load(name)
    assert target.name == name
    assert target.version == name.partition("_")[0]
    revision = {"P": 1, "S": 2}.get(target.version[2:], 0)
    config = int(target.mcpu.partition("_")[2])
    assert target.device_word == revision << 28 | target.isa << 16 | config


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(UsageError) as caught:
        targets.load("X2_124")
    assert "X2_1204" in caught.value.help
    assert all(name in caught.value.notes[0].message for name in targets.names())


@pytest.mark.parametrize("name", ["X1_1204", "../X2_1204", "", "X2_1204.yaml"])
def test_what_is_not_a_target_is_refused(name):
    with pytest.raises(UsageError):
        targets.load(name)


@pytest.mark.parametrize("text", ["cores: many", "cores 4", "colour: red", "name: X2_1204"])
def test_a_bad_file_is_refused_with_its_line(tmp_path, text):
    file = tmp_path / "bad.yaml"
    file.write_text(f"# comment\n{text}\n")
    with pytest.raises(CompassError) as caught:
        targets.read(file)
    assert caught.value.span.file == str(file)


@pytest.mark.parametrize("generation", sorted({targets.load(name).version for name in targets.names()}))
def test_the_costs_of_generations_are_read_as_the_yaml_that_they_are(generation):
    def whole(name):
        content = yaml.safe_load((targets.folder() / "cost" / f"{name}.yaml").read_text())
        return {**whole(content.pop("based_on")), **content} if "based_on" in content else content

    assert costs.estimates(generation) == whole(generation)


@pytest.mark.parametrize("line", ["a 1", "a: {b: }", "a: [1]", "  a: 1", "a: {b: {c: 1}}", "a: 1\n  b: 1", "a:\n  b:"])
def test_a_line_of_costs_that_is_none_is_refused_with_its_place(tmp_path, monkeypatch, line):
    (tmp_path / "cost").mkdir()
    (tmp_path / "cost" / "Y.yaml").write_text(f"# costs\nfirst: 1\n{line}\n")
    monkeypatch.setattr(targets, "folder", lambda: tmp_path)
    with pytest.raises(CompassError, match="expected 'name: value'") as caught:
        costs.estimates("Y")
    assert caught.value.span.line == 3 + line.count("\n")

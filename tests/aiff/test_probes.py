"""Programs that confirm assumptions on a board: they tell the readings apart, and the model gives its own."""

import numpy as np
import pytest

from compass_core.aiff.rules import ASSUMPTIONS
from compass_core.errors import CompassError
from compassc.dsl.aiff.probes import PROBES, expected, kernel_of, write


def test_there_is_a_probe_for_each_assumption():
    assert list(PROBES) == list(ASSUMPTIONS)


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_runs_by_its_assumption_alone(name, monkeypatch):
    probe = PROBES[name]()
    kernel, chains = kernel_of(probe)
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", ",".join(set(ASSUMPTIONS) - {name}))
    with pytest.raises(CompassError, match=rf"COMPASS_AIFF_ASSUME={name}\b"):
        kernel(chains, probe.output)
    probe.output[...] = 0
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", name)
    kernel(chains, probe.output)
    np.testing.assert_array_equal(probe.output, expected(probe, probe.readings["assumed"]))


@pytest.mark.parametrize("name", PROBES)
def test_its_readings_differ(name):
    probe = PROBES[name]()
    results = {expected(probe, values).tobytes() for values in probe.readings.values()}
    assert len(results) == len(probe.readings) and any(any(result) for result in results)


def test_a_written_probe_has_what_a_board_needs(tmp_path, monkeypatch):
    from compass_runtime.cli import main

    write("half-up", tmp_path)
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "half-up")
    monkeypatch.chdir(tmp_path)
    inputs = ",".join(sorted(map(str, tmp_path.glob("input*.npy"))))
    command = ["gbuilder/aipu.bin", "--inputs", inputs, "--expect", "output-assumed.npy", "-o", "out.npy"]
    with pytest.raises(SystemExit, match="^0$"):
        main(command)
    assert (tmp_path / "out.npy").exists()

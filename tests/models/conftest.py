"""Built models that the tests share."""

from pathlib import Path

import pytest

import compassc

GRAPHS = Path(__file__).parents[1] / "data" / "graphs"


@pytest.fixture(scope="session")
def lenet():
    """A folder with a network, an input and its result."""
    return GRAPHS / "lenet"


@pytest.fixture(scope="session")
def model(lenet):
    return compassc.compile(lenet / "model.onnx", target="X2_1204")


@pytest.fixture(scope="session")
def integers(lenet):
    """The same network, quantised."""
    return compassc.compile(lenet / "default.txt", target="X2_1204")

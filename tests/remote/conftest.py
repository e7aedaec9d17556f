"""A server of this machine that the tests share. All is on 127.0.0.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from remote_peers import PORTS, SMALL

from compass_runtime import rpc
from compass_runtime.rpc.limits import Quota


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tokens of these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("state")
        patch.setenv("COMPASS_STATE_DIR", str(folder))
        for name in ("COMPASS_RPC_TOKENS", "COMPASS_RPC_CA"):
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="session")
def server(state_folder: Path) -> Iterator[rpc.Server]:
    """A server with room for many, and small limits."""
    with rpc.Server(**PORTS, silent=True, quota=SMALL) as made:
        yield made


@pytest.fixture
def start(state_folder: Path) -> Callable[[Quota], rpc.Server]:
    """Starts a server with limits of its own."""
    return lambda quota: rpc.Server(**PORTS, silent=True, quota=quota)


@pytest.fixture
def session(server: rpc.Server) -> Iterator[rpc.Session]:
    with rpc.connect(server.host, server.port) as made:
        yield made


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The aipu.bin of a kernel: out = a + b over n elements; with n < 0 it never ends."""
    from remote_kernels import add

    from compassc.dsl import BuildManager

    folder = tmp_path_factory.mktemp("kernel")
    return BuildManager("X2_1204", output_dir=str(folder)).build(add).path


@pytest.fixture
def own(start: Callable[[Quota], rpc.Server]) -> Iterator[rpc.Server]:
    with start(Quota(sessions=2)) as made:
        yield made

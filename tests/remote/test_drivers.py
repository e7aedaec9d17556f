"""A server whose programs a driver's library runs, named as the vendor's is: our own library has the driver's functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import test_limits_of_sessions
import test_remote_runs
import test_sessions
from remote_peers import PORTS, SMALL, eventually, flooding_driver, processes
from test_remote_runs import ex

from compass_runtime import rpc
from compass_runtime.clibrary import library_path
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind
from compass_runtime.vendor_driver import MOST_PRINTED

__all__ = ["ex"]  # a fixture

SHARED = {
    test_sessions: "a_kernel_runs_there a_fault_of_a_kernel_is_told_and_the_session_goes_on exported_modules_and_their_imports",
    test_remote_runs: "an_executor_runs_there what_it_prints_and_its_times errors_of_arguments_are_those_of_runs_here a_model_runs_there",
    test_limits_of_sessions: """a_damaged_program_is_refused a_call_that_takes_too_long_is_stopped""",
}
for _module, _names in SHARED.items():
    globals().update({f"test_{name}": getattr(_module, f"test_{name}") for name in _names.split()})


@pytest.fixture(scope="module")
def server(state_folder: Path) -> Iterator[rpc.Server]:
    with rpc.Server(**PORTS, silent=True, quota=SMALL, driver=str(library_path())) as made:
        yield made


def test_it_says_what_runs_its_programs(session: rpc.Session) -> None:
    assert session.info["device"] == str(library_path())


def test_a_library_that_is_none_is_refused(state_folder: Path) -> None:
    for library in ("libaipudrv.so", "libc.so.6"):
        with pytest.raises(rpc.RPCError, match="the driver's library cannot be used") as caught:
            rpc.Server(**PORTS, silent=True, driver=library)
        assert caught.value.code == "rpc-driver"


def test_the_commands_option(compassc: Callable[..., object]) -> None:
    done = compassc("rpc-server", "--driver", "libaipudrv.so")
    assert done.status != 0 and "libaipudrv.so" in done.err  # type: ignore[attr-defined]


def memory_of(process: int) -> int:
    """Bytes of files in memory that a process has open."""
    found = 0
    for path in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            found += path.stat().st_blocks * 512 if "memfd:stdout" in os.readlink(path) else 0
    return found


def floods(own: rpc.Server, kernel: Path) -> None:
    """What a device prints is bounded, in memory and in what the client gets; the next run has room again."""
    with rpc.connect(own.host, own.port) as session:
        module = session.load_bytes(kernel.read_bytes())
        (process,) = processes(own)
        out = session.empty((4,), "int32")
        for value in (1, 2):
            one = session.array(np.full(4, value, np.int32))
            _, printed, _, _ = session.call("program.call", [module, [one, one, out, 4], []])
            assert printed.startswith("flood") and printed.endswith("has no room)\n")
            assert len(printed) <= MOST_PRINTED + 100
            assert (out.numpy() == 2 * value).all()
        assert memory_of(process) <= MOST_PRINTED


def test_what_a_device_prints_is_bounded(state_folder: Path, kernel: Path) -> None:
    with rpc.Server(**PORTS, silent=True, driver=str(flooding_driver())) as own:
        floods(own, kernel)


def test_a_client_that_goes_ends_what_runs_for_him(kernel: Path) -> None:
    quota = Quota(sessions=2)
    with rpc.Server(**PORTS, silent=True, quota=quota, driver=str(library_path())) as own:
        session = rpc.connect(own.host, own.port)
        module, one = session.load_bytes(kernel.read_bytes()), session.array(np.zeros(1, np.int32))
        value = [session.describe(module), [session.describe(one)] * 3 + [-1], []]
        session.channel.send(Kind.CALL, 99, {"f": "program.call", "v": value})
        eventually(lambda: processes(own))
        session.close()
        eventually(lambda: not processes(own))

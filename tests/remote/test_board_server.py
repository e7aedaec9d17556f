"""compass-rpcd, the server in C: what holds of the server in Python holds of it, attacks included; and what is its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_ends_of_sessions
import test_hostile_peers
import test_limits_of_sessions
import test_remote_runs
import test_sessions
import test_waiting_clients
from elftools.elf.elffile import ELFFile
from remote_kernels import add
from remote_peers import SMALL, BoardServer, board_folder, eventually, flooding_driver, known
from test_drivers import floods
from test_remote_runs import ex, operands
from test_waiting_clients import full

from compass_core.errors import CompassError
from compass_runtime import board_server, rpc
from compass_runtime.clibrary import library_path
from compass_runtime.rpc import access
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import Kind
from compassc.driver.build import Request, run_build
from compassc.dsl import BuildManager

__all__ = ["ex", "full"]  # fixtures

SHARED = {
    test_sessions: """values_go_there_and_back arrays_are_the_same_byte_by_byte large_arrays_go_in_pieces files
        each_session_has_a_folder_of_its_own_that_goes_with_it a_kernel_runs_there threads_share_a_session
        a_fault_of_a_kernel_is_told_and_the_session_goes_on what_nobody_has_any_more_is_given_back after_its_end
        the_last_object_keeps_the_session""",
    test_remote_runs: """an_executor_runs_there what_it_prints_and_its_times a_model_runs_there""",
    test_hostile_peers: """a_wrong_token_is_refused a_recorded_proof_is_worth_nothing another_version_is_named_on_both_sides a_wrong_key
        what_a_known_client_asks_for_does_not_end_the_server strangers_with_damaged_greetings
        a_stranger_who_says_nothing_is_sent_away damaged_messages_end_the_session_and_no_other
        calls_of_what_is_not_there_are_answered_with_errors names_that_leave_the_folder""",
    test_limits_of_sessions: """files_have_a_limit folders_have_a_limit what_a_view_holds_counts programs_share_few_devices
        answers_that_are_too_large_for_a_message a_damaged_program_is_refused a_call_that_takes_too_long_is_stopped
        a_call_can_be_cancelled a_session_has_an_end a_session_of_which_nothing_is_asked_ends
        a_slow_writer_and_a_slow_reader_lose_their_sessions""",
    test_ends_of_sessions: """a_client_that_dies_leaves_nothing a_client_that_dies_ends_the_call_that_runs_for_it
        a_session_whose_process_dies_tells_its_client_and_no_other a_server_that_dies_takes_its_sessions_along
        a_stopped_server_does_not_hold_its_client_for_ever more_clients_than_sessions_wait_for_their_turn
        two_hundred_sessions_at_once a_flood_of_strangers""",
    test_waiting_clients: "a_full_row_keeps_nobody_from_the_greeting",
}
for _module, _names in SHARED.items():
    globals().update({f"test_{name}": getattr(_module, f"test_{name}") for name in _names.split()})


@pytest.fixture(scope="module")
def server(state_folder: Path) -> Iterator[BoardServer]:
    with BoardServer(SMALL) as made:
        yield made


@pytest.fixture(scope="module")
def patient(state_folder: Path) -> Iterator[BoardServer]:
    with BoardServer(Quota(session_seconds=0, sessions=64)) as made:
        yield made


@pytest.fixture
def start(state_folder: Path) -> Callable[[Quota], BoardServer]:
    return BoardServer


def test_it_stays_on_loopback_and_names_what_is_wrong(tmp_path: Path) -> None:
    program = board_folder() / "compass-rpcd"
    open_tokens, short, many = tmp_path / "open", tmp_path / "short", tmp_path / "many"
    for path, text, mode in ((open_tokens, "a" * 40, 0o644), (short, "abc", 0o600), (many, "a" * (1 << 16), 0o600)):
        path.write_text(text)
        path.chmod(mode)
    for words, why in (
        (["--token-file", short, "--host", "0.0.0.0"], "a tunnel leads there"),
        (["--token-file", short, "--host", "192.0.2.1"], "a tunnel leads there"),
        ([], "a file of tokens"),
        (["--token-file", open_tokens], "others can read the tokens"),
        (["--token-file", short], "32 characters"),
        (["--token-file", many], "is too large"),
        (["--token-file", tmp_path / "none"], "that can be read"),
        (["--token-file"], "needs a value"),
        (["--sessions", "0"], "no value of this option"),
        (["--port", "70000"], "no value of this option"),
        (["--other"], "no option '--other'"),
    ):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and why in done.stderr, done.stderr
    good = tmp_path / "good"
    good.write_text("a" * 40)
    good.chmod(0o600)
    command = [program, "--token-file", good, "--driver", "libaipudrv.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "libaipudrv.so" in done.stderr  # no vendor's driver here
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    assert "--driver" in done.stdout


def test_a_named_library_of_the_driver(state_folder: Path) -> None:
    """Loaded by its name as a board's is; the simulator's engine is the one that the library knows."""
    library = board_folder() / "libcompass_runtime.so"
    with BoardServer(None, "--driver", str(library), "--key", "board", "--host", "127.0.0.2") as own:
        assert own.host == "127.0.0.2"
        with rpc.connect(own.host, own.port, key="board") as session:
            assert session.info["device"] == "simulator" and session.info["software"].startswith("compass-rpcd")
        with pytest.raises(rpc.RPCError, match="cannot find server that matches key=client:"):
            rpc.connect(own.host, own.port)


def test_what_a_device_prints_is_bounded(state_folder: Path, kernel: Path) -> None:
    with BoardServer(None, "--driver", str(flooding_driver())) as own:
        floods(own, kernel)  # type: ignore[arg-type]


def test_sizes_that_were_built_in_are_held_against_arrays(session: rpc.Session, kernel: Path, tmp_path: Path) -> None:
    sized = tmp_path / "aipu.bin"
    shapes = {name: (64,) for name in ("a", "b", "out")}
    run_build(Request(kernel=Path(__file__).with_name("remote_kernels.py"), entry="add", output=sized, shapes=shapes))
    for content in (kernel.read_bytes(), sized.read_bytes()):
        module = session.load_bytes(content)
        a, out = session.array(np.arange(64, dtype=np.int32)), session.empty((64,), "int32")
        module["add"](a, a, out, 64)
        assert (out.numpy() == 2 * np.arange(64)).all()
    wide = session.empty((65,), "int32")
    wrong = ((a, a, wide, 64), (a, a, 5, 64), (a, a, out, 1.5), (a, a, out, 1 << 40), (a, a, out), (a, a, out, a))
    for args in wrong:
        with pytest.raises(rpc.RPCError):
            module["add"](*args)
    module["add"](a, a, out, 1)


def test_what_servers_in_python_offer_is_there_or_refused_with_a_reason(session: rpc.Session, kernel: Path) -> None:
    from compass_runtime.rpc.service import _FUNCTIONS, NAMED

    for name in (name for name in _FUNCTIONS if not name.startswith(NAMED)):
        try:
            session.do(name)
        except RuntimeError as error:
            assert getattr(error, "code", "") != "no-function", name
    module = session.load_bytes(kernel.read_bytes())
    with pytest.raises(rpc.RPCError, match="single files"):
        module.import_module(session.load_bytes(kernel.read_bytes()))
    with pytest.raises(rpc.RPCError, match="calls no functions of its clients"):
        session.get_function("rpc.test.echo")(lambda: 1)
    with pytest.raises(AttributeError, match="no function 'rpc.test.call'"):
        session.get_function("rpc.test.call")


def test_folders_of_a_killed_server_go_with_the_next_one(state_folder: Path, tmp_path: Path) -> None:
    killed = BoardServer(None, "--folder", str(tmp_path))
    session = rpc.connect(killed.host, killed.port)
    session.upload(b"x", "f")
    killed.proc.kill()
    killed.terminate()
    assert len(list(tmp_path.iterdir())) == 1
    with BoardServer(None, "--folder", str(tmp_path)) as one, BoardServer(None, "--folder", str(tmp_path)) as other:
        eventually(lambda: len(list(tmp_path.iterdir())) == 2)
        with rpc.connect(one.host, one.port) as a, rpc.connect(other.host, other.port) as b:
            assert a.listdir() == b.listdir() == ""
    assert not list(tmp_path.iterdir())


def test_files_have_a_number(state_folder: Path) -> None:
    """One that is refused is not there."""
    own = BoardServer(None, "--folder", "/dev/shm")  # in memory: disks take their time for so many
    channel = known(own)  # type: ignore[arg-type]
    write = {"f": "file.write", "bodies": [0]}
    for first in range(0, 10_100, 100):
        for number in range(first, first + 100):
            channel.send(Kind.CALL, number, {**write, "v": [f"{number}", 0, {"$": "raw", "body": 0}]})
        kinds = {channel.receive().kind for _ in range(100)}
        assert kinds == {Kind.RESULT if first < 10_000 else Kind.ERROR}
    channel.send(Kind.CALL, 0, {"f": "file.names", "v": [""]})
    assert len(channel.receive().head["v"]) == 10_000
    channel.close()
    own.terminate()


def test_extents_are_held_against_arrays_where_the_client_has_the_program(session: rpc.Session) -> None:
    program = BuildManager("X2_1204").build(add)
    program.rpc_sess = session
    a, b, out = operands(100)
    with pytest.raises(RuntimeError, match="the kernel accesses 1000") as caught:
        program(a, b, out, 1000)
    assert getattr(caught.value, "code", "") == "tensor-size"
    program(a, b, out, 100)
    assert (out == a + b).all()


PLAIN = ("--flag", "-O0")
"""Of programs in whose linking all is: most of clang's time went into optimising what the other tests run optimised."""
HAS_LIBC = any(Path(folder, "crt1.o").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64"))


@pytest.mark.skipif(not HAS_LIBC, reason="this machine has no files for linking with its C library")
@pytest.mark.parametrize(
    "words", [("--static",), ("--triple", "x86_64-linux-gnu", "--sysroot", "/")], ids=("static", "sysroot")
)
def test_a_program_that_clang_links(
    state_folder: Path, compassc: Callable[..., Any], kernel: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """As for a board, whose sysroot is this machine's here; or without any shared library, the driver being part of it."""
    done = compassc("rpc-daemon", tmp_path / "board", *words, *PLAIN)
    assert done.status == 0, done.err
    static = "--static" in words
    with open(tmp_path / "board/compass-rpcd", "rb") as program:
        dynamic = ELFFile(program).get_section_by_name(".dynamic")
        assert any(tag.entry.d_tag == "DT_NEEDED" for tag in dynamic.iter_tags()) is not static
    options = () if static else ("--driver", str(library_path()))
    with BoardServer(None, *options, folder=tmp_path / "board") as own, rpc.connect(own.host, own.port) as session:
        module = session.load_bytes(kernel.read_bytes())
        a, out = session.array(np.arange(8, dtype=np.int32)), session.empty((8,), "int32")
        module["add"](a, a, out, 8)
        assert (out.numpy() == 2 * np.arange(8)).all()
    if static:
        command = [tmp_path / "board/compass-rpcd", "--token-file", access.default_file(), "--driver", "x.so"]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and "the driver is a part of this program" in refused.stderr


@pytest.mark.parametrize(
    ("words", "status", "why"),
    [
        (("--triple", "aarch64-linux-gnu"), 2, "given together"),
        (("--triple", "aarch64-linux-gnu", "--sysroot", ".", "--static"), 2, "needs --driver-archive"),
        (("--triple", "sparc-linux-gnu", "--sysroot", "."), 3, "makes no code for sparc-linux-gnu"),
        (("--triple", "x86_64-linux-gnu", "--sysroot", "EMPTY", *PLAIN), 3, "cannot be built for x86_64-linux-gnu"),
    ],
    ids=range(4),
)
def test_programs_that_cannot_be_linked(
    compassc: Callable[..., Any], tmp_path: Path, words: tuple[str, ...], status: int, why: str
) -> None:
    (tmp_path / "empty").mkdir()
    given = [str(tmp_path / "empty") if word == "EMPTY" else word for word in words]
    done = compassc("rpc-daemon", tmp_path / "board", *given)
    assert done.status == status and why in done.err
    assert not (tmp_path / "board/compass-rpcd").exists()


def test_nothing_is_built_for_a_folder_that_takes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []
    monkeypatch.setattr(board_server, "program", lambda: built.append(tmp_path) or library_path())
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(CompassError, match="cannot write"):
        board_server.write(tmp_path / "loop")
    assert not built


def test_the_sources_are_those_of_another_machine_too() -> None:
    """Their syntax and types: the clang of the wheel makes code for this machine alone."""
    from compass_core.hostcc.clang import find_clang
    from compass_runtime.board_server import compile_words

    done = subprocess.run(
        [
            str(find_clang(None).path),
            *compile_words("aarch64-linux-gnu"),
            *"-ffreestanding -nostdlibinc -Werror -fsyntax-only".split(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

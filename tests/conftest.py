"""Options of the whole test suite, what is left out of it, and running `compassc` inside the test process."""

from __future__ import annotations

import gc
import io
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest import logging, runner
from _pytest.assertion import rewrite
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.constants_ast import constants_from_module, is_local_module_file

from compass_core.confine import parent
from compass_core.hostcc import command
from tests.choosing import chosen
from tests.served import Loader, Served

# before NumPy is there: threads of these libraries wait in loops for each other, here beside another worker
for library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# on a loaded machine drawing takes long, which says nothing about the code
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

_ROOM = 1 << 16
"""Words of the interpreter's stack, 512 KiB, that each test has at once."""

_GARBAGE = 20_000_000
"""Objects in cycles, of 100 bytes or so each, that a process of tests may leave before it looks for them."""

_MEMORY, _ROOM_FOR_SCRATCH, _SCRATCH = "/dev/shm", 2 << 30, "compass-tests-"

USERS_OWN = ("COMPASS_TRACEBACK", "COMPASS_COLOR", "COMPASS_TARGET", "COMPASS_CACHE", "NO_COLOR")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite stored texts instead of comparing with them")
    parser.addoption("--whole", action="store_true", help="run also the cases that are left out else (make test-whole)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "whole: takes seconds; only with --whole")
    config.addinivalue_line(
        "markers", "sampled(every): of the cases one of so many, by a hash of their names; all with --whole"
    )
    # What lives during a test is mostly no garbage, and looked at each time. Of thousands of tests some leave cycles: those of a
    # whole run are some 20 million objects of two or three processes, which take longer to find than to keep.
    gc.set_threshold(_GARBAGE, 5, 5)


def pytest_sessionfinish() -> None:
    gc.freeze()  # what is left goes with the process


def _worker() -> tuple[int, int]:
    """The number of this process among those that run tests, and how many there are."""
    worker, workers = (os.environ.get(f"PYTEST_XDIST_WORKER{what}", "") for what in ("", "_COUNT"))
    return int(worker.removeprefix("gw") or 0), int(workers or 1)


def _share_rewriting(config: pytest.Config) -> None:
    """All workers import all modules of tests in the same order, whose `assert`s pytest rewrites. In a fresh checkout, where no
    file keeps what became of them, workers begin with different modules, and find in files what others have rewritten."""
    number, workers = _worker()
    if number == 0 or sys.dont_write_bytecode:
        return
    files = [path for given in config.args for path in sorted(Path(given.partition("::")[0]).rglob("test_*.py"))]
    for path in files[len(files) * number // workers :]:
        kept = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
        if not kept.exists() and rewrite.try_makedirs(kept.parent):
            source, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, kept)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """No garbage is looked for among the tests and what they import, which took a tenth of the suite's time."""
    gc.disable()
    try:
        _share_rewriting(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _share_reading(items: list[pytest.Item]) -> None:
    """Hypothesis is about to read the constants of all modules that are tested. In a fresh checkout, where no file keeps
    them, that takes 3 s or more: workers begin with different modules, and find in files what others have read."""
    number, workers = _worker()
    if number == 0 or not any(isinstance(i, pytest.Function) and is_hypothesis_test(i.obj) for i in items):
        return
    files = [(module, getattr(module, "__file__", None)) for module in list(sys.modules.values())]
    local = [module for module, file in files if file is not None and is_local_module_file(file)]
    for module in local[len(local) * number // workers :]:
        constants_from_module(module)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked so. Tests that look at all sources come first: so one worker alone parses them."""
    _share_reading(items)
    sources = sys.modules.get("tests.sources", items)
    items.sort(key=lambda item: getattr(getattr(item, "module", None), "sources", None) is not sources)
    if config.getoption("--whole"):
        return
    cases: dict[tuple[str, int], list[str]] = {}
    for item in items:
        if sampled := item.get_closest_marker("sampled"):
            cases.setdefault((item.nodeid.partition("[")[0], sampled.args[0]), []).append(item.nodeid)
    taken = {name for (_, every), names in cases.items() for name in chosen(names, every)}
    kept, left_out = [], []
    for item in items:
        out = item.get_closest_marker("sampled") and item.nodeid not in taken
        (left_out if out or item.get_closest_marker("whole") else kept).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def _with_one_report(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What pytest does, but of a test that passes the process that collects reports gets one, with the seconds of all phases, and
    of the last one alone that it is over: packing, sending and reading five messages took longer than many a test."""
    hook = item.ihook
    reports = runner.runtestprotocol(item, log=False, nextitem=nextitem)
    if len(reports) == 3 and all(report.passed for report in reports):
        _, call, _ = reports
        call.duration, reports = sum(report.duration for report in reports), [call]
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    if nextitem is None:
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _with_room(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    if _worker()[1] == 1:
        return runner.pytest_runtest_protocol(item, nextitem)
    _with_one_report(item, nextitem)
    return True


# Python takes 16 KiB from the system when its stack of frames has grown over the end of a piece, and gives them back at the
# return: loops that make calls just there took half of the kernel's time in tests of operators. Behind a large frame there is
# room for all that follow.
_with_room.__code__ = _with_room.__code__.replace(co_stacksize=_ROOM)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """What pytest does."""
    return _with_room(item, nextitem)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The seconds of each folder of tests, of all processes together, where several ran."""
    seconds: Counter[str] = Counter()
    for report in (r for reports in terminalreporter.stats.values() for r in reports):
        if isinstance(report, pytest.TestReport):
            seconds[Path(report.nodeid.partition("::")[0]).parent.name] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("seconds of folders")
        terminalreporter.line(", ".join(f"{folder} {took:.0f}" for folder, took in seconds.most_common()))


@contextmanager
def _own_state(folders: pytest.TempPathFactory) -> Iterator[None]:
    """Builds are remembered in a folder of the tests, not in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPASS_STATE_DIR", str(folders.mktemp("state")))
        yield


def _remove_left(before: float) -> None:
    """Removes what runs that were killed left in memory, of processes that are gone."""
    for folder in Path(_MEMORY).glob(f"{_SCRATCH}*-*"):
        with suppress(FileNotFoundError):  # another worker was quicker
            status = folder.stat()
            if status.st_uid != os.getuid() or status.st_mtime > before:
                continue
            if not Path("/proc", folder.name.split("-")[2]).exists():
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _scratch_in_memory(folders: pytest.TempPathFactory) -> Iterator[None]:
    """Files that do not last, as compiling leaves and removes them, lie in memory where programs may be and there is room: when
    a file is made, ext4 goes past all that were removed in the minutes before. Folders of tests stay on the disk."""
    folders.getbasetemp()
    status = os.statvfs(_MEMORY) if os.access(_MEMORY, os.W_OK) else None
    if status is None or status.f_flag & os.ST_NOEXEC or status.f_bavail * status.f_frsize < _ROOM_FOR_SCRATCH:
        yield
        return
    _remove_left(time.time() - 3600)
    prefix = f"{_SCRATCH}{os.getpid()}-"
    with (
        tempfile.TemporaryDirectory(prefix=prefix, dir=_MEMORY, ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@contextmanager
def _loaded_once(folders: pytest.TempPathFactory) -> Iterator[None]:
    """The kernels that tests compile and link in this process are compiled by one clang, also where it is confined, and linked by
    one linker."""
    program = Path(os.environ.get("COMPASS_CLANG") or Path(sys.prefix, "bin", "clang"))
    loader = Loader(program, folders.mktemp("served"))
    with pytest.MonkeyPatch.context() as patch:
        clang = Served(program, loader)
        patch.setattr(command, "run", clang.run)
        patch.setattr(parent, "_started", clang.confined)
        linker = Served(program.with_name("ld.lld"), loader)
        patch.setattr(command, "run", linker.run)
        yield
    linker.close()
    clang.close()


@pytest.fixture(scope="session", autouse=True)
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of all tests; one fixture, for each is asked for anew by every test."""
    with _own_state(tmp_path_factory), _scratch_in_memory(tmp_path_factory), _loaded_once(tmp_path_factory):
        yield


@pytest.fixture(scope="session")
def whole(pytestconfig: pytest.Config) -> bool:
    """Whether tests that draw values or cases themselves draw them all."""
    return bool(pytestconfig.getoption("--whole"))


@pytest.fixture
def caplog(request: pytest.FixtureRequest) -> Iterator[pytest.LogCaptureFixture]:
    """pytest's fixture of this name, whose plugin looks at the logs of all tests."""
    with logging.catching_logs(logging.LogCaptureHandler()) as handler:
        request.node.stash[logging.caplog_handler_key] = handler
        request.node.stash[logging.caplog_records_key] = {}
        fixture = pytest.LogCaptureFixture(request.node, _ispytest=True)
        yield fixture
        fixture._finalize()


@dataclass(frozen=True)
class Outcome:
    """Exit status, stdout and stderr of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def compassc(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Outcome]:
    """A function that runs `compassc ARGS...` in a fresh folder, with the user's switches out of sight."""
    from compassc.cli import errors
    from compassc.cli.main import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPASS_CONFIG", str(tmp_path / "no config"))
    for name in USERS_OWN:
        monkeypatch.delenv(name, raising=False)

    def run(*args: object, stdin: str = "") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capsys.readouterr()
        status = errors.run(cli, [str(arg) for arg in args])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run

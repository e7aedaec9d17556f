"""A program that runs confined: what it tries, and what comes of it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from compass_core import confine
from compass_core.confine import parent

LIMITS = confine.Limits()
TRIES = """
import ctypes, json, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
SECRET, FOLDER, PARENT = sys.argv[1:4]


def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "failed")


def opened(*arguments):
    os.close(os.open(*arguments))


TRIES = {
    "read a file": lambda: opened(SECRET, os.O_RDONLY),
    "read through /proc": lambda: opened("/proc/1/environ", os.O_RDONLY),
    "read a device": lambda: opened("/dev/zero", os.O_RDONLY),
    "list a folder": lambda: os.listdir(FOLDER),
    "make a file": lambda: opened(FOLDER + "/made", os.O_WRONLY | os.O_CREAT),
    "make a nameless file": lambda: opened(FOLDER, os.O_RDWR | os.O_TMPFILE),
    "write to a granted file": lambda: opened(__file__, os.O_WRONLY),
    "truncate by opening": lambda: opened(__file__, os.O_RDONLY | os.O_TRUNC),
    "truncate": lambda: os.truncate(__file__, 0),
    "remove": lambda: os.unlink(SECRET),
    "rename": lambda: os.rename(SECRET, SECRET + "2"),
    "link": lambda: os.link(SECRET, FOLDER + "/link"),
    "symlink": lambda: os.symlink(SECRET, FOLDER + "/link"),
    "make a folder": lambda: os.mkdir(FOLDER + "/folder"),
    "make a fifo": lambda: os.mkfifo(FOLDER + "/fifo"),
    "change a mode": lambda: os.chmod(SECRET, 0o777),
    "change an owner": lambda: os.chown(SECRET, os.getuid(), os.getgid()),
    "change times": lambda: os.utime(SECRET),
    "name a socket": lambda: socket.socket(socket.AF_UNIX),
    "open a connection": lambda: socket.socket(socket.AF_INET),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "make a pair of sockets": lambda: socket.socketpair(),
    "fork": lambda: os.fork() or os._exit(0),
    "vfork": lambda: call(58),
    "clone3": lambda: call(435, 0, 0),
    "signal its parent": lambda: os.kill(int(PARENT), 0),
    "signal all": lambda: os.kill(-1, 0),
    "trace its parent": lambda: call(101, 16, int(PARENT), 0, 0),
    "read the parent's memory": lambda: call(310, int(PARENT), 0, 0, 0, 0, 0),
    "memory file": lambda: os.memfd_create("x"),
    "namespaces": lambda: call(272, 0x10000000),
    "mount": lambda: call(165, b"none", FOLDER.encode(), b"tmpfs", 0, 0),
    "umount": lambda: call(166, b"/", 2),
    "chroot": lambda: os.chroot(FOLDER),
    "keys": lambda: call(250, 0, 0),
    "bpf": lambda: call(321, 0, 0, 0),
    "io_uring": lambda: call(425, 1, 0),
    "userfaultfd": lambda: call(323, 0),
    "raise a limit": lambda: __import__("resource").setrlimit(7, (1 << 20, 1 << 20)),
    "live on without its parent": lambda: call(157, 1, 0, 0, 0, 0),
    "be dumped": lambda: call(157, 4, 1, 0, 0, 0),
    "a terminal's input": lambda: call(16, 0, 0x5412, b"x"),
    "run another program": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 0"]),
    "32-bit calls": lambda: call(0x40000000 | 2, SECRET.encode(), 0),
}
results = {}
for name, attempt in TRIES.items():
    try:
        attempt()
        results[name] = "done"
    except (OSError, ValueError) as error:
        results[name] = type(error).__name__
print(json.dumps(results))
"""


@pytest.fixture(params=confine.MEANS)
def means(request, monkeypatch):
    if not confine.available((request.param,)):
        pytest.skip(f"this host has no {request.param}")
    monkeypatch.setattr(parent, "MEANS", (request.param,))
    return request.param


@pytest.fixture
def python(means):
    """A function that runs a Python program confined; it may read Python and what is named."""
    program = Path(sys.executable).resolve()
    system = [Path(name) for name in ("/usr", "/lib", "/lib64", sys.base_prefix) if Path(name).is_dir()]
    linkers = [path for path in map(Path, ("/lib64/ld-linux-x86-64.so.2",)) if path.exists()]

    def run(script, *words, limits=LIMITS, data=b""):
        permissions = confine.Permissions((script,), tuple(system), (program, *linkers))
        return confine.run([str(program), "-I", "-S", "-B", str(script), *words], data, permissions, limits)

    return run


def test_nothing_can_be_done_but_to_compute(python, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    script = tmp_path / "tries.py"
    script.write_text(TRIES)
    before = (folder / "secret").stat()
    done = python(script, str(folder / "secret"), str(folder), str(os.getpid()))
    assert done.status == 0, done.messages
    results = json.loads(done.output)
    assert len(results) > 40 and [name for name, result in results.items() if result == "done"] == []
    assert script.read_text() == TRIES and os.listdir(folder) == ["secret"]
    assert (folder / "secret").stat()[:9] == before[:9]


@pytest.mark.parametrize(
    ("text", "limits", "excess"),
    [
        ("while True: pass", {"seconds": 0.5}, "it took more than 0.5 seconds"),
        ("import time; time.sleep(100)", {"seconds": 0.5}, "it took more than 0.5 seconds"),
        ("import os; os.close(1); os.close(2)\nwhile True: pass", {"seconds": 0.5}, "it took more than 0.5 seconds"),
        ("while True: print('x' * 1000)", {"output": 1 << 20}, "it wrote more than 1 MiB"),
        (
            "import sys\nwhile True: sys.stderr.write('x' * 1000)",
            {"messages": 1 << 20},
            "it wrote more than 1 MiB of messages",
        ),
        ("x = bytes(2 << 30)", {"memory": 1 << 30}, ""),
    ],
)
def test_limits_hold(python, tmp_path, text, limits, excess):
    script = tmp_path / "script.py"
    script.write_text(text)
    begin = time.monotonic()
    done = python(script, limits=confine.Limits(**limits))
    assert (done.excess == excess or done.status == -9) and done.status != 0
    assert time.monotonic() - begin < 20


def test_it_has_its_input_and_nothing_else_of_ours(python, tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    inherited = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "def there(fd):\n    try:\n        return bool(os.fstat(fd))\n    except OSError:\n        return False\n"
        "print(sys.stdin.read(), dict(os.environ), [fd for fd in range(100) if there(fd)], os.getcwd())\n"
    )
    done = python(script, data=b"hello")
    os.close(inherited)
    assert done.output.startswith(b"hello {") and b"SECRET" not in done.output
    assert done.output.endswith(b"[0, 1, 2] /\n")


def test_unknown_means_are_none(monkeypatch):
    monkeypatch.setattr(parent, "MEANS", ("magic",))
    with pytest.raises(confine.NotConfined) as caught:
        confine.run(["/bin/true"], b"", confine.Permissions())
    assert "magic: no such means" in caught.value.notes[0].message

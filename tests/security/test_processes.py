"""The processes of `--jobs`: nobody else reaches them, and nothing in the current folder runs in them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import compassc
from compassc.cluster import open_cluster

TABLES = ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")


def sockets(shared: None, part: object) -> set[str]:
    """The inodes of the sockets of this process."""
    links = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if alive(name)]
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def alive(descriptor: str) -> bool:
    """Whether a descriptor of this process is still open: that of the list is not."""
    return os.path.lexists(f"/proc/self/fd/{descriptor}")


def with_an_address() -> set[str]:
    """The sockets, by inode, that others can reach by an address or by a name in the file system."""
    found = set()
    for table in TABLES:
        lines = Path("/proc/net", table).read_text().splitlines()[1:]
        found |= {line.split()[9] for line in lines}
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        found |= {words[6]} if len(words) > 7 else set()
    return found


def test_no_socket_of_a_process_has_an_address() -> None:
    """Neither a port, nor a path, here or in the processes."""
    before = sockets(None, None)
    with socket.create_server(("127.0.0.1", 0)) as server:  # so that it is known that one would be found
        assert str(os.stat(server.fileno()).st_ino) in with_an_address()
    with open_cluster(2) as cluster:
        theirs = [inodes for _, inodes in cluster.run(sockets, None, range(4))]
        ours = sockets(None, None) - before
        assert ours and all(theirs)
        assert not with_an_address() & ours.union(*theirs)


PROGRAM = """
import sys
from compassc.cluster import open_cluster
from operator import add
with open_cluster(2) as cluster:
    print(sorted(cluster.run(add, 1, range(3))))
"""


@pytest.mark.parametrize("how", ["a program", "the current folder is where modules are"])
def test_modules_in_the_current_folder_are_not_run(tmp_path: Path, how: str) -> None:
    """Of any name that Python, NumPy and this package import."""
    folder, home = tmp_path / "models", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    script = home / "program.py"
    start = "import os, sys\nsys.path.append('')\n" if how.startswith("the") else "import os\n"
    script.write_text(f"{start}{PROGRAM.replace('import sys', f'os.chdir({str(folder)!r})')}")
    for name in filter(
        find_spec, [*sys.stdlib_module_names, "numpy", "compassc", "compass_core", "distributed", "yaml"]
    ):
        (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r} + ' ')\n")
    tree = Path(compassc.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[(0, 1), (1, 2), (2, 3)]", done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()

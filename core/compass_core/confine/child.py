"""The process that confines itself and then becomes a program: `python -I -S -B child.py WORD... [-- COMMAND...]`.

The words are of the form NAME=VALUE: `means` by which files are kept away, `parent` that must be alive, `seconds` and
bytes of `memory`, and any number of each `file`, `folder` and `program` that may be read and each `variable` of the
program's environment. Exit status REFUSED and a line on stderr tell that the host does not offer the means. Without a
command nothing runs: a probe.

It imports nothing of this project, for it runs without its packages, and little else, for that takes time.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

REFUSED = 121
"""Exit status: this host cannot confine a process by these means."""

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The host does not offer a means."""


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    return result


def _word(value: int) -> ctypes.c_ulong:
    return ctypes.c_ulong(value)


# ------------------------------------------------------------------------------------------- the parent, and limits

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 38, 22
_SIGKILL = 9


def _prctl(option: int, value: int, what: str) -> None:
    _checked(_libc.prctl(option, _word(value), _word(0), _word(0), _word(0)), what)


def end_with(parent: int) -> None:
    """SIGKILL for this process when the thread that started it ends; at once when it already did."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL, "the signal at the parent's end")
    if os.getppid() != parent:
        os._exit(1)


def limit(seconds: int, memory: int) -> None:
    """Processor time and address space; no files, no core dumps, few descriptors."""
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 128),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


# ------------------------------------------------------------------------------------------------------- system calls

_ARCHITECTURE = 0xC000003E  # x86-64
_ALLOW, _NO_SUCH_CALL, _NOT_PERMITTED = 0x7FFF0000, 0x00050000 | 38, 0x00050000 | 1  # ENOSYS, EPERM
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | 0x400000
"""Flags of `open` with which a file is made or changed; the last is O_TMPFILE's own."""
_THREAD = 0x10000  # CLONE_THREAD
_ANY_CALLS = (
    (0, 1, 3, 8, 17, 19, 20)  # read, write, close, lseek, pread64, readv, writev
    + (4, 5, 6, 21, 262, 269, 332, 439)  # stat, fstat, lstat, access, newfstatat, faccessat, statx, faccessat2
    + (79, 89, 267, 217)  # getcwd, readlink, readlinkat, getdents64
    + (9, 10, 11, 12, 25, 28)  # mmap, mprotect, munmap, brk, mremap, madvise
    + (13, 14, 15, 131)  # rt_sigaction, rt_sigprocmask, rt_sigreturn, sigaltstack
    + (24, 35, 202, 230, 186, 204, 218, 273, 334)  # of threads: sched_yield, nanosleep, futex, gettid, ...
    + (39, 63, 96, 97, 98, 99, 102, 104, 107, 108, 201, 228, 229)  # who and when: getpid, uname, gettimeofday, ...
    + (59,)  # execve: the program itself
    + (60, 231, 318, 158)  # exit, exit_group, getrandom, arch_prctl
)
_OPEN, _OPENAT, _CLONE, _PRLIMIT, _FCNTL, _IOCTL = 2, 257, 56, 302, 72, 16
_F_GETFD, _FIOCLEX = 1, 0x5451


def _steps(*steps: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def _when(call: int, argument: int, condition: tuple[int, int], met: int, else_: int) -> bytes:
    """Verdicts for a call by the low word of an argument. The call's number is in the accumulator."""
    return _steps(
        (_EQUAL, 0, 4, call),
        (_LOAD, 0, 0, 16 + 8 * argument),
        (condition[0], 0, 1, condition[1]),
        (_RETURN, 0, 0, met),
        (_RETURN, 0, 0, else_),
    )


def call_filter() -> bytes:
    """The program of the filter. A call that is not listed does not exist, as on an older system."""
    program = _steps(
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCHITECTURE),
        (_RETURN, 0, 0, _NO_SUCH_CALL),
        (_LOAD, 0, 0, 0),
    )
    for call in _ANY_CALLS:
        program += _steps((_EQUAL, 0, 1, call), (_RETURN, 0, 0, _ALLOW))
    program += _when(_OPEN, 1, (_ANY_BIT, _WRITING), _NOT_PERMITTED, _ALLOW)
    program += _when(_OPENAT, 2, (_ANY_BIT, _WRITING), _NOT_PERMITTED, _ALLOW)
    program += _when(_FCNTL, 1, (_EQUAL, _F_GETFD), _ALLOW, _NOT_PERMITTED)
    program += _when(_IOCTL, 1, (_EQUAL, _FIOCLEX), _ALLOW, _NOT_PERMITTED)
    program += _when(_CLONE, 0, (_ANY_BIT, _THREAD), _ALLOW, _NOT_PERMITTED)
    program += _steps(  # prlimit64 to ask: no new limit, in both halves of its address
        (_EQUAL, 0, 6, _PRLIMIT),
        (_LOAD, 0, 0, 32),
        (_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, 36),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _NOT_PERMITTED),
    )
    return program + _steps((_RETURN, 0, 0, _NO_SUCH_CALL))


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def filter_calls() -> None:
    """Allows the system calls of a compiler that only reads, from here on."""
    if struct.calcsize("P") != 8 or os.uname().machine != "x86_64":
        raise Refused(f"no list of system calls for {os.uname().machine}")
    program = call_filter()
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "no new privileges")
    filter = _Program(len(program) // 8, program)
    _checked(_libc.prctl(_PR_SET_SECCOMP, _word(2), ctypes.byref(filter)), "the filter of system calls")


# ----------------------------------------------------------------------------------------------------------- Landlock

_EXECUTE, _READ_FILE, _READ_FOLDER = 1, 4, 8
_CREATE_RULES, _ADD_RULE, _RESTRICT = 444, 445, 446
_FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""All access rights of each version of the interface; newer versions have at least the last ones."""


def ruleset(files: Sequence[str], folders: Sequence[str], programs: Sequence[str]) -> int:
    """A descriptor of rules by which only the named can be opened, only to be read, and of all programs only the named run."""
    version = _checked(_call(_CREATE_RULES, None, _word(0), ctypes.c_uint(1)), "Landlock")
    rights = _FILE_RIGHTS[min(version, max(_FILE_RIGHTS))]
    handled = struct.pack("<QQQ", rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = _checked(_call(_CREATE_RULES, handled, _word(size), ctypes.c_uint(0)), "Landlock's rules")
    for paths, granted in (
        (files, _READ_FILE),
        (programs, _READ_FILE | _EXECUTE),
        (folders, _READ_FILE | _READ_FOLDER),
    ):
        for path in paths:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("<Qi", granted, place)
            _checked(
                _call(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(1), rule, ctypes.c_uint(0)), f"a rule of {path}"
            )
            os.close(place)
    return rules


def landlock(files: Sequence[str], folders: Sequence[str], programs: Sequence[str]) -> None:
    """Makes the rules on these those of this process."""
    rules = ruleset(files, folders, programs)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "no new privileges")
    _checked(_call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint(0)), "Landlock's restriction")
    os.close(rules)


# --------------------------------------------------------------------------------------------------------- namespaces

_NEW_SPACES = 0x00020000 | 0x08000000 | 0x10000000 | 0x40000000  # mount, IPC, user, network
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_PIVOT_ROOT, _DETACH = 155, 2
_NOBODY = 65534
_STAGE = "/tmp"
"""Where the new root is assembled, in a separate mount namespace."""


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    done = _libc.mount(source.encode(), target.encode(), kind.encode(), _word(flags), data.encode() or None)
    _checked(done, f"mounting {target}")


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None


def namespace(files: Sequence[str], folders: Sequence[str], programs: Sequence[str]) -> None:
    """A read-only root folder with only the granted paths in it; no network; an unprivileged user."""
    user, group = os.getuid(), os.getgid()
    _checked(_libc.unshare(_NEW_SPACES), "namespaces")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/gid_map", f"{_NOBODY} {group} 1")
    _write("/proc/self/uid_map", f"{_NOBODY} {user} 1")
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    sources = {path: os.open(path, os.O_PATH) for path in (*files, *folders, *programs)}
    _mount("none", _STAGE, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    for path, place in sources.items():
        target = _STAGE + path
        if path in folders:
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_RDONLY))
        _mount(f"/proc/self/fd/{place}", target, "", _MS_BIND | _MS_REC)
        os.close(place)
    _mount("none", _STAGE, "", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    os.chdir(_STAGE)
    _checked(_call(_PIVOT_ROOT, b".", b"."), "changing the root folder")
    _checked(_libc.umount2(b".", _DETACH), "leaving the old root folder")
    os.chdir("/")


# --------------------------------------------------------------------------------------------------------------- main


class Order:
    """The parsed command line."""

    def __init__(self, words: Sequence[str]) -> None:
        self.values: dict[str, list[str]] = {}
        end = words.index("--") if "--" in words else len(words)
        for word in words[:end]:
            name, _, value = word.partition("=")
            self.values.setdefault(name, []).append(value)
        self.command = list(words[end + 1 :])

    def all(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def number(self, name: str) -> int:
        return int(self.values[name][0])


def confine(order: Order) -> None:
    """All that an order says, up to the program itself."""
    end_with(order.number("parent"))
    means = order.values["means"][0]
    grants = order.all("file"), order.all("folder"), order.all("program")
    os.chdir("/")
    if means == "namespace":
        namespace(*grants)  # it makes files, so limits come later
    limit(order.number("seconds"), order.number("memory"))
    if means == "landlock":
        landlock(*grants)
    if means in ("landlock", "namespace"):
        filter_calls()
    elif means != "none":
        raise Refused("no such means")


def main(words: Sequence[str]) -> int:
    """Confines this process and becomes the program."""
    order = Order(words)
    try:
        confine(order)
    except (Refused, OSError) as error:
        os.write(2, f"{error}\n".encode())
        return REFUSED
    if not order.command:
        return 0
    try:
        os.execve(order.command[0], order.command, dict(v.split("=", 1) for v in order.all("variable")))
    except OSError as error:
        os.write(2, f"{order.command[0]}: {error.strerror}\n".encode())
    return REFUSED


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))

"""The server: it listens, and gives every client a process of its own.

This process reads nothing that strangers send. A connection that is accepted goes to a child at once, which greets the client;
one that is known waits in the child for its turn, until fewer sessions run than may. This process watches the children: their
times, their ends, and the folders that they leave behind.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import selectors
import shutil
import signal
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime.packed import list_global_func_names
from compass_runtime.rpc import access, hops
from compass_runtime.rpc.access import Token
from compass_runtime.rpc.channel import Channel, Greeted, tuned
from compass_runtime.rpc.connections import listening
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.limits import Quota, allow_files, of_the_busiest
from compass_runtime.rpc.link import TrackerLink
from compass_runtime.rpc.proxy_link import ProxyLink
from compass_runtime.rpc.roots import Root
from compass_runtime.rpc.wire import Kind

if TYPE_CHECKING:
    from compass_runtime.vendor_driver import VendorDriver

LOG = logging.getLogger("RPCServer")
PREFIX = "compass-rpc-"
"""Of the folder that has those of its sessions."""
SWEEP_SECONDS = 0.5
_REST_SECONDS = 0.05
"""So long nobody is let in after the system had no file for a connection."""
HARD_SECONDS = 2.0
"""So much later than a call or session should have ended the process is killed."""
_GO, _NO, _FULL = b"go", b"no", b"full"
WAITING_EACH = 4
"""Clients that wait for their turn, for each stranger that there may be."""
MOST_SECONDS = 365 * 24 * 3600.0
"""The end of a session for which a client asks, where the server sets none: times beyond it are no times any more."""


@dataclass(frozen=True)
class Offer:
    """What a server offers, and to whom. `tracker`: where it registers, under `key`; `announced`: the address that it tells the
    tracker, when clients reach it by another one; `offered`: names of global functions that clients may call; `driver`: the
    library of a driver (libaipudrv.so) that runs programs, in the place of the simulator; `proxied`: `host` and
    `port` are a proxy, to which it connects, and it does not listen."""

    host: str = "127.0.0.1"
    port: int = 9090
    port_end: int = 9199
    key: str = ""
    tracker: tuple[str, int] | None = None
    announced: str | None = None
    reuse: bool = True
    quota: Quota = field(default_factory=Quota)
    token_file: Path | None = None
    certificate: Path | None = None
    private_key: Path | None = None
    ca: Path | None = None
    offered: frozenset[str] = frozenset()
    driver: str | None = None
    proxied: bool = False


class _Child:
    """A process with one client. `session`: it has its turn; `clock`: shared memory, in which it says when its call has to be
    over."""

    def __init__(
        self, pid: int, control: socket.socket, clock: mmap.mmap, address: object, folder: Path, greeting: float
    ) -> None:
        self.pid, self.control, self.clock, self.address, self.folder = pid, control, clock, address, folder
        self.proxied = False
        self.began = time.monotonic()
        self.end = self.began + greeting + HARD_SECONDS
        self.state = "stranger"
        self.seconds = 0.0
        try:
            self.pidfd = os.pidfd_open(pid)
        except OSError:  # no file is left to watch it with
            self.kill()
            os.waitpid(pid, 0)
            raise

    @property
    def host(self) -> str:
        """Where the client is, as far as is known: many that came by one proxy are one."""
        return self.address[0] if isinstance(self.address, tuple) else str(self.address)

    def late(self, now: float) -> bool:
        """Whether it should have ended."""
        (call,) = struct.unpack_from("<d", self.clock, 0)
        return now > self.end or (call > 0 and now > call + HARD_SECONDS)

    def kill(self) -> None:
        """Ends it, and all that it started."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        os.close(self.pidfd)
        self.control.close()
        self.clock.close()


class Server:
    """One listening socket, and the processes of its clients."""

    def __init__(self, offer: Offer) -> None:
        """CompassError where it may not listen there, ValueError where no port is free."""
        self.offer = offer
        self.tokens = access.tokens_of(offer.token_file, make=True)
        self._driver = _driver(offer.driver)
        self._tls = access.server_context(offer.host, offer.certificate, offer.private_key)
        self.listener = None if offer.proxied else listening(offer.host, offer.port, offer.port_end, offer.reuse)
        if self.listener is not None:
            self.listener.setblocking(False)
        self.port: int = offer.port if self.listener is None else self.listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._accepting = False
        self._children: dict[int, _Child] = {}
        self._waiting: deque[_Child] = deque()
        self._root = Root(PREFIX)
        self.stopped = False

        self.link = TrackerLink(offer, self.port) if offer.tracker is not None else None
        self.proxy = ProxyLink(offer, self.take_channel) if offer.proxied else None

    # -- the loop

    def run(self) -> None:
        """Serves until `stop`, or a signal that ends the process."""
        LOG.info("%s %s:%d", "by the proxy" if self.offer.proxied else "bind to", self.offer.host, self.port)
        try:
            while not self.stopped:
                self._handle(self._sweep)  # first of all: a server that registers somewhere does so at once
                self._accept_or_not()
                for key, _ in self._selector.select(SWEEP_SECONDS):
                    self._handle(key.data)
        finally:
            self.close()

    @staticmethod
    def _handle(event: Callable[[], object]) -> None:
        """What goes wrong with one connection, where the system has no more files or processes, ends no other one."""
        try:
            event()
        except OSError:
            LOG.exception("a connection was lost")

    def stop(self, *_: object) -> None:
        self.stopped = True

    def watch(self, descriptor: int) -> None:
        """Stops when there is something to read, or the end."""
        self._selector.register(descriptor, selectors.EVENT_READ, self.stop)

    def close(self) -> None:
        """Ends all sessions, and the socket."""
        for held in (self.listener, self.link, self.proxy):
            if held is not None:
                held.close()
        for child in list(self._children.values()):
            child.kill()
            self._gone(child)
        self._selector.close()
        self._root.remove()

    def _accept_or_not(self) -> None:
        """Strangers beyond the limit wait in the system's queue. Those that are known do not count: their row has an end of its own."""
        if self.listener is None:
            return
        strangers = sum(child.state == "stranger" for child in self._children.values())
        wanted = strangers < self.offer.quota.strangers
        if wanted != self._accepting:
            self._accepting = wanted
            if wanted:
                self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
            else:
                self._selector.unregister(self.listener)

    def _accept(self) -> None:
        assert self.listener is not None
        try:
            sock, address = self.listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # there is no file for it, or it went at once
            LOG.warning("a connection was lost: %s", error)
            time.sleep(_REST_SECONDS)
            return
        self.take(sock, address)

    def take_channel(self, channel: Channel) -> None:
        """Gives a connection to the proxy, at whose other end a client is, a process."""
        self.take(channel.sock, channel.where, channel)

    def take(self, sock: socket.socket, address: object, channel: Channel | None = None) -> None:
        """Gives a connection a process. `channel`: the proxy's, of whose bytes some may have been read."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        clock = mmap.mmap(-1, mmap.PAGESIZE)
        folder = self._root.path / f"{time.monotonic_ns()}"
        try:
            pid = os.fork()
        except OSError as error:
            LOG.error("no process for %s: %s", address, error)
            for held in (sock, ours, theirs, clock):
                held.close()
            return
        if pid == 0:
            self._in_child(channel or sock, theirs, ours, clock, address, folder)
        sock.close()
        theirs.close()
        child = _Child(pid, ours, clock, address, folder, self.offer.quota.greeting_seconds)
        child.proxied = channel is not None
        self._children[pid] = child
        self._selector.register(child.pidfd, selectors.EVENT_READ, lambda: self._gone(child))
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._said(child))

    def _said(self, child: _Child) -> None:
        """A client proved that he is known."""
        if self._children.get(child.pid) is not child:  # its end was told at the same time, and came first
            return
        try:
            data = child.control.recv(8192)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(child.control)
            return
        said = json.loads(data)
        child.seconds = said["seconds"]
        if not (child.proxied or self._admits(said["key"])):  # a proxy brings those of this key alone
            LOG.info("mismatch key from %s", child.address)
            child.control.send(_NO)
            return
        child.state, child.end = "waiting", float("inf")
        self._waiting.append(child)
        if len(self._waiting) > WAITING_EACH * self.offer.quota.strangers:
            self._send_away(of_the_busiest(self._waiting, lambda one: one.host)[-1])
        self._next()

    def _send_away(self, child: _Child) -> None:
        """Takes one out of the row, where there is no room for him. He has no more time than a stranger then, and counts as one."""
        self._waiting.remove(child)
        child.state, child.end = "stranger", time.monotonic() + HARD_SECONDS
        with contextlib.suppress(OSError):
            child.control.send(_FULL)

    def _admits(self, key: str) -> bool:
        return self.link.claimed(key) if self.link is not None else key == self.offer.key

    def _next(self) -> None:
        """Lets clients in, as long as there is room."""
        running = sum(child.state == "session" for child in self._children.values())
        while self._waiting and running < self.offer.quota.sessions:
            child = self._waiting.popleft()
            child.state, running = "session", running + 1
            child.end = time.monotonic() + child.seconds + HARD_SECONDS if child.seconds else float("inf")
            LOG.info("connected from %s", child.address)
            with contextlib.suppress(OSError):
                child.control.send(_GO)

    def _gone(self, child: _Child) -> None:
        """A child has ended."""
        _, status = os.waitpid(child.pid, 0)
        child.kill()
        for known in (child.pidfd, child.control):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(known)
        del self._children[child.pid]
        if child in self._waiting:
            self._waiting.remove(child)
        if child.state == "session":
            if not self.stopped:
                self._remove(child.folder)
            how = f", by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""
            LOG.info("finish serving %s%s", child.address, how)
        child.close()
        self._next()

    def _remove(self, folder: Path) -> None:
        """Deletes the folder of a session in a process of its own: other clients do not wait for a disk."""
        try:
            pid = os.fork()
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            return
        if pid == 0:
            try:
                self._leave_parent()
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os._exit(0)
        pidfd = os.pidfd_open(pid)

        def ended() -> None:
            self._selector.unregister(pidfd)
            os.close(pidfd)
            os.waitpid(pid, 0)

        self._selector.register(pidfd, selectors.EVENT_READ, ended)

    def _sweep(self) -> None:
        now = time.monotonic()
        for child in list(self._children.values()):
            if child.late(now):
                if child.state == "session":
                    LOG.warning("timeout in RPC session, kill.. %s", child.address)
                child.kill()
        if self.link is not None:
            busy = sum(child.state in ("session", "waiting") for child in self._children.values())
            self.link.step(now, self.offer.quota.sessions - busy, self._selector)
        if self.proxy is not None:
            self.proxy.step(now, self.offer.quota.sessions - len(self._children), self._selector)

    # -- the child

    def _leave_parent(self) -> None:
        """In a forked process: lets go of what only the parent uses, and ends with it."""
        os.setsid()
        _die_with_parent()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        self._root.leave()
        if self.listener is not None:
            self.listener.close()
        for child in self._children.values():  # the times and ends of others are not this one's
            child.close()
        for link in (self.link, self.proxy):
            if link is not None:
                link.drop()

    def _in_child(
        self,
        sock: socket.socket | Channel,
        control: socket.socket,
        parents: socket.socket,
        clock: mmap.mmap,
        address: object,
        folder: Path,
    ) -> NoReturn:
        status = 1
        try:
            self._leave_parent()
            parents.close()
            serve(sock, self.tokens, self.offer, self._tls, address, control, clock, folder, self._driver)
            status = 0
        except RPCError as error:
            if error.code not in ("rpc-lost",):
                LOG.info("%s: %s", address, error.message)
        except BaseException:
            LOG.exception("%s: the session failed", address)
        finally:
            logging.shutdown()
            os._exit(status)


def load(libraries: Sequence[str]) -> None:
    """Loads shared libraries, whose functions all that follow may use. CompassError for one that cannot be loaded."""
    import ctypes

    for library in libraries:
        try:
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise CompassError(f"the library '{library}' cannot be loaded: {error}", code="rpc-call") from None


def _driver(library: str | None) -> VendorDriver | None:
    """The driver that is named. Its library is loaded here, and opens its device in the process of each client."""
    from compass_runtime.vendor_driver import VendorDriver

    return None if library is None else VendorDriver(library)


def _die_with_parent() -> None:
    """The system ends this process with the one that started it."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def serve(
    sock: socket.socket | Channel,
    tokens: Sequence[Token],
    offer: Offer,
    tls: ssl.SSLContext | None,
    address: object,
    control: socket.socket,
    clock: mmap.mmap,
    folder: Path,
    driver: VendorDriver | None,
) -> None:
    """One connection, from the greeting to its end."""
    quota = offer.quota
    channel = sock if isinstance(sock, Channel) else _accepted(sock, tls, address, quota)
    greeted = greet_client(channel, tokens, quota.greeting_seconds)
    wanted = greeted.hello.get("session_timeout", 0)
    seconds = quota.session_seconds
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool) and wanted > 0:
        seconds = min(seconds or MOST_SECONDS, wanted)
    key = greeted.hello.get("key", "")
    # Not escaped, it is no longer than the greeting that brought it, and fits into what the parent reads at once.
    told = json.dumps({"key": key if isinstance(key, str) else "", "seconds": seconds}, ensure_ascii=False)
    control.send(told.encode(errors="replace"))
    control.settimeout(0.05)
    while True:
        try:
            answer = control.recv(16)
            break
        except TimeoutError:  # others have their turn
            hops.still_waits(channel)
            control.settimeout(1.0)
    if answer != _GO:
        full = "too many wait for this server", "rpc-quota"
        channel.refuse(*(full if answer == _FULL else (f"cannot find server that matches key=client:{key}", "rpc-key")))
        return
    assert greeted.token is not None
    try:
        other = hops.hop(greeted.hello.get("constructor"), offer, greeted.token, seconds, channel)
    except RPCError as error:
        channel.refuse(error.message, error.code)
        return
    channel.send(Kind.WELCOME, 0, greeted.welcome(seconds=seconds))
    channel.greeting = False
    if other is not None:
        hops.relay(channel, other)
        return

    from compass_runtime.rpc import service

    folder.mkdir(mode=0o700)
    os.chdir(folder)
    service.confine(quota)
    session = service.Service(channel, folder, quota, greeted.token, seconds, offer.offered, driver)
    session.note_deadline = lambda end: struct.pack_into("<d", clock, 0, end if end != float("inf") else 0)
    LOG.info("start serving at %s", folder)
    session.serve()


def _accepted(sock: socket.socket, tls: ssl.SSLContext | None, address: object, quota: Quota) -> Channel:
    """The channel of a connection that was accepted."""
    tuned(sock)
    if tls is not None:
        sock.settimeout(quota.greeting_seconds)
        try:
            sock = tls.wrap_socket(sock, server_side=True)
        except OSError as error:
            raise RPCError(f"no TLS: {error}", code="rpc-lost") from None
    return Channel(sock, str(address), quota.stall_seconds)


def greet_client(channel: Channel, tokens: Sequence[Token], seconds: float) -> Greeted:
    """The greeting of a client; RPCError, said to him too, where he does not prove that he knows a token."""
    end = time.monotonic() + seconds
    greeted = Greeted(tokens, {})
    try:
        channel.begin(seconds)
        while greeted.token is None:
            frame = channel.receive(max(end - time.monotonic(), 0.001))
            if (challenge := greeted.answer(frame)) is not None:
                channel.send(Kind.CHALLENGE, 0, challenge)
    except RPCError as error:
        if error.code in ("rpc-refused", "rpc-protocol"):
            with contextlib.suppress(RPCError):
                channel.refuse(error.message, error.code)
        channel.close()
        raise
    return greeted


def preload() -> None:
    """Imports what sessions need, so that each one finds it there."""
    import encodings.ascii  # noqa: F401
    import hmac
    import resource  # noqa: F401
    import secrets

    import numpy  # noqa: F401

    from compass_runtime import compass_module, host_module, ndarray, timing, vendor_driver  # noqa: F401
    from compass_runtime.rpc import service, testing  # noqa: F401
    from compass_sim import worker  # noqa: F401

    hmac.digest(secrets.token_bytes(8), b"", "sha256")


def main(offer: Offer, ready: Callable[[Server], object], callback: Callable[[], object] | None = None) -> None:
    """Runs a server in this process until SIGINT or SIGTERM. `callback` may register global functions, which clients may then
    call; `ready` is told when the server listens."""
    from compass_runtime.rpc.testing import PREFIX

    preload()
    before = set(list_global_func_names())
    if callback is not None:
        callback()
    offered = {name for name in list_global_func_names() if name not in before or name.startswith(PREFIX)}
    from dataclasses import replace

    allow_files()
    server = Server(replace(offer, offered=offer.offered | offered))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.stop)
    try:
        ready(server)
    except BaseException:
        server.close()
        raise
    server.run()

"""The program of a process that does parts: `python worker.py SOCKET FOLDER...`.

The folders are where it finds modules. Until it knows them it imports nothing but `sys`.
"""

import sys

from compassc.cluster import call


def main(descriptor: int) -> None:
    """Does parts as they come over the socket, until its other end is closed."""
    import os
    import signal
    from contextlib import suppress
    from multiprocessing.connection import Connection

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all of a command's processes; the first one ends us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def end(*_: object) -> None:
        """Ends the process, so that what is temporary is removed; once, also where it comes just before it is ignored below."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    os.set_inheritable(descriptor, False)
    shared = b""
    try:
        with Connection(descriptor) as link, suppress(EOFError, BrokenPipeError, ConnectionResetError):
            while True:
                other, part = link.recv()
                shared = shared if other is None else other
                link.send_bytes(_answer(shared, part))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends: an exception in the middle of that would be shown


def _answer(shared: bytes, part: bytes) -> bytes:
    """The answer for a part: a kind, what belongs to it, and the place of what was raised."""
    import pickle
    import traceback

    answer: tuple[str, object, str]
    try:
        wanted, function, given = pickle.loads(part)
        common = pickle.loads(shared)
    except (ImportError, AttributeError) as error:
        return pickle.dumps(("unknown", str(error), ""))
    try:
        answer = (*call(wanted, function, common, given), "")
    except Exception as error:  # noqa: BLE001 (it is raised where the part came from)
        answer = "raised", error, traceback.format_exc()
    try:
        return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return pickle.dumps(("unknown", str(error), ""))


if __name__ == "__main__":
    found, *sys.path = sys.argv[1:]
    main(int(found))

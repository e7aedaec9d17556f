"""The program of a server or tracker that another program started: `python process.py ROLE OPTIONS FOLDER...`.

The folders are where it finds modules. It says on stdout where it listens, and ends when its stdin does.
"""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # until it knows its folders it imports what is built in alone
    from collections.abc import Callable
    from typing import Any, TextIO

    from compass_runtime.rpc.proxy import Proxy
    from compass_runtime.rpc.server import Server
    from compass_runtime.rpc.tracker import Tracker

    Say = Callable[[dict[str, Any]], None]


def main(role: str, options: dict[str, object], told: TextIO, callback: Callable[[], object] | None = None) -> None:
    """Runs it. `told`: the stream on which it says where it listens, or why it does not."""
    import json
    import logging
    import os

    from compass_core.errors import CompassError

    def say(about: dict[str, object]) -> None:
        gc.freeze()  # what is loaded by now stays: neither it nor the processes of clients look for garbage there
        gc.enable()
        print(json.dumps(about), file=told, flush=True)
        if told is sys.stdout:  # nobody reads on
            os.dup2(2, 1)

    silent = options.pop("silent")
    logging.basicConfig(
        level=logging.ERROR if silent else logging.INFO,
        stream=sys.stderr,
        format="%(levelname)s:%(name)s:%(message)s",
        force=True,
    )
    try:
        _STARTS[role](options, say, callback)
    except CompassError as error:
        say({"error": error.message, "code": error.code, "help": error.help or ""})
    except ValueError as error:
        say({"error": str(error), "type": "ValueError"})


def _server(options: dict[str, Any], say: Say, callback: Callable[[], object] | None) -> None:
    from compass_runtime.rpc import server as serving
    from compass_runtime.rpc.limits import Quota

    def ready(server: Server) -> None:
        server.watch(0)
        say({"port": server.port})

    tracker = options.pop("tracker")
    quota = Quota(**options.pop("quota"))
    serving.load(options.pop("libraries"))
    offer = serving.Offer(**_paths(options), tracker=tuple(tracker) if tracker else None, quota=quota)
    serving.main(offer, ready, callback)


def _tracker(options: dict[str, Any], say: Say, callback: object) -> None:
    from compass_runtime.rpc.tracker import main as serve

    def ready(tracker: Tracker) -> None:
        tracker.watch(0)
        say({"port": tracker.port, "stop_key": tracker.stop_key})

    serve(options.pop("host"), options.pop("port"), options.pop("port_end"), ready, **_paths(options))


def _paths(options: dict[str, Any]) -> dict[str, Any]:
    from pathlib import Path

    names = ("token_file", "certificate", "private_key", "ca")
    return {name: Path(value) if name in names and value is not None else value for name, value in options.items()}


def _proxy(options: dict[str, Any], say: Say, callback: object) -> None:
    from compass_runtime.rpc.proxy import main as serve

    def ready(proxy: Proxy) -> None:
        proxy.watch(0)
        say({"port": proxy.port})

    tracker, timeouts = options.pop("tracker"), tuple(options.pop("timeouts"))
    where = options.pop("host"), options.pop("port"), options.pop("port_end")
    serve(*where, ready, **_paths(options), tracker=tuple(tracker) if tracker else None, timeouts=timeouts)


_STARTS = {"server": _server, "tracker": _tracker, "proxy": _proxy}


if __name__ == "__main__":
    _, given_role, given_options, *sys.path = sys.argv
    import json

    gc.disable()
    main(given_role, json.loads(given_options), sys.stdout)
    import logging
    import os

    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)  # all is closed: nobody has to wait until each object is taken apart

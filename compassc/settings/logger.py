"""Messages of the Python API: the logger `Compass`, under the vendor's names and variables.

Messages go where Python's logging sends them until `set_logger` is called, or CPS_TVM_LOG_LEVEL or CPS_TVM_LOG_FILE is
set: then to stdout or the file, as `[HH:MM:SS][LEVEL] message`.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from compass_core.errors import UsageError

P = ParamSpec("P")
R = TypeVar("R")
LEVEL_VARIABLE, FILE_VARIABLE = "CPS_TVM_LOG_LEVEL", "CPS_TVM_LOG_FILE"
LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
logger = logging.getLogger("Compass")
_said_once: set[str] = set()
_LEVEL_NAMES = {number: name for name, number in LEVELS.items()}


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        return f"[{clock}][{_LEVEL_NAMES.get(record.levelno, record.levelname)}] {record.getMessage()}"


class LevelError(UsageError, ValueError):
    """A log level that does not exist."""


def set_logger(log_file: str | os.PathLike[str] | None = None, log_level: str | int | None = None) -> None:
    """Send messages of at least `log_level` to a file (None: stdout). The variables are the defaults of both arguments."""
    log_file = log_file or os.environ.get(FILE_VARIABLE)
    level = log_level if log_level is not None else os.environ.get(LEVEL_VARIABLE, "INFO")
    if isinstance(level, str):
        if level.upper() not in LEVELS:
            raise LevelError(f"unknown log level '{level}'", code="log-level", help="one of " + ", ".join(LEVELS))
        level = LEVELS[level.upper()]
    handler = logging.FileHandler(log_file) if log_file else logging.StreamHandler(sys.stdout)
    handler.setFormatter(_Formatter())
    for old in list(logger.handlers):
        logger.removeHandler(old)
        old.close()
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


@functools.cache
def set_logger_from_environment() -> None:
    """`set_logger()`, once, when a variable asks for it."""
    if LEVEL_VARIABLE in os.environ or FILE_VARIABLE in os.environ:
        set_logger()


DEBUG, INFO, WARN, ERROR = logger.debug, logger.info, logger.warning, logger.error


def DEBUG_ONCE(message: str, *args: object) -> None:
    """A debug message that is said once per process."""
    if message not in _said_once:
        _said_once.add(message)
        logger.debug(message, *args)


def timer(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: a message when the function starts and one with its seconds when it ends."""
    say = logger.debug if function.__name__.startswith("_") else logger.info

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        say("%s starts", function.__name__)
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            say("%s took %.3f s", function.__name__, time.perf_counter() - start)

    return wrapper

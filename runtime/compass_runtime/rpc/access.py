"""Who may talk to whom: tokens with their rights, proofs of them, and where TLS is demanded.

A token never crosses the connection. Each side draws a number, and proves that it knows the token by an HMAC of both
numbers and of what else was said; so a recorded greeting is worth nothing, and a client notices a server that is not his.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import ssl
import stat
from collections.abc import Sequence
from pathlib import Path

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError
from compass_core.hostcc.provenance import state_folder

RIGHTS = ("llvm", "cuda", "connect")
"""What a token may allow besides programs of NPUs: modules of the host, which are machine code that runs with the server's
rights, modules of CUDA, and sessions on other servers by way of this one."""
LEAST_TOKEN = 32
"""Characters of a token."""
NONCE = 32


@dataclass(frozen=True)
class Token:
    """A secret text, and what who knows it may do."""

    text: str
    rights: frozenset[str] = frozenset()

    def proof(self, who: str, hello: bytes, challenge: bytes) -> str:
        """What shows that `who` ("client", "server") knows the token: an HMAC of all that was said before."""
        return hmac.digest(self.text.encode(), b"\0".join((who.encode(), hello, challenge)), "sha256").hex()


@dataclass(frozen=True)
class Credentials:
    """What a client shows and trusts: the file of its token, and that of the certificates of servers; None: what the switches
    RPC_TOKENS and RPC_CA say. `token`: what is shown in the place of the file's first."""

    token_file: Path | None = None
    ca: Path | None = None
    token: Token | None = None


def default_file() -> Path:
    """The file of tokens when none is named: that of this user on this machine."""
    return state_folder() / "rpc-tokens"


def tokens_of(path: Path | None = None, make: bool = False) -> list[Token]:
    """The tokens in a file: a token and its rights on each line, `#` comments. The first one is what clients use.

    `make`: the default file is made with a new token where there is none. CompassError where others can read it, where a
    token is too short, or a right unknown.
    """
    file = default_file() if path is None else path
    if path is None and make and not file.exists():
        _make(file)
    try:
        with open(file, encoding="utf-8") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            lines = opened.read(1 << 20).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CompassError(
            f"there is no file of tokens that can be read: {error}",
            code="rpc-token",
            help="`compassc rpc-server` makes one on its machine; copy it to this place, or name a copy by COMPASS_RPC_TOKENS",
        ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CompassError(f"others can read the tokens in '{file}'", code="rpc-token", help=f"chmod 600 {file}")
    found = [_token(words, file, n) for n, line in enumerate(lines, 1) if (words := line.partition("#")[0].split())]
    if not found:
        raise CompassError(f"there is no token in '{file}'", code="rpc-token", help="a line is TOKEN [RIGHT ...]")
    return found


def _token(words: Sequence[str], file: Path, line: int) -> Token:
    text, *rights = words
    if len(text) < LEAST_TOKEN or not text.isascii():
        raise CompassError(
            f"{file}:{line}: a token has {LEAST_TOKEN} characters of ASCII or more, this one {len(text)}",
            code="rpc-token",
            help="python -c 'import secrets; print(secrets.token_hex(32))'",
        )
    if unknown := [right for right in rights if right not in RIGHTS]:
        raise CompassError(
            f"{file}:{line}: there is no right '{unknown[0]}'", code="rpc-token", help=f"rights: {', '.join(RIGHTS)}"
        )
    return Token(text, frozenset(rights))


def _make(file: Path) -> None:
    """A file with a new token that its owner alone can read; one that somebody else makes at the same time is left."""
    import secrets

    with files.locked(file.parent):
        if not file.exists():
            files.write(file, f"{secrets.token_hex(32)}\n", 0o600)


def who_proved(tokens: Sequence[Token], hello: bytes, challenge: bytes, given: object) -> Token | None:
    """The token whose proof the client gave; every one is tried, so that the time tells nothing."""
    text = given if isinstance(given, str) and given.isascii() else ""
    found = None
    for token in tokens:
        if hmac.compare_digest(token.proof("client", hello, challenge), text):
            found = token
    return found


# -- addresses and TLS


def parse_address(text: str, port: int | None = None) -> tuple[str, int]:
    """`HOST:PORT`, or HOST where `port` is the usual one; `[::1]:PORT` for IPv6. UsageError for anything else."""
    host, colon, number = text.rpartition(":")
    if not colon and port is not None:
        return text, port
    if not host or not number.isdecimal() or int(number) > 65535:
        raise UsageError(f"'{text}' is not HOST:PORT", code="rpc-address", help="such as 127.0.0.1:9190")
    return host.removeprefix("[").removesuffix("]"), int(number)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, reached by no other. Names other than localhost are not."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_context(host: str, certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """TLS for a listening side; None on loopback without a certificate. CompassError where an address that others reach has
    none."""
    if certificate is None:
        if not is_loopback(host):
            raise CompassError(
                f"'{host}' can be reached from other machines: that needs TLS",
                code="rpc-address",
                help="--certificate FILE --private-key FILE; or stay on 127.0.0.1 and use a tunnel (ssh -L)",
            )
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CompassError(f"the certificate '{certificate}' cannot be used: {error}", code="rpc-address") from None
    return context


def client_context(host: str, authority: Path | None) -> ssl.SSLContext | None:
    """TLS for a connecting side, which trusts the certificates in the file `authority`; None on loopback without one."""
    if authority is None:
        if not is_loopback(host):
            raise CompassError(
                f"'{host}' is another machine: connections to it need TLS",
                code="rpc-address",
                help="name the certificate that the server has (--ca FILE, COMPASS_RPC_CA), or use a tunnel (ssh -L)",
            )
        return None
    try:
        context = ssl.create_default_context(cafile=str(authority))
    except (OSError, ssl.SSLError) as error:
        raise CompassError(f"the certificates in '{authority}' cannot be used: {error}", code="rpc-address") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context

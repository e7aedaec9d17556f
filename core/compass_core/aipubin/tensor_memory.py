"""How much memory the tensors of an aipu.bin take, and whether it may take so much.

A file of a few kilobytes may ask for gibibytes. Foreign files are bounded by a limit; those that this user built on this
machine are not, since what they take was known when they were built.
"""

from __future__ import annotations

import hashlib

from compass_core.aipubin.layout import REGION_SIZE
from compass_core.aipubin.model import AipuBin
from compass_core.errors import CompassError
from compass_core.hostcc import provenance
from compass_core.reading.limits import TENSOR_BYTES
from compass_core.switches import TENSOR_MEMORY


def tensor_bytes(content: AipuBin) -> int:
    """Bytes of the sections of inputs, outputs and intermediate tensors."""
    return sum(section.size for bss in content.features.bss for section in bss.reuses)


def remember(content: AipuBin) -> None:
    """Notes that a file was built here whose tensors take more than those of a foreign one may."""
    if tensor_bytes(content) > TENSOR_BYTES.most:
        provenance.remember(_identity(content))


def check(content: AipuBin, where: str, trusted: bool = False) -> None:
    """CompassError when a file asks for more memory than it may. `trusted`: the user trusts who made it.

    The limit of COMPASS_TENSOR_MEMORY is for all files where it is set.
    """
    setting = TENSOR_MEMORY.setting()
    most, found = setting.value << 20, tensor_bytes(content)
    if found <= most:
        return
    if setting.origin == "default" and found <= REGION_SIZE and (trusted or provenance.is_ours(_identity(content))):
        return
    error = TENSOR_BYTES._replace(most=most).error(where, found=f"{found} {TENSOR_BYTES.unit}")
    raise CompassError(error.message, code=error.code, help=f"{HELP}={-(-found >> 20)}; {error.help}")


HELP = "build it on this machine, or, if you trust whoever made it, COMPASS_TENSOR_MEMORY"


def _identity(content: AipuBin) -> bytes:
    """What a build is known by: its code, and the size of each section."""
    sizes = [section.size for bss in content.features.bss for section in bss.reuses]
    return f"tensors {sizes} ".encode() + hashlib.sha256(content.text).digest()

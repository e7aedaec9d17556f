"""The page of a profile of somebody else's file has no element, attribute or request of theirs."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from compass_runtime.profile.data import as_data
from compass_runtime.profile.page import page
from compass_runtime.profile.run import profiled_call
from compass_runtime.profile.trace import as_trace

TEXT = """#include <compass/dsl.h>
# 1 "{file}"
__kernel void k(__global int* a) {{ for (int i = 0; i < 4; i++) a[i] += 1; /* </script><script>alert(1)</script> */ }}
#include <compass/entry.h>
__COMPASS_ENTRY(__compass_entry_k) {{ k(__COMPASS_POINTER(__global int, 0)); }}
"""
FILES = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "'><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "</title></style></textarea></script><script>alert(1)</script>",
    "]]>--><svg onload=alert(1)>",
    "&lt;script&gt;",
    "/etc/passwd",
)


class Elements(HTMLParser):
    """Names of elements, with those of attributes that run something or ask for something."""

    def __init__(self, text):
        super().__init__()
        self.found = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        self.found |= {f"{tag}.{name}" for name, _ in attributes if name.startswith("on") or name in ("src", "href")}


@pytest.mark.parametrize("file", FILES)
def test_names_and_texts_are_text(forge, file):
    profile = profiled_call(forge(TEXT.format(file=file)), [np.zeros(4, "int32")])
    assert {place[0] for place in profile.lines} & {file}
    made = page(profile)
    plain = page(profiled_call(forge(TEXT.format(file="k.py")), [np.zeros(4, "int32")]))
    assert Elements(made).found == Elements(plain).found and made.count("<script") == 1
    assert "default-src 'none'" in made and "root:" not in made
    assert json.loads(json.dumps([as_trace(profile), as_data(profile)]))

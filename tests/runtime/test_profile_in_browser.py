"""The page of a profile as a browser shows it: in narrow and wide windows, light and dark."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

from compass_runtime.profile import roofline
from compass_runtime.profile.page import page
from compass_runtime.profile.roofline import points
from compassc.dsl import BuildManager
from compassc.dsl import script as S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WAITS = ("dma", "event", "barrier")
SCHEMES = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0", "--force-dark-mode"]}
PROBE = """<script>
const shown = e => getComputedStyle(e).display !== 'none';
const box = e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
const chart = [...document.querySelectorAll('svg.chart')].filter(shown);
const first = kind => [...document.querySelectorAll('.lanes rect.' + kind)].sort(
  (a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width)[0];
document.body.dataset.probe = JSON.stringify({
  charts: chart.length,
  dots: chart[0].querySelectorAll('circle').length,
  labels: [...chart[0].querySelectorAll('text.point')].map(box),
  titles: [...chart[0].querySelectorAll('text')].map(box),
  chart: box(chart[0]),
  text: Math.min(...[...chart[0].querySelectorAll('text')].map(e => box(e)[3] - box(e)[1]).filter(h => h > 0)),
  page: [document.documentElement.scrollWidth, innerWidth],
  sections: [...document.querySelectorAll('section')].map(e => [e.scrollWidth, e.clientWidth]),
  waits: Object.fromEntries(['dma', 'event', 'barrier'].map(k => [k, [getComputedStyle(first(k)).fill, ...box(first(k))]])),
  scheme: matchMedia('(prefers-color-scheme: dark)').matches,
});</script></body>"""


@S.prim_func
def waits(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), n: S.i32):
    t = S.alloc(256, "fp32", scope="lsram")
    ev = S.alloc_events(1)
    tid = S.get_local_id()
    for i in range(tid * 256, n, 1024):
        S.async_dma_copy(t, x + i, 256, event=ev)
        S.wait_events(ev)
        for k in range(0, 256, 8):
            v = S.vload(t + k)
            a = v * 2.0
            b = a + 1.0
            c = b * a + v
            d = S.exp(c) * a
            e = d * c
            f = e + d
            if tid > 0:
                f = f * f
            S.vstore(f + v, t + k)
        S.barrier()
        S.dma_copy(y + i, t, 256)
    S.free_events(ev)


@pytest.fixture(scope="module")
def profile():
    built = BuildManager("X2_1204").build(waits)
    built.profile(np.ones(2048, "float32"), np.zeros(2048, "float32"), 2048)
    return built.latest_profile


@pytest.fixture
def look(profile, tmp_path):
    """A function: width and colour scheme -> what the page says of itself in that window, and its picture."""

    def shown(width, scheme):
        file, picture = tmp_path / "page.html", tmp_path / "page.png"
        text = page(profile)
        file.write_text(text.replace("</body>", PROBE), encoding="utf-8")
        command = [
            str(CHROMIUM),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            *SCHEMES[scheme],
        ]
        command += [
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width},2600",
            "--virtual-time-budget=2000",
        ]
        command += [f"--screenshot={picture}", "--dump-dom", file.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        found = re.search(r'data-probe="([^"]*)"', done.stdout)
        assert found, done.stderr[-500:]
        return json.loads(html.unescape(found[1])), Image.open(picture).convert("RGB")

    return shown


def meet(a, b):
    return a[0] < b[2] - 0.5 and b[0] < a[2] - 0.5 and a[1] < b[3] - 0.5 and b[1] < a[3] - 0.5


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH")
@pytest.mark.parametrize(("width", "scheme"), [(700, "light"), (700, "dark"), (1400, "light")])
def test_the_page_is_readable(look, profile, width, scheme):
    seen, picture = look(width, scheme)
    assert seen["page"][0] <= seen["page"][1] and all(has <= room for has, room in seen["sections"])
    assert seen["charts"] == 1 and seen["text"] > 11, "text as large as elsewhere"

    assert seen["dots"] == len(points(profile)) > 8
    labels = seen["labels"]
    assert len(labels) > 1 and not any(meet(a, b) for i, a in enumerate(labels) for b in labels[:i])
    left, top, right, bottom = seen["chart"]
    assert all(left <= a and top <= b and c <= right and d <= bottom for a, b, c, d in seen["titles"])

    assert len({fill for fill, *_ in seen["waits"].values()}) == len(WAITS)
    for kind, (fill, *box) in seen["waits"].items():
        assert "#waits-" + kind in fill
        greys = picture.convert("L").crop([round(edge) for edge in box])
        low, high = greys.getextrema()
        assert high - low > 40, f"the pattern of {kind} is seen without colours"

    assert seen["scheme"] == (scheme == "dark")
    assert (sum(picture.getpixel((3, 3))) < 150) == (scheme == "dark")


def test_a_sentence_says_how_cycles_belong_together(profile):
    text = page(profile)
    own = [cost.cycles for cost in profile.tecs.values()]
    assert f"The run takes {profile.cycles:,} cycles" in text
    assert f"The 4 together have {sum(own):,.0f}" in text and sum(own) > profile.cycles > max(own)


def test_each_line_that_computes_is_a_point(profile):
    computing = [cost for cost in profile.lines.values() if cost.total.arithmetic and cost.active]
    assert len(points(profile)) == len(computing) + 1
    assert page(profile).count("<circle") == 2 * len(points(profile))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_the_name_of_a_roof_hides_no_point(share):
    scale = roofline._Scale(640, 0.01, 100.0, 0.1, 200.0)
    x, y = scale(0.1 * 100 ** (share - 0.5), 3.0 * 100 ** (share - 0.5))
    dot = roofline._Box(x - 7, y - 7, x + 7, y + 7)
    names = []
    for dots in ([], [dot]):
        taken = []
        drawn = "".join(roofline._roof(scale, 30.0, 100.0, "SRAM: 30 bytes per cycle", taken, dots))
        names.append((re.search(r"translate\([^)]*\)", drawn)[0], [box for box in taken if box.x2 - box.x1 > 10]))
    (before, hiding), (after, free) = names
    assert not any(box.meets(dot) for box in free)
    assert (before == after) == (not any(box.meets(dot) for box in hiding))

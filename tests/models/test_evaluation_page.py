"""The page of an evaluation: everything is on it and it needs nothing else; in a browser its choices and links work."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from compassc.evaluation import evaluate
from compassc.evaluation.histogram import histogram
from compassc.evaluation.measures import Histogram
from compassc.evaluation.page import page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PROBE = """<script>
const seen = [], color = () => getComputedStyle(document.querySelector('svg .cell')).fill;
const display = id => getComputedStyle(document.getElementById(id)).display;
for (const by of ['similarity', 'cycles', 'memory']) {
  document.getElementById('by-' + by).click();
  seen.push([by, color(), getComputedStyle(document.querySelector('.scale.' + by)).display]);
}
const link = document.querySelector('#network svg a'), id = link.getAttribute('href').slice(1);
const before = display(id);
link.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));
setTimeout(() => {
  const wide = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
  const result = {seen, before, after: display(id), wide, hash: location.hash,
                  bars: document.querySelectorAll('#' + id + ' .histogram rect').length,
                  lines: document.querySelectorAll('#' + id + ' .source code').length};
  document.documentElement.dataset.probe = JSON.stringify(result);
}, 200);
</script></body>"""


class Page(HTMLParser):
    """The tags that are open, places on the page, links to them, and all text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.places, self.links, self.words = [], set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert "src" not in given
        self.places.add(given.get("id"))
        self.links.add(given.get("href"))
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.places.add(dict(attributes).get("id"))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def found(integers, model, lenet):
    from compassc.models.model import Model

    x = np.load(lenet / "x0.npy")
    both = Model(model.graph, model.floats, model.path, model.folder, model.source)
    return evaluate(both, {"x": np.concatenate([x, -x])}, labels=[8, 1], detail=True)


@pytest.fixture(scope="module")
def text(found):
    return page(found)


def test_everything_is_on_the_page(found, text):
    read = Page(text)
    words = " ".join(read.words)
    assert not read.open and "http:" not in text and "https:" not in text and text.count("url(") == text.count("url(#")
    assert {link for link in read.links if link} <= {f"#{place}" for place in read.places if place}
    for row in found.layers:
        assert row.tensor in words and row.type in words
    for i in range(len(found.profile.layers)):
        assert f"launch-{i}" in read.places
    assert text.count('class="histogram"') == len(found.layers)
    data = json.loads(re.search(r'<script type="application/json" id="evaluation">(.*?)</script>', text)[1])
    assert data == json.loads(json.dumps(found.as_data()))


def test_an_overview_leads_to_every_launch_the_farthest_first(found, text):
    overview = text.split('<nav class="overview">')[1].split("</nav>")[0]
    launches = range(len(found.model.program.note.launches))
    assert re.findall('href="#(.*?)"', overview) == [f"box-{i}" for i in launches]
    assert {f"box-{i}" for i in launches} <= Page(text).places
    first = text.split("Farthest from the float graph: ")[1]
    assert first.startswith(f'<a href="#box-{found.worst[0].launch}">{found.worst[0].layer}</a>')


def test_names_are_only_text(found):
    evil = '<script>alert("&x")</script>'
    from dataclasses import replace

    part = replace(found.part, titles={name: evil for name in found.part.titles})
    shown = page(replace(found, part=part, missing=evil))
    assert evil not in shown.split('<script type="application/json"')[0] and Page(shown).open == []


def test_histograms_show_what_lies_beyond_the_range():
    values = Histogram()
    values.add(np.linspace(-2, 2, 100))
    drawn = histogram(values, (-1.0, 1.0))
    assert 0 < drawn.count('class="cut"') < drawn.count('class="bar"') * 1.2
    assert drawn.count('class="edge"') == 2 and 'class="cut"' not in histogram(values, None)
    assert 'class="bar"' in histogram(values, (-5.0, 5.0)) and 'class="cut"' not in histogram(values, (-5.0, 5.0))


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH")
@pytest.mark.parametrize("width", [700, 1400])
def test_a_browser_shows_it(text, tmp_path, width):
    (tmp_path / "report.html").write_text(text.replace("</body>", PROBE))
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += [
        f"--window-size={width},900",
        "--virtual-time-budget=2000",
        "--dump-dom",
        f"file://{tmp_path}/report.html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'data-probe="([^"]*)"', done.stdout)
    assert found, done.stderr[-500:]
    result = json.loads(found[1].replace("&quot;", '"'))
    colours = [colour for _, colour, _ in result["seen"]]
    assert len(set(colours)) > 1 and [shown for *_, shown in result["seen"]] == ["block"] * 3
    assert (result["before"], result["after"]) == ("none", "block"), "a launch is shown when its box is chosen"
    assert result["hash"].startswith("#launch-") and result["bars"] > 3 and result["lines"] > 3
    assert result["wide"], "the page is no wider than the window"

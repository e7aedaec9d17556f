"""An evaluation as one HTML page that needs nothing else: accuracy, the network with a colour for each layer, the layers
farthest from the float graph, and of each its values, the kernel's source and its timeline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path

from compass_core.aipubin.graphnote import GraphNote
from compass_core.html_page import document, section, tiles
from compass_core.html_page import table as html_table
from compass_runtime.profile import charts
from compass_runtime.profile import page as profiles
from compassc.evaluation import table
from compassc.evaluation.histogram import histogram
from compassc.evaluation.result import Evaluation, LayerResult
from compassc.gbuilder import picture

MOST_SOURCES = 80
"""Launches whose source and timeline are on the page: in larger networks those that take longest."""
STEPS = 250
"""What can be told apart in the timeline of a launch."""
FINE, COARSE = 45.0, 10.0
"""Signal to noise in dB from which on a layer is as good as the float one, and below which as bad as can be."""
FARTHEST = 5
"""Launches that the overview names."""
COLOURS = {
    "similarity": ("distance from the float graph", f"{FINE:g} dB", f"{COARSE:g} dB"),
    "cycles": ("cycles", "0", "most"),
    "memory": ("bytes of tensors", "0", "most"),
}
"""What the network may be coloured by: words, and both ends of the scale."""


def page(found: Evaluation) -> str:
    """The text of the page."""
    css = profiles.style() + picture.style() + Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    title = f"{found.model.name} on {found.model.target}"
    colours = _colours(found)
    parts = [_head(found), _accuracy(found), _network(found, colours), _layers(found, colours), *_details(found)]
    return document(title, css, parts, {"evaluation": found.as_data()}, charts.patterns())


# -- the top


def _head(found: Evaluation) -> str:
    last = found.subjects[-1]
    numbers = {"samples": f"{found.samples:,}"}
    numbers |= {f"{name}, {last.title}": table.share(name, value) for name, value in last.metrics.items()}
    worst = found.worst[0] if found.worst else None
    if worst is not None:
        numbers[f"the farthest layer, {worst.layer}"] = f"{table.decibels(worst.similarity)} dB"
    if found.profile is not None:
        numbers["cycles of a run (estimated)"] = f"{found.profile.cycles:,}"
        numbers[f"at {found.profile.model.clock_mhz:g} MHz"] = _time(found.profile.seconds)
    name, target = escape(found.model.name), escape(found.model.target)
    return f"<h1>{name}</h1><p>On {target}.</p>{tiles(numbers, 'few')}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} µs"


def _accuracy(found: Evaluation) -> str:
    names = list(dict.fromkeys(name for subject in found.subjects for name in subject.metrics))
    rows = []
    for i, subject in enumerate(found.subjects):
        near = subject.similarity
        cells = [escape(subject.title), *(table.share(name, subject.metrics.get(name)) for name in names)]
        rows.append([*cells, *((table.number(near.cosine, 6), table.decibels(near)) if i else ("", ""))])
    words = table.agreement(found)
    kind = ' class="warning"' if found.agreement.first else ""
    said = [f"<p{kind}>{escape(text[:1].upper() + text[1:])}.</p>" for text in (words, found.missing) if text]
    note = "The same samples through each of these; cosine and signal to noise are of the outputs, against the first."
    return section("Accuracy", note, html_table(("", *names, "cosine", "SQNR dB"), rows, ("",)), *said)


# -- the network


def _colours(found: Evaluation) -> Mapping[str, str]:
    """By layer: where it stands between the ends of each scale, as CSS."""
    cycles = max((row.cycles for row in found.layers), default=0.0) or 1.0
    memory = _memory(found)
    most = max(memory.values(), default=0) or 1
    worst: dict[str, LayerResult] = {}
    for row in found.worst:
        worst.setdefault(row.layer, row)
    return {
        name: f"--similarity:{_distance(row):.3f};--cycles:{row.cycles / cycles:.3f};"
        f"--memory:{memory.get(row.launch, 0) / most:.3f}"
        for name, row in worst.items()
    }


def _distance(row: LayerResult) -> float:
    value = row.similarity.sqnr
    return 1.0 if math.isnan(value) else min(max((FINE - value) / (FINE - COARSE), 0.0), 1.0)


def _memory(found: Evaluation) -> Mapping[int | None, int]:
    """Bytes of the tensors that a launch reads and writes."""
    note = found.model.program.note
    if note is None:
        return {}
    sizes = {t.name: t.nbytes for t in (*note.inputs, *note.tensors, *note.outputs)}
    return {i: sum(sizes.get(name, 0) for name in {*run.inputs, *run.outputs}) for i, run in enumerate(note.launches)}


def _network(found: Evaluation, colours: Mapping[str, str]) -> str:
    note = found.model.program.note
    if note is None:
        return ""
    choices = "".join(
        f'<label><input type="radio" name="by" id="by-{name}"{" checked" if not i else ""}> {escape(words)}</label>'
        for i, (name, (words, _, _)) in enumerate(COLOURS.items())
    )
    scales = "".join(
        f'<span class="scale {name}">{escape(low)}<i></i>{escape(high)}</span>'
        for name, (_, low, high) in COLOURS.items()
    )
    text = (
        "Each box is a launch with the layers of its kernel; the bar below them is its share of the cycles. Choose one to "
        "see the layers' values, the kernel's source and its timeline."
    )
    drawn = picture.picture(note, _marks(found, note, colours))
    overview = _overview(found, note, colours)
    return section("Network", text, f'<div class="by">{choices}{scales}</div>{overview}{drawn}', name="network")


def _overview(found: Evaluation, note: GraphNote, colours: Mapping[str, str]) -> str:
    """A cell for each launch, in the colour of its farthest layer, that leads to its box; and the way to the farthest."""
    worst: dict[int, LayerResult] = {}
    for row in found.worst:
        if row.launch is not None:
            worst.setdefault(row.launch, row)
    cells = []
    for i, launch in enumerate(note.launches):
        style = colours.get(worst[i].layer, "") if i in worst else ""
        said = f"{i}: {', '.join(launch.names)}" + (f", {table.decibels(worst[i].similarity)} dB" if i in worst else "")
        cells.append(f'<a class="cell" href="#box-{i}" style="{style or "--similarity:0"}" title="{escape(said)}"></a>')
    ways = ", ".join(
        f'<a href="#box-{i}">{escape(row.layer)}</a> ({table.decibels(row.similarity)} dB)'
        for i, row in list(worst.items())[:FARTHEST]
    )
    far = f"<p>Farthest from the float graph: {ways}.</p>" if ways else ""
    return f'<nav class="overview">{"".join(cells)}</nav>{far}'


def _marks(found: Evaluation, note: GraphNote, colours: Mapping[str, str]) -> list[picture.Mark]:
    runs = found.profile.layers if found.profile else []
    most = max((run.cycles for run in runs), default=0.0) or 1.0
    marks = []
    for i, launch in enumerate(note.launches):
        run = runs[i] if i < len(runs) else None
        marks.append(
            picture.Mark(
                href=f"#launch-{i}",
                name=f"box-{i}",
                bar=run.cycles / most if run else None,
                title=f"{run.cycles:,.0f} cycles" if run else "",
                lines={name: colours[name] for name in launch.names if name in colours},
            )
        )
    return marks


# -- the layers


def _place(found: Evaluation, row: LayerResult) -> str:
    """Where the page tells more of a layer."""
    return f"launch-{row.launch}" if row.launch is not None else f"tensor-{found.layers.index(row)}"


def _layers(found: Evaluation, colours: Mapping[str, str]) -> str:
    own = any(row.own for row in found.layers)
    columns = ["tensor", "type", "cosine", "SQNR dB", *(["own dB"] if own else []), "MSE", "beyond", "cycles", "bytes"]
    rows = []
    for row in found.worst:
        near = row.similarity
        cell = f'<i class="cell" style="{colours.get(row.layer, "--similarity:0")}"></i>'
        cells = [f'{cell}<a href="#{_place(found, row)}">{escape(row.tensor)}</a>', escape(row.type)]
        cells += [table.number(near.cosine, 6), table.decibels(near)]
        cells += [table.decibels(row.own) if row.own else ""] if own else []
        cells += [f"{near.mse:.3g}", f"{100 * row.outside:.2f}%" if row.limits else ""]
        rows.append([*cells, f"{row.cycles:,.0f}" if row.run else "", f"{row.bytes:,}"])
    note = (
        "Against the float graph, farthest first. Own: the error of the layer alone, for what it got. Beyond: float values "
        "outside of the chosen range. Cycles are of the launch."
    )
    return section("Layers", note, html_table(columns, rows, ("tensor", "type")))


def _details(found: Evaluation) -> Iterable[str]:
    """A section for each launch, and for each tensor that no launch makes, shown when it is chosen."""
    by_launch: dict[int, list[LayerResult]] = {}
    for row in found.layers:
        if row.launch is None:
            card = f'<div class="cards">{_card(row)}</div>'
            yield section(row.layer, row.type, card, _back(), kind="launch", name=_place(found, row))
        else:
            by_launch.setdefault(row.launch, []).append(row)
    note, profile = found.model.program.note, found.profile
    launches = note.launches if note else ()
    runs = profile.layers if profile else []
    longest = sorted(range(len(runs)), key=lambda i: -runs[i].cycles)[:MOST_SOURCES]
    for i, launch in enumerate(launches):
        cards = "".join(_card(row) for row in by_launch.get(i, ()))
        parts = [f'<div class="cards">{cards}</div>']
        words = f"Kernel {launch.kernel}, {', '.join(launch.types)}."
        if profile is not None and i < len(runs):
            words += f" {runs[i].cycles:,.0f} cycles, {runs[i].external_bytes:,} bytes to and from device memory."
        if profile is not None and i in longest:
            alone = profile.of_launch(i)
            parts += [profiles.timeline(alone, STEPS), profiles.source(alone)]
        elif profile is not None:
            parts.append(f"<p>Source and timeline are here for the {MOST_SOURCES} longest launches.</p>")
        yield section(
            f"Launch {i}: {', '.join(launch.names)}", words, *parts, _back(), kind="launch", name=f"launch-{i}"
        )


def _back() -> str:
    return '<p><a href="#network">back to the network</a></p>'


def _card(row: LayerResult) -> str:
    """The numbers of a tensor, and how its values are spread."""
    near = row.similarity
    facts = {
        "type": f"{row.type}, {row.dtype}",
        "cosine": f"{table.number(near.cosine, 6)}, worst {table.number(near.lowest, 6)} (sample {near.at})",
        "signal to noise": f"{table.decibels(near)} dB" + (f", own {table.decibels(row.own)} dB" if row.own else ""),
        "mean squared error": f"{near.mse:.4g}",
    }
    if row.limits:
        facts["chosen range"] = f"{row.limits[0]:.5g} to {row.limits[1]:.5g}, {100 * row.outside:.2f}% beyond"
    if row.histogram:
        facts["float values"] = f"{row.histogram.low:.5g} to {row.histogram.high:.5g}"
    listed = "".join(f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in facts.items())
    drawn = histogram(row.histogram, row.limits) if row.histogram else ""
    return f"<div><h3>{escape(row.tensor)}</h3><dl>{listed}</dl>{drawn}</div>"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/results.md, docs/pictures/comparison.svg, and the figures of
other pages.

   make-results.py [--check] [ROOT]

The figures are those of results/, their bars those of tests/bench/bars.json,
and the texts around them those of docs/results.json:

    pages   paragraphs of other pages, between two marks there: of each the
            first alternative whose bench has a record with all figures, and
            whose "if", a bound of one of them, holds
    rows    what people want to know first
    aims    what a figure lost to something: its aim and the cause
    shown   statements that a test shows, without a figure

In a text, {FIGURE:FORMAT} is a figure of the record of the bench, or a member
of its baseline; FORMAT "percent" is per cent, "less" the per cent to 1.  {machine} is the
machine of the record.

--check writes nothing, and exits with 1 if a page differs or if a text names
what is not there."""

import os
import re
import sys
import textwrap

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                     ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import bars as bench_bars  # pylint: disable=wrong-import-position

HEAD = """# Results

Made by `docs/make-results.py` of `results/`; `docs/results.json` has the texts. A row is measured
again by its command, which needs root unless it names a simulation or the trainer. SCT is the
stage completion time. [notes/](notes/README.md) has causes, and what was tried.

The lab consists of network namespaces on one machine, with links of 50 Mbit/s in the scenarios
`main` and `quickstart`; no card and no link of a real cluster has been measured yet. Policies:
`plain` is the network without shims and agents; under `fair` the shims serve jobs in turns; `stage`
is the order.
"""
FIGURES = """
## All figures

The bar of a figure is the worst of its record, of its interval and of the records before it, with
1 to 2 % added. Bars with a star are promises to users and do not follow a record. `./test --bench
BENCH` exits with 1 if a figure misses its bar; `--record` writes `results/BENCH.json`. Brackets
have the least and the greatest of several runs (n), or the 95 % interval (CI). `load` is the number
of processors that were busy, the bench's own work included, and in brackets the load of the minute
before.

| figure | what | value | n | bar |
|---|---|---|---|---|"""
AIMS = """
## What is lost, and which aims are missed

| bench: figure | value | aim, or what it is lost to | cause |
|---|---|---|---|"""
SHOWN = """
## What tests show

`meson test -C build NAME` runs one test. What happens at faults is in
[reliability.md](reliability.md).

| statement | tests |
|---|---|"""
# What docs/pictures/comparison.svg compares: a name and a figure of main-sim.
COMPARED = [
    ("MLTCP", "mltcp_vs_plain"), ("TCP, no Stagecoach", None),
    ("intensity (Crux)", "intensity_vs_plain"),
    ("sincronia (Sincronia)", "sincronia_vs_plain"),
    ("sebf (Varys)", "sebf_vs_plain"), ("tcf: least total", "tcf_vs_plain"),
    ("grouper (Grouper)", "grouper_vs_plain"),
    ("work: least remaining", "work_vs_plain"),
    ("stage (Stagecoach)", "stage_vs_plain")]
PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" font-family="sans-serif"
 font-size="13" role="img" aria-label="Mean time of a round under nine rules">
<!-- SPDX-License-Identifier: Apache-2.0 -->
<style>
text {{ fill: #1b1f24; }} rect.back {{ fill: #ffffff; }} rect.ours {{ fill: #0072b2; }}
rect.other {{ fill: #b4bcc4; }} path {{ stroke: #1b1f24; stroke-width: 2; }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3; }} rect.back {{ fill: #11161c; }} rect.ours {{ fill: #56a9e0; }}
rect.other {{ fill: #545d68; }} path {{ stroke: #e6edf3; }} }}
</style>
<rect class="back" width="760" height="{height}"/>
<text x="12" y="24" font-size="15">Mean time of a round, relative to TCP without Stagecoach; \
shorter is better</text>
<text x="12" y="44">Scenario main, simulated, {seeds} seeds; lines are 95 % intervals.</text>
{bars}
<text x="12" y="{foot}" font-size="11">Stagecoach {version}, commit {commit}, ./test --bench \
main-sim, on {machine}</text>
</svg>
"""
BEGIN = "<!-- figures: docs/make-results.py writes them -->\n"
END = "<!-- end of figures -->\n"


with open(os.path.join(ROOT, "NEWS.md"), encoding="utf-8") as news:
    VERSION = re.search(r"^## (\S+)", news.read(), re.M)[1]


class Missing(Exception):
    """A text names a figure that its record does not have."""


def number(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def look_up(record, name):
    """Returns a figure, or by "baseline/NAME..." or if there is no such figure
    a member of the baseline, of a list its mean."""
    if name in record["figures"]:
        return record["figures"][name][1]
    value = record["baseline"]
    for member in name.removeprefix("baseline/").split("/"):
        if not isinstance(value, dict) or member not in value:
            raise Missing(f"{record['bench']}: no figure \"{name}\"")
        value = value[member]
    return sum(value) / len(value) if isinstance(value, list) else value


def fill(text, record):
    def replace(match):
        if match[1] == "machine":
            return record["machine"].replace("(R)", "")
        value = look_up(record, match[1])
        if match[2] == "less":
            return f"{100 - 100 * value:.0f} %"
        if match[2] == "percent":
            return f"{100 * value:.2g} %"
        return format(value, match[2]) if match[2] else number(value)

    return re.sub(r"\{([^:{}]+):?([^{}]*)\}", replace, text)


def bar_text(bar):
    star = "\\*" if bar.get("promise") else ""
    sign = {"at_most": "<=", "at_least": ">="}
    kind = bench_bars.kind_of(bar)
    return f"{sign[kind]} {number(bar[kind])}{star}" if kind else ""


def spread(record, key, bar):
    """Returns the interval of a figure, or the range of its runs."""
    low, _, high = record["figures"][key]
    ends = bench_bars.interval(record, key, bar)
    if ends:
        return "[%s, %s], CI" % tuple(map(number, ends))
    return f"[{number(low)} to {number(high)}]" if low != high else ""


def comparison(record):
    """Returns the picture of mean times of rounds, relative to plain."""
    def bar(i, label, key):
        low, value, high = (
            record["figures"][key + end][1] if key else 1
            for end in ("_low", "", "_high"))
        y, x = 58 + 30 * i, lambda share: 250 + 400 * share
        yield (f'<text x="240" y="{y + 15}" text-anchor="end">{label}</text>')
        yield (f'<rect x="250" y="{y}" width="{400 * value:.0f}" height="20" '
               f'class="{"ours" if key == "stage_vs_plain" else "other"}"/>')
        if key:
            yield (f'<path d="M{x(low):.1f} {y + 10}H{x(high):.1f}"/>')
        yield (f'<text x="{x(high) + 8:.0f}" y="{y + 15}">{value:.2f}</text>')

    bars = [line for i, row in enumerate(COMPARED) for line in bar(i, *row)]
    return PICTURE.format(
        height=78 + 30 * len(COMPARED), seeds=look_up(record, "seeds"),
        version=VERSION, bars="\n".join(bars), foot=70 + 30 * len(COMPARED),
        machine=record["machine"], commit=record["commit"])


def where(record):
    load = record["load"]
    load = (f"load {load['during']} ({load['before']})"
            if load["during"] is not None else "load not known")
    return (f"{record['date']}, commit {record['commit']}, "
            f"{record['machine']}, {load}")


class Page:
    def __init__(self, root):
        self.root = root
        self.bars = bench_bars.read_bars(root)
        self.texts = bench_bars.read(root, "docs/results.json")
        named = {text["bench"] for paragraphs in self.texts["pages"].values()
                 for texts in paragraphs for text in texts}
        named |= {row["bench"] for row in self.texts["rows"]}
        self.records = {name: bench_bars.read_record(root, name)
                        for name in {*self.bars, *named}}

    def bar(self, bench, figure):
        return self.bars.get(bench, {"figures": {}})["figures"].get(figure, {})

    def rows(self):
        yield ("| what | with Stagecoach | compared with | interval | machine "
               "| command |")
        yield "|---|---|---|---|---|---|"
        for row in self.texts["rows"]:
            record = self.records[row["bench"]]
            cells = ["no record", "", "", ""]
            if record:
                bar = self.bar(row["bench"], row["figure"])
                cells = [fill(row["value"], record),
                         fill(row["baseline"], record),
                         spread(record, row["figure"], bar) or "one run",
                         record["machine"]]
            yield (f"| {row['what']} | {' | '.join(cells)} | "
                   f"`./test --bench {row['bench']}` |")

    def figures(self):
        for name, bench in self.bars.items():
            shown = {key: bar for key, bar in bench["figures"].items()
                     if bar.get("page", True)}
            if not shown:
                continue
            record = self.records[name]
            about = where(record) if record else "no record"
            yield f"| **{name}** | {about} | | | |"
            for key, bar in shown.items():
                value = runs = ""
                if record and key in record["figures"]:
                    least = ">= " if bar.get("least") else ""
                    value = (least + number(record["figures"][key][1]) + " "
                             + spread(record, key, bar)).rstrip()
                    runs = record["runs"]
                yield (f"| {key} | {bar['what']} | {value or 'no record'} | "
                       f"{runs} | {bar_text(bar)} |")

    def aims(self):
        for aim in self.texts["aims"]:
            record = self.records[aim["bench"]]
            value = (number(look_up(record, aim["figure"])) if record
                     else "no record")
            yield (f"| {aim['bench']}: {aim['figure']} | {value} | "
                   f"{bar_text(aim) or aim['to']} | {aim['cause']} |")

    def results(self):
        return "\n".join([
            HEAD, *self.rows(), AIMS, *self.aims(), SHOWN,
            *(f"| {row['what']} | {', '.join(row['tests'])} |"
              for row in self.texts["shown"]),
            FIGURES, *self.figures()]) + "\n"

    def paragraph(self, alternatives):
        """Returns the first text with figures, or None if there is none."""
        for text in alternatives:
            record = self.records[text["bench"]]
            try:
                held = record and not ("if" in text and bench_bars.misses(
                    text["if"], look_up(record, text["if"]["figure"])))
                filled = fill(text["text"], record) if held else None
            except Missing:
                continue
            if filled:
                return "\n".join(textwrap.wrap(
                    filled, 100, break_long_words=False,
                    break_on_hyphens=False)) + "\n"
        return None

    def page(self, name):
        """Returns the page with today's figures."""
        with open(os.path.join(self.root, name), encoding="utf-8") as f:
            before, _, rest = f.read().partition(BEGIN)
        _, _, after = rest.partition(END)
        paragraphs = filter(None, map(self.paragraph,
                                      self.texts["pages"][name]))
        return before + BEGIN + "\n".join(paragraphs) + END + after

    def mistakes(self):
        """Yields what is wrong in docs/results.json."""
        for name, paragraphs in self.texts["pages"].items():
            for texts in paragraphs:
                if any(self.records[text["bench"]] for text in texts) and (
                        not self.paragraph(texts)):
                    yield (f"{name}: the record of {texts[0]['bench']} fits no "
                           f"text like \"{texts[0]['text']}\"")
        for aim in self.texts["aims"]:
            record = self.records[aim["bench"]]
            name = f"{aim['bench']}: {aim['figure']}"
            if bench_bars.kind_of(aim) and not self.bar(aim["bench"],
                                                        aim["figure"]):
                yield f"{name}: bars.json has no such figure"
            elif record and bench_bars.kind_of(aim) and not bench_bars.misses(
                    aim, look_up(record, aim["figure"])):
                yield f"{name}: the aim is reached; it belongs into bars.json"
        tests = set()
        for _, _, files in os.walk(os.path.join(self.root, "tests")):
            tests |= {os.path.splitext(name)[0].removeprefix("test-")
                      for name in files}
        for row in self.texts["shown"]:
            for name in set(row["tests"]) - tests:
                yield f"{row['what']}: no test \"{name}\""


def main():
    check = "--check" in sys.argv
    root = next((arg for arg in sys.argv[1:] if arg != "--check"), ROOT)
    page = Page(root)
    mistakes = [f"docs/results.json: {text}" for text in page.mistakes()]
    try:
        pages = {"docs/results.md": page.results()}
    except Missing as error:
        sys.exit(f"docs/results.json: {error}")
    pages |= {name: page.page(name) for name in page.texts["pages"]}
    if page.records["main-sim"]:
        pages["docs/pictures/comparison.svg"] = comparison(
            page.records["main-sim"])
    for name, text in pages.items():
        path = os.path.join(root, name)
        if check:
            with open(path, encoding="utf-8") as f:
                if f.read() != text:
                    mistakes.append(f"{name} is stale: docs/make-results.py")
        else:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    for text in mistakes:
        print(text, file=sys.stderr)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())

// SPDX-License-Identifier: Apache-2.0

// Draws the pictures of a report from the JSON in its page, which
// report_put_page_json() in report-json.c describes.

import { groupedBars } from "./bars.js";
import { Chart, colour } from "./chart.js";
import { el, legend, note, percent, seconds, show, widthFor } from "./dom.js";
import { heatMap } from "./heat.js";
import { timeline } from "./timeline.js";

/* global uPlot */

const N_COLOURS = 8;            // Number of classes f0... in style.css.
const MAX_BARS = 48;            // The first stages are drawn,
const MAX_LANES = 48;           // and the first searches.
const MAX_COLUMNS = 60;         // Columns of a heat map.
const DASHES = [[], [6, 3], [2, 2]];
const AXIS_SIZE = 60;           // Width of the numbers at a vertical axis, px.

const { baseline, candidate, policies, stages, searches, jobs } =
    JSON.parse(document.getElementById("data").textContent);
const names = [...new Set(searches.map(search => search.cojob))];

// The number of each policy's colour, which has no other meaning on the page:
// 0 is the order and 1 what it is compared with, as on the dashboard.
const COLOURS = new Map([
    ...policies.map(({ name }) => name)
        .filter(name => name !== candidate && name !== baseline)
        .map((name, i) => [name, candidate ? 2 + i % (N_COLOURS - 2) : i]),
    [candidate, 0], [baseline, 1]]);

// The last time, in seconds, that any policy's run has.
const end = Math.max(
    ...stages.flatMap(stage => [stage.start, stage.end ?? 0]),
    ...searches.map(search => search.end ?? 0),
    ...policies.map(policy => policy.samples.at(-1) ?? 0), 1e-3);

// Formats 'ms' for an axis whose labels are 'step' ms apart.
function tick(ms, step) {
    const [size, unit] = step >= 3600e3 ? [3600e3, "h"]
        : step >= 60e3 ? [60e3, "min"] : [1000, "s"];

    return `${Number((ms / size).toPrecision(6))} ${unit}`;
}

function drawBars() {
    const byName = new Map();

    for (const stage of stages) {
        const name = `${stage.cojob}/${stage.rung}`;
        const times = byName.get(name) ?? new Map();

        byName.set(name, times.set(stage.policy, stage.end === null ? null
            : stage.end - stage.start));
    }
    const rows = [...byName].slice(0, MAX_BARS).map(([name, times]) => ({
        name, bars: policies.map(policy => {
            const value = times.get(policy.name);

            return value == null ? { text: "did not end" }
                : { value, text: seconds(value),
                    className: `f${COLOURS.get(policy.name)}` };
        }),
    }));

    show("bars", legend(policies.map(
        ({ name }) => [`f${COLOURS.get(name)}`, name])),
         groupedBars("Completion time of each stage under each policy",
                     widthFor(document.getElementById("bars")), rows));
}

// Keeps the marks 1, 2, 5, 10... of a logarithmic axis.
function filterMarks(u, marks) {
    return marks.map(t => [1, 2, 5, 10].includes(
        Math.round(t / 10 ** Math.floor(Math.log10(t)))) ? t : null);
}

function drawCdf() {
    const times = policies.flatMap(policy => policy.cdf.map(([t]) => t));

    if (!times.length) {
        show("cdf", note("No stage has ended."));
        return;
    }
    const most = Math.max(...times);
    const exact = Math.max(Math.min(...times, most / 10), most / 1000);
    const decade = 10 ** Math.floor(Math.log10(exact));
    const least = Math.floor(exact / decade) * decade;
    const chart = new Chart(
        "Share of stages that end within a time", axis => ({
            cursor: { drag: { x: false, y: false } },
            scales: { x: { time: false, distr: 3, range: [least, most] },
                      y: { range: [0, 1] } },
            axes: [{ ...axis, filter: filterMarks, values: (u, all) => all.map(
                t => t == null ? "" : `${Number(t.toPrecision(6))} s`) },
                   { ...axis, size: AXIS_SIZE, values: (u, all) => all.map(
                       share => `${Math.round(100 * share)} %`) }],
            series: [{ label: "time",
                       value: (u, t) => t == null ? "" : seconds(t) },
                     ...policies.map((policy, i) => ({
                label: policy.name,
                stroke: colour(`--c${COLOURS.get(policy.name)}`),
                width: 2, dash: DASHES[i % DASHES.length], spanGaps: true,
                points: { show: false }, paths: uPlot.paths.stepped(
                    { align: 1 }),
                value: (u, share) => share == null ? "" : percent(share),
            }))],
        }), 240);

    show("cdf", chart.box);
    chart.draw(uPlot.join(policies.map(({ cdf }) => [
        [least, ...cdf.map(([t]) => Math.max(t, least))],
        [0, ...cdf.map(([, share]) => share)]])));
}

// Shows a figure for each policy that draw(policy, box) adds to its box.
function showEach(id, draw) {
    const figures = policies.map(policy => [policy, el(
        "figure", {}, el("figcaption", {}, policy.name))]);

    show(id, ...figures.map(([, figure]) => figure));
    figures.forEach(([policy, figure]) => draw(policy, figure));
}

function drawTimelines() {
    const span = { from: 0, to: 1000 * end, text: tick };

    showEach("timeline", (policy, box) => box.append(timeline(
        `Stages of each search over time under ${policy.name}`, widthFor(box),
        names.slice(0, MAX_LANES),
        stages.filter(stage => stage.policy === policy.name).map(stage => {
            const to = stage.end ?? end;

            return { cojob: stage.cojob, rung: stage.rung,
                     from: 1000 * stage.start, to: 1000 * to,
                     runs: stage.end === null,
                     className: `f${COLOURS.get(policy.name)}`,
                     title: `${stage.cojob}/${stage.rung}, ${stage.jobs
                     } jobs: ${stage.start.toFixed(2)} to ${to.toFixed(2)} s${
                         stage.end === null ? ", did not end" : ""}` };
        }), span)));
}

function drawUse() {
    // Every column has samples, if there are any.
    const n = Math.max(1, Math.min(MAX_COLUMNS, ...policies.filter(
        policy => policy.samples.length).map(policy => Math.floor(
        policy.samples.length * end / policy.samples.at(-1) / 2))));

    showEach("use", (policy, box) => {
        const columns = Array.from({ length: n }, (_, i) => ({
            name: tick(1000 * Number((i * end / n).toPrecision(3)), 1000),
            sums: policy.ports.map(() => 0), n: 0,
        }));

        policy.samples.forEach((t, k) => {
            const column = columns[Math.min(Math.floor(n * t / end), n - 1)];

            column.n++;
            policy.use.forEach((use, i) => {
                column.sums[i] += use[k] / 100;
            });
        });
        for (const column of columns) {
            column.cells = column.sums.map(sum => column.n
                ? { share: sum / column.n, text: percent(sum / column.n) }
                : null);
        }
        box.append(policy.samples.length ? heatMap(
            `Use of each link over time under ${policy.name}`, widthFor(box),
            policy.ports, columns, ["idle", "full"])
            : note("The use of links was not measured."));
    });
}

function drawLoss() {
    const most = Math.max(...jobs.flatMap(
        job => job.points.map(point => point[2] ?? 0)), 1e-3);

    showEach("loss", (policy, box) => {
        const lines = jobs.filter(job => job.policy === policy.name
                                  && job.points.length);
        const title = note(" ");
        const chart = new Chart(
            `Loss of each job over time under ${policy.name}`, axis => ({
                cursor: { drag: { x: false, y: false }, focus: { prox: 16 } },
                focus: { alpha: 0.25 }, legend: { show: false },
                hooks: { setSeries: [(u, i) => {
                    title.textContent = i ? u.series[i].label : " ";
                }] },
                scales: { x: { time: false, range: [0, end] },
                          y: { range: [0, most] } },
                axes: [{ ...axis, values: (u, all) => all.map(
                    t => `${t} s`) }, { ...axis, size: AXIS_SIZE }],
                series: [{}, ...lines.map(job => ({
                    label: `${job.cojob}/${job.job}: loss ${job.loss}`
                        + (job.outcome ? `, ${job.outcome}` : ""),
                    stroke: colour(`--c${COLOURS.get(policy.name)}`),
                    width: 1.5, spanGaps: true, points: { show: false },
                }))],
            }));

        if (!lines.length) {
            box.append(note("No job reported its loss."));
            return;
        }
        box.append(chart.box, title);
        chart.draw(uPlot.join(lines.map(job => [
            job.points.map(point => point[0]),
            job.points.map(point => point[2])])));
    });
}

for (const section of document.querySelectorAll("section[hidden]")) {
    section.hidden = false;
}
drawBars();
drawCdf();
drawTimelines();
drawUse();
if (document.getElementById("loss")) {
    drawLoss();
}
for (const details of document.querySelectorAll("details[open]")) {
    details.open = false;
}

// SPDX-License-Identifier: Apache-2.0

// Numbers over time, drawn by uPlot: the shims' queues and the coverage.

import { asTable, clock, el, note, percent, show } from "./dom.js";

/* global uPlot */

const MAX_SAMPLES = 600;
const HEIGHT = 180;

function colour(name) {
    return getComputedStyle(document.documentElement)
        .getPropertyValue(name).trim();
}

// One chart in the element 'id'.  'lines' are {label, colour, dash}; 'format'
// makes words of a value.
export class Chart {
    constructor(id, title, lines, format) {
        this.id = id;
        this.title = title;
        this.lines = lines;
        this.format = format;
        this.data = [[], ...lines.map(() => [])];
        this.plot = null;
    }

    make() {
        const axis = {
            stroke: colour("--quiet"), font: "12px system-ui",
            grid: { stroke: colour("--line"), width: 0.5 },
        };
        const box = el("div", { role: "img", "aria-label": this.title });

        this.numbers = el("div");
        this.box = box;
        show(this.id, box, this.numbers);
        this.plot = new uPlot({
            width: Math.max(box.clientWidth, 200), height: HEIGHT,
            cursor: { drag: { x: false, y: false } },
            scales: { y: { range: (u, least, most) =>
                [0, Math.max(most ?? 0, 1e-9) * 1.05] } },
            axes: [{ ...axis, values: (u, all) =>
                all.map(at => clock(at * 1000)) }, { ...axis, size: 70,
                           values: (u, all) => all.map(this.format) }],
            series: [{ value: (u, at) => at == null ? ""
                : clock(at * 1000) }, ...this.lines.map(line => ({
                label: line.label, stroke: colour(line.colour), width: 2,
                dash: line.dash, points: { show: false }, value: (u, v) =>
                    v == null ? "" : this.format(v),
            }))],
        }, this.data, box);
        new ResizeObserver(() => this.plot.setSize(
            { width: Math.max(box.clientWidth, 200), height: HEIGHT }))
            .observe(box);
        matchMedia("(prefers-color-scheme: dark)").addEventListener(
            "change", () => {
                this.plot.destroy();
                this.make();
            }, { once: true });
    }

    add(values) {
        const row = [Date.now() / 1000, ...values];

        row.forEach((value, i) => {
            this.data[i].push(value);
            if (this.data[i].length > MAX_SAMPLES) {
                this.data[i].shift();
            }
        });
        if (this.plot) {
            this.plot.setData(this.data);
        } else {
            this.make();
        }
        this.tell();
    }

    // The last numbers as text, for who cannot see the chart.
    tell() {
        const open = this.numbers.querySelector("details")?.open;
        const rows = this.data[0].slice(-10).map((at, i, times) => [
            clock(at * 1000), ...this.lines.map((_, k) => this.format(
                this.data[k + 1].at(i - times.length)))]);
        const numbers = asTable(
            ["Time", ...this.lines.map(line => line.label)], rows);

        numbers.open = Boolean(open);
        this.numbers.replaceChildren(numbers);
    }
}

function bytes(n) {
    return n < 1000 ? `${n.toFixed(0)} B`
        : n < 1e6 ? `${(n / 1000).toFixed(0)} kB`
        : `${(n / 1e6).toFixed(1)} MB`;
}

const coverage = new Chart(
    "coverage", "Share of hosts' bytes that has a tag, over time",
    [{ label: "mean", colour: "--c0" },
     { label: "least of a host", colour: "--c5", dash: [6, 3] }], percent);
const queue = new Chart(
    "queue", "Bytes that wait in shims, over time",
    [{ label: "all hosts", colour: "--c0" },
     { label: "most of a host", colour: "--c5", dash: [6, 3] }], bytes);

export function addSeries(hosts) {
    const there = hosts.hosts.filter(host => host.connected);
    const shares = there.map(host => host.coverage);
    const queues = there.map(host => host.queued_bytes)
        .filter(n => n !== undefined);
    const sum = numbers => numbers.reduce((total, x) => total + x, 0);

    if (shares.length) {
        coverage.add([sum(shares) / shares.length, Math.min(...shares)]);
    } else if (!coverage.plot) {
        show("coverage", note("No host is connected."));
    }
    if (queues.length) {
        queue.add([sum(queues), Math.max(...queues)]);
    } else if (!queue.plot) {
        show("queue", note("No shim has told what waits in it."));
    }
}

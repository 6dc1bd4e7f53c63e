// SPDX-License-Identifier: Apache-2.0

// Numbers over time: the queues of the shims and the coverage.

import { Chart, colour } from "./chart.js";
import { asTable, clock, el, note, percent, show } from "./dom.js";

const MAX_SAMPLES = 600;

// A chart of the last samples in the element 'id'.  'lines' are {label,
// colour, dash}; 'format' makes a text of a value.
class Series {
    constructor(id, title, lines, format) {
        this.id = id;
        this.lines = lines;
        this.format = format;
        this.data = [[], ...lines.map(() => [])];
        this.chart = new Chart(title, axis => this.describe(axis));
        this.numbers = null;
    }

    describe(axis) {
        const time = at => at == null ? "" : clock(at * 1000);

        return {
            cursor: { drag: { x: false, y: false } },
            scales: { y: { range: (u, least, most) =>
                [0, Math.max(most ?? 0, 1e-9) * 1.05] } },
            axes: [{ ...axis, values: (u, all) => all.map(time) },
                   { ...axis, size: 70,
                     values: (u, all) => all.map(this.format) }],
            series: [{ value: (u, at) => time(at) },
                     ...this.lines.map(line => ({
                label: line.label, stroke: colour(line.colour), width: 2,
                dash: line.dash, points: { show: false }, value: (u, v) =>
                    v == null ? "" : this.format(v),
            }))],
        };
    }

    isEmpty() {
        return !this.numbers;
    }

    add(values) {
        const row = [Date.now() / 1000, ...values];

        row.forEach((value, i) => {
            this.data[i].push(value);
            if (this.data[i].length > MAX_SAMPLES) {
                this.data[i].shift();
            }
        });
        if (this.isEmpty()) {
            this.numbers = el("div");
            show(this.id, this.chart.box, this.numbers);
        }
        this.chart.draw(this.data);
        this.drawNumbers();
    }

    // Shows the last numbers as a table.
    drawNumbers() {
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

const coverage = new Series(
    "coverage", "Share of the hosts' bytes that belongs to a job, over time",
    [{ label: "mean", colour: "--c0" },
     { label: "lowest host", colour: "--c5", dash: [6, 3] }], percent);
const queue = new Series(
    "queue", "Bytes queued in the shims, over time",
    [{ label: "all hosts", colour: "--c0" },
     { label: "longest queue", colour: "--c5", dash: [6, 3] }], bytes);

export function addSeries(hosts) {
    const connected = hosts.hosts.filter(host => host.connected);
    const shares = connected.map(host => host.coverage)
        .filter(share => share !== undefined);
    const queues = connected.map(host => host.queued_bytes)
        .filter(n => n !== undefined);
    const sum = numbers => numbers.reduce((total, x) => total + x, 0);

    if (shares.length) {
        coverage.add([sum(shares) / shares.length, Math.min(...shares)]);
    } else if (coverage.isEmpty()) {
        show("coverage", note("No host has reported traffic yet."));
    }
    if (queues.length) {
        queue.add([sum(queues), Math.max(...queues)]);
    } else if (queue.isEmpty()) {
        show("queue", note("No shim has reported its queues yet."));
    }
}

// SPDX-License-Identifier: Apache-2.0

// Whether the order helps: completion times of stages beside what fair sharing
// would have taken at the least.
//
// Those that run count too, as long as they are expected to take: what has
// ended is what the order put first, and would flatter it.

import { predictFair } from "./fair.js";
import { asTable, el, note, percent, seconds, show, svg } from "./dom.js";

const MAX_STAGES = 200;         // That have ended and are compared.
const MAX_BARS = 12;            // That are drawn, the last ones.
const WIDTH = 600;
const LEFT = 110;               // Of names.
const ROW = 30;

function mean(numbers) {
    return numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
}

// Two bars: 'row' is {name, measured, fair}, in seconds.
function bars(row, y, scale) {
    const bar = (value, dy, className) => svg("rect", {
        x: LEFT, y: y + dy, height: 10, width: Math.max(1, value * scale),
        class: className,
    });

    return [
        svg("text", { x: LEFT - 6, y: y + 15, "text-anchor": "end" },
            row.name),
        bar(row.measured, 2, row.runs ? "f0 running" : "f0"),
        bar(row.fair, 13, "f1"),
        svg("text", { x: LEFT + row.measured * scale + 4, y: y + 11 },
            seconds(row.measured)),
        svg("text", { x: LEFT + row.fair * scale + 4, y: y + 23,
                      class: "quiet" }, seconds(row.fair)),
    ];
}

function picture(rows) {
    const most = Math.max(...rows.flatMap(row => [row.measured, row.fair]));
    const scale = (WIDTH - LEFT - 60) / most;

    return svg("svg", {
        viewBox: `0 0 ${WIDTH} ${rows.length * ROW}`, role: "img",
        "aria-label": "Completion times of the last stages, and those "
            + "predicted for fair sharing",
    }, ...rows.flatMap((row, i) => bars(row, i * ROW, scale)));
}

function legend() {
    const key = (className, text) => [
        svg("svg", { viewBox: "0 0 12 12", class: "key", width: 12,
                     height: 12, "aria-hidden": "true" },
            svg("rect", { width: 12, height: 12, class: className })),
        ` ${text} `,
    ];

    return el("p", { class: "note keys" },
              ...key("f0", "measured (dashed: runs)"),
              ...key("f1", "fair sharing, predicted, at least"));
}

// What 'stage', which runs, will have taken and needed, if 'place', its row of
// the order, is right.
function foresee(stage, place, now) {
    const demand = { ...stage.demand };

    for (const [port, left] of Object.entries(place.demand)) {
        demand[port] = (demand[port] ?? 0) + left;
    }
    return { ...stage, demand, ended: now + 1000 * place.completion_s,
             runs: true };
}

// Returns rows {name, measured, fair, runs}, by end.
function compare(stages, order) {
    const now = Date.now();
    const ended = stages.filter(stage => stage.ended)
        .sort((a, b) => a.ended - b.ended).slice(-MAX_STAGES);
    const running = stages.filter(stage => !stage.ended).flatMap(stage => {
        const place = order.find(row => row.cojob === stage.cojob
                                 && row.rung === stage.rung);

        return place ? [foresee(stage, place, now)] : [];
    }).sort((a, b) => a.ended - b.ended);
    const all = [...ended, ...running];
    const fair = predictFair(all);

    return all.map((stage, i) => ({
        name: `${stage.cojob}/${stage.rung}`, runs: Boolean(stage.runs),
        measured: (stage.ended - stage.began) / 1000, fair: fair[i],
    })).filter(row => row.fair > 0);
}

function verdict(rows, boundMean) {
    const n = rows.filter(row => !row.runs).length;
    const measured = mean(rows.map(row => row.measured));
    const fair = mean(rows.map(row => row.fair));
    const text = measured < fair
        ? `Yes: stages take ${percent(1 - measured / fair)} less`
        : "Not shown: computing may hide it";

    return [
        el("p", { class: "big" }, text),
        note(`Mean of the last ${n} that ended and of ${rows.length - n} that `
             + `run, as they are expected to end: ${seconds(measured)}; `
             + `predicted for fair sharing: at least ${seconds(fair)}`
             + (boundMean > 0 ? `. No order could have ended the former `
                + `sooner than after ${seconds(boundMean)}, in the mean.`
                : ".")),
    ];
}

// 'order' are the rows of "/v1/order".
export function drawHelping(stages, order) {
    const rows = compare(stages.stages, order);
    const last = rows.slice(-MAX_BARS);

    if (!rows.some(row => !row.runs)) {
        show("helping", note("No stage with traffic has ended yet."));
        return;
    }
    show("helping", ...verdict(rows, stages.bound_mean_s), picture(last),
         legend(),
         asTable(["Stage", "Measured", "Fair, at least"],
                 last.map(row => [row.name, seconds(row.measured)
                                  + (row.runs ? ", expected" : ""),
                                  seconds(row.fair)])));
}

// SPDX-License-Identifier: Apache-2.0

// Whether the order helps: completion times of the last stages beside what
// fair sharing would have taken at the least.

import { predictFair } from "./fair.js";
import { asTable, el, note, percent, seconds, show, svg } from "./dom.js";

const MAX_STAGES = 200;         // That are compared,
const MAX_BARS = 12;            // and that are drawn, the last ones.
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
        bar(row.measured, 2, "f0"), bar(row.fair, 13, "f1"),
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
        "aria-label": "Completion times of the last stages, measured and "
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

    return el("p", { class: "note keys" }, ...key("f0", "measured"),
              ...key("f1", "fair sharing, predicted, at least"));
}

function verdict(rows, boundMean) {
    const measured = mean(rows.map(row => row.measured));
    const fair = mean(rows.map(row => row.fair));
    const text = measured < fair
        ? `Yes: stages take ${percent(1 - measured / fair)} less`
        : "Not shown: computing may hide it";

    return [
        el("p", { class: "big" }, text),
        note(`Mean of the last ${rows.length}: ${seconds(measured)} measured, `
             + `at least ${seconds(fair)} predicted for fair sharing`
             + (boundMean > 0 ? `; no order could do better than ${
                 seconds(boundMean)}.` : ".")),
    ];
}

export function drawHelping(stages) {
    const ended = stages.stages.filter(stage => stage.ended)
        .sort((a, b) => a.ended - b.ended).slice(-MAX_STAGES);
    const fair = predictFair(ended);
    const rows = ended.map((stage, i) => ({
        name: `${stage.cojob}/${stage.rung}`,
        measured: (stage.ended - stage.began) / 1000,
        fair: fair[i],
    })).filter(row => row.fair > 0);
    const last = rows.slice(-MAX_BARS);

    if (!rows.length) {
        show("helping", note("No stage with traffic has ended yet."));
        return;
    }
    show("helping", ...verdict(rows, stages.bound_mean_s), picture(last),
         legend(),
         asTable(["Stage", "Measured", "Fair, at least"],
                 last.map(row => [row.name, seconds(row.measured),
                                  seconds(row.fair)])));
}

// SPDX-License-Identifier: Apache-2.0

// Compares completion times of stages with those of a simulated network without
// Stagecoach, which follows the stages (order/lookahead/plain-network.h).
//
// Running stages are included, with their predicted completion times: the
// stages that have ended are those that the order served first, which would
// bias the comparison.

import { groupedBars } from "./bars.js";
import { asTable, el, legend, note, percent, seconds, show, widthFor }
    from "./dom.js";

const MAX_STAGES = 200;         // Compared stages.
const MAX_BARS = 12;            // Drawn stages, the last ones.

function mean(numbers) {
    return numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
}

function nameOf({ cojob, rung }) {
    return `${cojob}/${rung}`;
}

function bars(rows) {
    return groupedBars(
        "Completion times of the last stages, and those simulated without "
            + "Stagecoach",
        widthFor(document.getElementById("helping")),
        rows.map(row => ({ name: row.name, bars: [
            { value: row.measured, text: seconds(row.measured),
              className: row.runs ? "f0 running" : "f0" },
            { value: row.plain, text: seconds(row.plain), className: "f1" },
        ] })));
}

// Returns rows {name, measured, plain, runs}, ordered by end.
function compare(stages, order) {
    const now = Date.now();
    const left = new Map(order.map(row => [nameOf(row), row.completion_s]));
    const all = stages.filter(stage => stage.plain_s > 0).map(stage => ({
        ...stage, runs: !stage.ended,
        ended: stage.ended || now + 1000 * left.get(nameOf(stage)),
    })).filter(stage => Number.isFinite(stage.ended))
        .sort((a, b) => a.runs - b.runs || a.ended - b.ended);

    return all.slice(-MAX_STAGES).map(stage => ({
        name: nameOf(stage), runs: stage.runs,
        measured: (stage.ended - stage.began) / 1000, plain: stage.plain_s,
    }));
}

function verdict(rows) {
    const n = rows.filter(row => !row.runs).length;
    const measured = mean(rows.map(row => row.measured));
    const plain = mean(rows.map(row => row.plain));
    const text = measured < plain
        ? `Yes: stages complete ${percent(1 - measured / plain)} sooner`
        : "Unclear: completion times exceed those of an ideal network";

    return [
        el("p", { class: "big" }, text),
        note(`Mean completion time of the last ${n} ended stages and ${
             rows.length - n} running stages (predicted): ${
             seconds(measured)}; without Stagecoach, by simulation: ${
             seconds(plain)}.`),
    ];
}

// 'order' are the rows of "/v1/order".
export function drawHelping(stages, order) {
    const rows = compare(stages.stages, order);
    const last = rows.slice(-MAX_BARS);

    if (!rows.some(row => !row.runs)) {
        show("helping", note("No stage with traffic has ended so far."));
        return;
    }
    show("helping", ...verdict(rows), bars(last),
         legend([["f0", "measured (dashed: running)"],
                 ["f1", "without Stagecoach, by simulation"]]),
         asTable(["Stage", "Measured", "Simulated without Stagecoach"],
                 last.map(row => [row.name, seconds(row.measured)
                                  + (row.runs ? ", predicted" : ""),
                                  seconds(row.plain)])));
}

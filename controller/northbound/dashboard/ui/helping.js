// SPDX-License-Identifier: Apache-2.0

// Compares completion times of stages with a lower bound without Stagecoach.
//
// Running stages are included, with their predicted completion times: the
// stages that have ended are those that the order served first, which would
// bias the comparison.

import { predictPlain } from "./plain.js";
import { groupedBars } from "./bars.js";
import { asTable, el, legend, note, percent, seconds, show, widthFor }
    from "./dom.js";

const MAX_STAGES = 200;         // Compared stages, ended and running each.
const MAX_BARS = 12;            // Drawn stages, the last ones.

function mean(numbers) {
    return numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
}

function nameOf({ cojob, rung }) {
    return `${cojob}/${rung}`;
}

function bars(rows) {
    return groupedBars(
        "Completion times of the last stages, and those predicted without "
            + "Stagecoach",
        widthFor(document.getElementById("helping")),
        rows.map(row => ({ name: row.name, bars: [
            { value: row.measured, text: seconds(row.measured),
              className: row.runs ? "f0 running" : "f0" },
            { value: row.plain, text: seconds(row.plain), className: "f1" },
        ] })));
}

// Returns {demand, left} of each row of 'order', by name: its demand, and the
// seconds until its last port has served it and all stages before it.
function forecastsOf(order) {
    const ahead = {};

    return new Map(order.map(row => {
        let left = 0;

        for (const [port, work] of Object.entries(row.demand)) {
            ahead[port] = (ahead[port] ?? 0) + work;
            left = Math.max(left, ahead[port]);
        }
        return [nameOf(row), { demand: row.demand, left }];
    }));
}

// Returns 'stage', which runs, as it will be when it has ended.
function predictEnd(stage, forecast, now) {
    const demand = { ...stage.demand };

    for (const [port, work] of Object.entries(forecast.demand)) {
        demand[port] = (demand[port] ?? 0) + work;
    }
    return { ...stage, demand, ended: now + 1000 * forecast.left, runs: true };
}

// Returns rows {name, measured, plain, runs}, ordered by end.
function compare(stages, order) {
    const now = Date.now();
    const ended = stages.filter(stage => stage.ended)
        .sort((a, b) => a.ended - b.ended).slice(-MAX_STAGES);
    const forecasts = forecastsOf(order);
    const running = stages.filter(stage => !stage.ended)
        .slice(-MAX_STAGES).flatMap(stage => {
            const forecast = forecasts.get(nameOf(stage));

            return forecast ? [predictEnd(stage, forecast, now)] : [];
        }).sort((a, b) => a.ended - b.ended);
    const all = [...ended, ...running];
    const plain = predictPlain(all);

    return all.map((stage, i) => ({
        name: nameOf(stage), runs: Boolean(stage.runs),
        measured: (stage.ended - stage.began) / 1000, plain: plain[i],
    })).filter(row => row.plain > 0);
}

function verdict(rows) {
    const n = rows.filter(row => !row.runs).length;
    const measured = mean(rows.map(row => row.measured));
    const plain = mean(rows.map(row => row.plain));
    const text = measured < plain
        ? `Yes: stages complete ${percent(1 - measured / plain)} sooner`
        : "Unclear: completion times exceed the lower bound without Stagecoach";

    return [
        el("p", { class: "big" }, text),
        note(`Mean completion time of the last ${n} ended stages and ${
             rows.length - n} running stages (predicted): ${
             seconds(measured)}; without Stagecoach: at least ${
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
                 ["f1", "without Stagecoach, at least"]]),
         asTable(["Stage", "Measured", "Without Stagecoach, at least"],
                 last.map(row => [row.name, seconds(row.measured)
                                  + (row.runs ? ", predicted" : ""),
                                  seconds(row.plain)])));
}

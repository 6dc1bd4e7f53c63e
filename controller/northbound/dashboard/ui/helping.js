// SPDX-License-Identifier: Apache-2.0

// Whether the order helps: completion times of stages beside what fair sharing
// would have taken at the least.
//
// Those that run count too, for as long as serving them by rank takes: what
// has ended is what the order put first, and would flatter it.

import { predictFair } from "./fair.js";
import { groupedBars } from "./bars.js";
import { asTable, el, legend, note, percent, seconds, show, widthFor }
    from "./dom.js";

const MAX_STAGES = 200;         // That are compared, of each kind.
const MAX_BARS = 12;            // That are drawn, the last ones.

function mean(numbers) {
    return numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
}

function nameOf({ cojob, rung }) {
    return `${cojob}/${rung}`;
}

function bars(rows) {
    return groupedBars(
        "Completion times of the last stages, and those predicted for fair "
            + "sharing",
        widthFor(document.getElementById("helping")),
        rows.map(row => ({ name: row.name, bars: [
            { value: row.measured, text: seconds(row.measured),
              className: row.runs ? "f0 running" : "f0" },
            { value: row.fair, text: seconds(row.fair), className: "f1" },
        ] })));
}

// Returns places {demand, left} of the rows of 'order', by name: what each
// needs, and the seconds until the last of its ports has served it and all
// before it.
function placesOf(order) {
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

// What 'stage', which runs, will have taken and needed, from its place.
function foresee(stage, place, now) {
    const demand = { ...stage.demand };

    for (const [port, work] of Object.entries(place.demand)) {
        demand[port] = (demand[port] ?? 0) + work;
    }
    return { ...stage, demand, ended: now + 1000 * place.left, runs: true };
}

// Returns rows {name, measured, fair, runs}, by end.
function compare(stages, order) {
    const now = Date.now();
    const ended = stages.filter(stage => stage.ended)
        .sort((a, b) => a.ended - b.ended).slice(-MAX_STAGES);
    const places = placesOf(order);
    const running = stages.filter(stage => !stage.ended)
        .slice(-MAX_STAGES).flatMap(stage => {
            const place = places.get(nameOf(stage));

            return place ? [foresee(stage, place, now)] : [];
        }).sort((a, b) => a.ended - b.ended);
    const all = [...ended, ...running];
    const fair = predictFair(all);

    return all.map((stage, i) => ({
        name: nameOf(stage), runs: Boolean(stage.runs),
        measured: (stage.ended - stage.began) / 1000, fair: fair[i],
    })).filter(row => row.fair > 0);
}

function verdict(rows, boundMean) {
    const n = rows.filter(row => !row.runs).length;
    const measured = mean(rows.map(row => row.measured));
    const fair = mean(rows.map(row => row.fair));
    const text = measured < fair
        ? `Yes: stages take ${percent(1 - measured / fair)} less`
        : "Not shown: stages take longer than a fair network alone would";

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
    show("helping", ...verdict(rows, stages.bound_mean_s), bars(last),
         legend([["f0", "measured (dashed: running)"],
                 ["f1", "fair sharing, predicted lower bound"]]),
         asTable(["Stage", "Measured", "Fair, at least"],
                 last.map(row => [row.name, seconds(row.measured)
                                  + (row.runs ? ", expected" : ""),
                                  seconds(row.fair)])));
}

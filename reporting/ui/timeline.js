// SPDX-License-Identifier: Apache-2.0

// Stages over time: one lane for each search, one bar for each stage.

import { LEFT, picture, rowName, svg } from "./dom.js";

const LANE = 24;
const AXIS = 22;
const RIGHT = 30;
const DAY_S = 86400;
const STEPS_S = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5,
                 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, DAY_S];

// Returns a step, in ms, that divides 'ms' into at most 'n' parts.
function stepFor(ms, n) {
    const least = ms / 1000 / n;

    return 1000 * (STEPS_S.find(s => s >= least)
                   ?? Math.ceil(least / DAY_S) * DAY_S);
}

function axis({ from, to, text }, x, width, height) {
    const step = stepFor(to - from, (width - LEFT) / 80);
    const marks = [];

    for (let i = Math.ceil(from / step); i * step <= to; i++) {
        const t = i * step;

        marks.push(svg("line", { x1: x(t), x2: x(t), y1: 0, y2: height }),
                   svg("text", { x: x(t), y: height + 15, class: "quiet",
                                 "text-anchor": "middle" }, text(t, step)));
    }
    return marks;
}

function bar(stage, y, x) {
    const width = Math.max(2, x(stage.to) - x(stage.from));
    const parts = [svg("rect", {
        x: x(stage.from), y: y + 3, width, height: LANE - 6, rx: 2,
        class: stage.className + (stage.rung % 2 ? " odd" : "")
            + (stage.runs ? " running" : ""),
    }, svg("title", {}, stage.title))];

    if (width > 14) {
        parts.push(svg("text", { x: x(stage.from) + 4, y: y + 17,
                                 class: "on-bar" }, `${stage.rung}`));
    }
    return parts;
}

// Draws 'stages', {cojob, rung, from, to, runs, title, className}, in the order
// of 'lanes', names of searches.  'span' is {from, to, text}: both ends of the
// axis and a function that formats a time, given the distance of the labels.
// All times are in ms.
export function timeline(label, width, lanes, stages, span) {
    const index = new Map(lanes.map((name, i) => [name, i]));
    const height = lanes.length * LANE;
    const scale = (width - LEFT - RIGHT) / (span.to - span.from);
    const x = t => LEFT + scale * (t - span.from);

    return picture(
        label, width, height + AXIS, ...axis(span, x, width, height),
        ...lanes.map((name, i) => rowName(i * LANE + 17, name)),
        ...stages.filter(stage => index.has(stage.cojob)).flatMap(
            stage => bar(stage, index.get(stage.cojob) * LANE, x)));
}

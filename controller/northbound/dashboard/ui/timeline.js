// SPDX-License-Identifier: Apache-2.0

// When stages began and ended: a lane a search, a bar a stage.

import { asTable, clock, note, seconds, show, svg } from "./dom.js";

const MAX_STAGES = 60;          // The last ones.
const WIDTH = 600;
const LEFT = 110;               // Of names.
const LANE = 24;
const AXIS = 22;
const N_COLOURS = 6;            // As many as style.css has.
const STEPS_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600,
                 86400];

// Lanes by search, in the order in which searches began.
function lanesOf(stages) {
    const lanes = new Map();

    for (const stage of stages) {
        if (!lanes.has(stage.cojob)) {
            lanes.set(stage.cojob, lanes.size);
        }
    }
    return lanes;
}

function axis(from, to, x, height) {
    const step = 1000 * (STEPS_S.find(s => (to - from) / 1000 / s <= 6)
                         ?? STEPS_S.at(-1));
    const marks = [];

    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
        marks.push(svg("line", { x1: x(t), x2: x(t), y1: 0, y2: height }),
                   svg("text", { x: x(t), y: height + 15, class: "quiet",
                                 "text-anchor": "middle" }, clock(t)));
    }
    return marks;
}

function bar(stage, y, x, now) {
    const end = stage.ended || now;
    const width = Math.max(2, x(end) - x(stage.began));
    const parts = [svg("rect", {
        x: x(stage.began), y: y + 3, width, height: LANE - 6, rx: 2,
        class: `f${stage.rung % N_COLOURS}`
            + (stage.ended ? "" : " running"),
    }, svg("title", {}, `${stage.cojob}/${stage.rung}: ${
        seconds((end - stage.began) / 1000)}${
        stage.ended ? "" : ", running"}`))];

    if (width > 14) {
        parts.push(svg("text", { x: x(stage.began) + 4, y: y + 17,
                                 class: "on-bar" }, `${stage.rung}`));
    }
    return parts;
}

export function drawTimeline(all) {
    const now = Date.now();
    const stages = all.stages.slice().sort(
        (a, b) => (a.ended || now) - (b.ended || now)).slice(-MAX_STAGES)
        .sort((a, b) => a.began - b.began);

    if (!stages.length) {
        show("timeline", note("No stage has begun yet."));
        return;
    }
    const lanes = lanesOf(stages);
    const from = stages[0].began;
    const to = Math.max(...stages.map(stage => stage.ended || now), from + 1);
    const x = t => LEFT + (WIDTH - LEFT - 30) * (t - from) / (to - from);
    const height = lanes.size * LANE;

    show("timeline", svg(
        "svg", { viewBox: `0 0 ${WIDTH} ${height + AXIS}`, role: "img",
                 "aria-label": `Timeline of the last ${stages.length} stages `
                     + `of ${lanes.size} searches` },
        ...axis(from, to, x, height),
        ...[...lanes].map(([name, i]) => svg(
            "text", { x: LEFT - 6, y: i * LANE + 17, "text-anchor": "end" },
            name)),
        ...stages.flatMap(stage => bar(
            stage, lanes.get(stage.cojob) * LANE, x, now))),
         note("A bar is a stage with its rung; a dashed edge: it runs."),
         asTable(["Stage", "Began", "Ended", "Took"], stages.map(stage => [
             `${stage.cojob}/${stage.rung}`, clock(stage.began),
             stage.ended ? clock(stage.ended) : "runs",
             seconds(((stage.ended || now) - stage.began) / 1000)])));
}

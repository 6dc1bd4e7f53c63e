// SPDX-License-Identifier: Apache-2.0

// The last stages over time.

import { asTable, clock, note, seconds, show, widthFor } from "./dom.js";
import { timeline } from "./timeline.js";

const MAX_STAGES = 60;          // The last ones are shown.

export function drawStages(all) {
    const now = Date.now();
    const stages = all.stages
        .map(({ cojob, rung, began, ended }) => {
            const to = ended || now;
            const took = seconds((to - began) / 1000);

            return { cojob, rung, from: began, to, runs: !ended, took,
                     className: "f0",
                     title: `${cojob}/${rung}: ${took}${
                         ended ? "" : ", running"}` };
        })
        .sort((a, b) => a.to - b.to).slice(-MAX_STAGES)
        .sort((a, b) => a.from - b.from);

    if (!stages.length) {
        show("timeline", note("No stage has begun yet."));
        return;
    }
    const lanes = [...new Set(stages.map(stage => stage.cojob))];
    const span = { from: stages[0].from, text: clock,
                   to: Math.max(...stages.map(stage => stage.to),
                                stages[0].from + 1) };
    const label = `Timeline of the last ${stages.length} stages of ${
        lanes.length} searches`;

    show("timeline",
         timeline(label, widthFor(document.getElementById("timeline")), lanes,
                  stages, span),
         note("A bar is a stage, labelled with its rung; odd rungs are paler. A "
              + "dashed edge marks a running stage."),
         asTable(["Stage", "Began", "Ended", "Took"], stages.map(stage => [
             `${stage.cojob}/${stage.rung}`, clock(stage.from),
             stage.runs ? "running" : clock(stage.to), stage.took])));
}

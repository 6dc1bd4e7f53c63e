// SPDX-License-Identifier: Apache-2.0

// Decisions with reason and actor, the newest first.

import { clock, el, note, show, table } from "./dom.js";

const KINDS = { all: "all", order: "ranks", stage: "stages",
                policy: "policies", lead: "leadership",
                operator: "operators" };

let rows = [];
let kind = "all";
let list = null;

function draw() {
    const shown = rows.filter(row => kind === "all" || row.kind === kind);

    list.replaceChildren(
        shown.length ? table(
            "decisions", ["Time", "Kind", "Subject", "Reason", "Actor"],
            shown.map(row => [clock(row.at), row.kind, row.subject,
                              row.reason, row.actor]))
        : note("No recent decisions of this kind."));
}

// Creates the elements once: the reader may have focused one of them.
function make() {
    const choice = el("select", { id: "kind" },
                      ...Object.entries(KINDS).map(
                          ([name, text]) => el("option", { value: name },
                                               text)));

    choice.addEventListener("change", () => {
        kind = choice.value;
        draw();
    });
    list = el("div", { class: "scroll", tabindex: "0", role: "region",
                       "aria-labelledby": "decisions-title" });
    show("decisions",
         el("p", {}, el("label", { for: "kind" }, "Show "), choice), list);
}

export function drawDecisions(decisions) {
    if (!list) {
        make();
    }
    rows = decisions.decisions.slice().reverse();
    draw();
}

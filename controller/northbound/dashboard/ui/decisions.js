// SPDX-License-Identifier: Apache-2.0

// What was decided, why and by whom, the newest first.

import { clock, el, note, show, table } from "./dom.js";

const KINDS = { all: "all", order: "places in the order", stage: "stages",
                policy: "policies", lead: "who leads",
                operator: "operators" };

let rows = [];
let kind = "all";
let list = null;

function draw() {
    const shown = rows.filter(row => kind === "all" || row.kind === kind);

    list.replaceChildren(
        shown.length ? table(
            "decisions", ["Time", "What", "Of", "Why", "Who"],
            shown.map(row => [clock(row.at), row.kind, row.subject,
                              row.reason, row.actor]))
        : note("Nothing of that kind was decided lately."));
}

// The choice and the list stay the same elements: a reader may be in them.
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

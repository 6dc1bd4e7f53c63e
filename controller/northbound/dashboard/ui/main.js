// SPDX-License-Identifier: Apache-2.0

// Updates the page: reads the state, and draws it.

import { drawDecisions } from "./decisions.js";
import { show } from "./dom.js";
import { drawHelping } from "./helping.js";
import { drawHosts } from "./hosts.js";
import { follow, get, getText } from "./live.js";
import { addUse, drawAhead, drawUse, seedUse } from "./ports.js";
import { addSeries } from "./series.js";
import { drawStages } from "./stages.js";

const HOUR_MS = 3600 * 1000;
const STATES = {
    live: "live, updated every two seconds",
    disconnected: "the controller does not reply; the page shows the last state",
};

// State and order are HTML of the controller, see dashboard.h.
async function refreshNow() {
    const html = await getText("/ui/now.html");

    if (html) {
        const page = new DOMParser().parseFromString(html, "text/html");

        show("now", ...page.body.childNodes);
    }
}

let order = null;
let stages = null;

async function refreshOrder() {
    order = await get("/v1/order") ?? order;
    if (order) {
        drawAhead(order);
    }
}

async function refreshStages() {
    stages = await get("/v1/stages") ?? stages;
}

async function refreshHosts() {
    const hosts = await get("/v1/hosts");

    if (hosts) {
        addUse(hosts);
        drawUse();
        drawHosts(hosts);
        addSeries(hosts);
    }
}

async function refreshDecisions() {
    const decisions = await get("/v1/decisions");

    if (decisions) {
        drawDecisions(decisions);
    }
}

async function refresh(withStages) {
    await Promise.all([refreshNow(), refreshOrder(), refreshHosts(),
                       refreshDecisions(), withStages && refreshStages()]);
    if (stages) {
        drawStages(stages);     // Running ones grow.
        if (withStages) {
            drawHelping(stages, order?.order ?? []);
        }
    }
}

function showState(state) {
    const live = document.getElementById("live");

    live.dataset.state = state;
    live.textContent = STATES[state];
}

async function begin() {
    document.getElementById("pictures").hidden = false;
    const past = await get(
        `/v1/history/ports?since=${Date.now() - HOUR_MS}&limit=2000`)
        .catch(() => null);

    if (past) {
        seedUse(past.ports);
    }
    follow(refresh, showState);
}

begin();

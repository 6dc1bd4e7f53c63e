// SPDX-License-Identifier: Apache-2.0

// Hosts: a cell for each, and a row for those that need attention.

import { asTable, el, note, percent, picture, seconds, show, svg, table,
         widthFor } from "./dom.js";
import { colourOf } from "./heat.js";
import { useOf } from "./ports.js";

const MAX_ROWS = 12;            // Rows of hosts that need attention.
const MAX_HOSTS = 1024;         // Cells, and rows of the table of all hosts.
const CELL = 24;
const LATE_S = 1;
const LEAST_COVERAGE = 0.9;

// Returns what is wrong at a host, "" if nothing is.
function trouble(host) {
    return [
        host.connected ? "" : "no agent is connected",
        host.state === "revoked" || host.state === "refusing"
            ? host.state : "",
        host.bypass ? "the kernel forwards without priorities" : "",
        host.connected && host.lag_s >= LATE_S
            ? `${seconds(host.lag_s)} behind the order` : "",
        host.connected && host.coverage < LEAST_COVERAGE
            ? `coverage ${percent(host.coverage)}` : "",
    ].filter(Boolean).join(", ");
}

function useText(host) {
    const use = useOf(host.host);

    return use === undefined ? "unknown" : percent(use);
}

function rowOf(host) {
    return [host.host, trouble(host) || host.state, useText(host),
            host.coverage === undefined ? "unknown" : percent(host.coverage)];
}

// A cell has the colour of the use of the host's busier direction, and a mark
// if the host needs attention.
function cell(host, x, y) {
    const use = useOf(host.host);
    const wrong = trouble(host);

    return [
        svg("rect", { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2,
                      ...(host.connected && use !== undefined
                          ? { fill: colourOf(use) } : { class: "empty" }) },
            svg("title", {}, `${host.host}: ${wrong || host.state}, use ${
                useText(host)}`)),
        ...(wrong ? [svg("text", { x: x + CELL / 2, y: y + 17,
                                   class: "on-bar",
                                   "text-anchor": "middle" },
                         host.connected ? "!" : "×")] : []),
    ];
}

function grid(hosts) {
    const width = widthFor(document.getElementById("hosts"));
    const n = Math.floor(width / CELL);

    return picture(
        "Use and state of each host", width,
        CELL * Math.ceil(hosts.length / n), ...hosts.flatMap(
            (host, i) => cell(host, CELL * (i % n),
                              CELL * Math.floor(i / n))));
}

// 'all' is the object of "/v1/hosts".
export function drawHosts(all) {
    const hosts = all.hosts.slice(0, MAX_HOSTS);
    const heads = ["Host", "State", "Use", "Coverage"];
    const wrong = hosts.filter(trouble);

    if (!hosts.length) {
        show("hosts", note("No host has reported yet."));
        return;
    }
    show("hosts",
         el("p", {}, wrong.length
             ? `${wrong.length} of ${all.hosts.length} hosts need attention`
             : `All ${all.hosts.length} hosts follow the order`),
         grid(hosts),
         note("A cell is a host, in the colour of its busier direction as "
              + "below. ! needs attention, × is not connected."),
         ...(wrong.length ? [table("hosts", heads,
                                 wrong.slice(0, MAX_ROWS).map(rowOf))]
             : []),
         ...(wrong.length > MAX_ROWS
             ? [note(`And ${wrong.length - MAX_ROWS} more.`)] : []),
         asTable(heads, hosts.map(rowOf)));
}

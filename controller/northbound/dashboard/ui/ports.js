// SPDX-License-Identifier: Apache-2.0

// Ports: the remaining demand of running stages, and the past use.

import { asTable, clock, note, percent, seconds, show, widthFor }
    from "./dom.js";
import { heatMap } from "./heat.js";

const MAX_PORTS = 24;           // Shown ports, the busiest ones.
const MAX_STAGES = 16;          // Shown stages, the first ones.
const MAX_SAMPLES = 90;
const BIN_MS = 2000;            // Length of a sample of use.

const bins = [];                // {at, use: Map port -> share}, oldest first.
let last = null;                // {at, hosts, use} at the start of the next bin;
                                // 'use' is by host, of the last bin.

function sum(numbers) {
    return numbers.reduce((total, x) => total + x, 0);
}

// Draws the seconds that each stage needs of each port, in their order.
export function drawAhead(order) {
    const stages = order.order.slice(0, MAX_STAGES);
    const need = (stage, port) => stage.demand[port] ?? 0;
    const ports = [...new Set(stages.flatMap(
        stage => Object.keys(stage.demand)))];
    const total = port => sum(stages.map(stage => need(stage, port)));
    const busiest = ports.sort((a, b) => total(b) - total(a))
        .slice(0, MAX_PORTS);

    if (!busiest.length) {
        show("ahead", note("No running stage has known demand."));
        return;
    }
    const most = Math.max(...stages.flatMap(
        stage => busiest.map(port => need(stage, port))));
    const columns = stages.map(stage => ({
        name: `${stage.cojob}/${stage.rung}`,
        cells: busiest.map(port => need(stage, port) > 0
            ? { share: need(stage, port) / most,
                text: seconds(need(stage, port)) } : null),
    }));

    show("ahead",
         heatMap("Seconds that each stage still needs of each port",
                 widthFor(document.getElementById("ahead")), busiest, columns,
                 ["0 s", seconds(most)]),
         note("Stages in the order in which they are served"
              + (ports.length > busiest.length
                  ? `, and the ${busiest.length} busiest of ${
                      ports.length} ports.` : ".")),
         asTable(["Port", "All", ...columns.map(column => column.name)],
                 busiest.map(port => [
                     port, seconds(total(port)),
                     ...stages.map(stage => seconds(need(stage, port)))])));
}

// Returns the share of each port's capacity that jobs used between two samples
// of "/v1/hosts" that are 'ms' apart.
function useBetween(before, after, ms) {
    const use = new Map();

    for (const host of after) {
        const old = before.find(h => h.host === host.host);
        const bps = sum(Object.values(host.ports));

        for (const dir of ["tx", "rx"]) {
            const bytes = (host.moved?.[dir] ?? 0) - (old?.moved?.[dir] ?? 0);

            if (old && bps && bytes >= 0) {
                use.set(`${host.host}:${dir}`,
                        Math.min(bytes * 8000 / ms / bps, 1));
            }
        }
    }
    return use;
}

// Begins with the history, rows of "/v1/history/ports".
export function seedUse(rows) {
    const byTime = new Map();

    for (const { at, port, ms, bytes, capacity_bps: bps } of rows) {
        const key = Math.round(at / 1000) * 1000;
        const use = byTime.get(key) ?? new Map();

        use.set(port, Math.min(bytes * 8000 / ms / bps, 1));
        byTime.set(key, use);
    }
    bins.unshift(...[...byTime].sort((a, b) => a[0] - b[0])
        .map(([at, use]) => ({ at, use })).slice(-MAX_SAMPLES / 2));
}

// Adds a sample of "/v1/hosts".
export function addUse(hosts) {
    const now = Date.now();

    if (last && now - last.at < BIN_MS) {
        return;
    }
    let use = null;

    if (last) {
        use = useBetween(last.hosts, hosts.hosts, now - last.at);
        bins.push({ at: now, use });
        bins.splice(0, bins.length - MAX_SAMPLES);
    }
    last = { at: now, hosts: hosts.hosts, use: use && byHost(use) };
}

// Returns the use of each host's busier direction.
function byHost(use) {
    const hosts = new Map();

    for (const [port, share] of use) {
        const host = port.slice(0, port.lastIndexOf(":"));

        hosts.set(host, Math.max(hosts.get(host) ?? 0, share));
    }
    return hosts;
}

// Returns the last use of the busier direction of 'host', or undefined.
export function useOf(host) {
    return last?.use?.get(host);
}

// Many ports are drawn as one row for each host.
export function drawUse() {
    const count = all => new Set(all.flatMap(bin => [...bin.use.keys()])).size;
    const whole = count(bins) <= MAX_PORTS;
    const drawn = whole ? bins : bins.map(
        ({ at, use }) => ({ at, use: byHost(use) }));
    const ports = [...new Set(drawn.flatMap(bin => [...bin.use.keys()]))];
    const total = port => sum(drawn.map(bin => bin.use.get(port) ?? 0));
    const busiest = ports.sort((a, b) => total(b) - total(a))
        .slice(0, MAX_PORTS);

    if (!busiest.length) {
        show("use", note("Waiting for the second sample."));
        return;
    }
    const columns = drawn.map(bin => ({
        name: clock(bin.at),
        cells: busiest.map(port => bin.use.has(port)
            ? { share: bin.use.get(port), text: percent(bin.use.get(port)) }
            : null),
    }));
    const now = drawn.at(-1).use;

    show("use",
         heatMap("Share of each port that jobs used, over time",
                 widthFor(document.getElementById("use")), busiest, columns,
                 ["idle", "full"]),
         note(whole ? "A row is a direction of a host's link."
             : `A row is the busier direction of a host's link: the ${
                 busiest.length} busiest of ${ports.length} hosts.`),
         asTable([whole ? "Port" : "Host", "Now", "Mean"], ports.map(port => [
             port, percent(now.get(port) ?? 0),
             percent(total(port) / drawn.length)])));
}

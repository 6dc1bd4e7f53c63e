// SPDX-License-Identifier: Apache-2.0

// Predicts the completion times of stages without Stagecoach.
//
// Each port serves the stages that still need it at equal rates, ports are
// independent, and a stage ends when its last port has served it.  Computing
// takes no time, so the result is a lower bound: a shorter measured time is a
// gain, a longer one proves nothing.

// Returns the times at which one port, shared fairly, has served 'items' of
// {release, work}, in seconds, in the order of 'items'.
export function shareOnePort(items) {
    const byRelease = items.map((item, i) => ({ ...item, i, left: item.work }))
        .sort((a, b) => a.release - b.release);
    const ends = new Array(items.length);
    let active = [];
    let next = 0;
    let now = byRelease[0]?.release ?? 0;

    while (next < byRelease.length || active.length) {
        if (!active.length) {
            now = Math.max(now, byRelease[next].release);
        }
        while (next < byRelease.length && byRelease[next].release <= now) {
            active.push(byRelease[next++]);
        }
        const first = Math.min(...active.map(item => item.left));
        const arrival = byRelease[next]?.release ?? Infinity;
        const step = Math.min(first * active.length, arrival - now);
        const served = step / active.length;

        // The item with the least work ends, in spite of rounding.
        const done = step < arrival - now ? first : -1;
        now += step;
        active = active.filter(item => {
            if (item.left <= done || item.left - served <= 0) {
                ends[item.i] = now;
                return false;
            }
            item.left -= served;
            return true;
        });
    }
    return ends;
}

// Returns the predicted completion time in seconds of each of 'stages', rows
// of "/v1/stages" that have ended.
export function predictPlain(stages) {
    const times = stages.map(() => 0);
    const ports = new Map();

    stages.forEach((stage, i) => {
        for (const [port, work] of Object.entries(stage.demand)) {
            const items = ports.get(port) ?? [];

            items.push({ i, release: stage.began / 1000, work });
            ports.set(port, items);
        }
    });
    for (const items of ports.values()) {
        shareOnePort(items).forEach((end, k) => {
            const { i, release } = items[k];

            times[i] = Math.max(times[i], end - release);
        });
    }
    return times;
}

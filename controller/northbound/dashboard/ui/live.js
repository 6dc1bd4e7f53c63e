// SPDX-License-Identifier: Apache-2.0

// Follows changes in the controller: by events, or by polling without them.
//
// An event only announces that something has changed.  The page reads the new
// state from "/v1/", so that it is correct even if it has missed events.

const POLL_MS = 2000;
const RETRY_MS = 30000;     // Interval of new attempts to get events.

// Minimum interval of reads for a kind of event: telemetry arrives every
// second, and a controller has many stages.
const LEAST_MS = { stage: 10000, telemetry: POLL_MS };

const EVENTS = ["order", "stage", "decision", "telemetry"];
const LOST = "lost";        // Event: earlier events were dropped.

// Thrown by get() and getText() if the controller does not reply.
class Away extends Error {
}

async function ask(path, read) {
    try {
        const answer = await fetch(path, { cache: "no-store" });

        return answer.ok ? await read(answer) : null;
    } catch (error) {
        throw new Away(path, { cause: error });
    }
}

// Returns the object at 'path', or null if there is none.
export function get(path) {
    return ask(path, answer => answer.json());
}

export function getText(path) {
    return ask(path, answer => answer.text());
}

// Calls 'changed' with the set of kinds of new events, at most once a second,
// less often for some kinds, and never while it runs.  Calls 'state' with
// "live", "polling" or "away" when the state of the connection changes.
export function follow(changed, state) {
    const waiting = new Set();
    let busy = false;
    let source = null;
    let known = "";
    const due = {};

    function setState(now) {
        if (now !== known) {
            known = now;
            state(now);
        }
    }

    async function work() {
        if (busy || !waiting.size || document.hidden) {
            return;
        }
        const now = Date.now();
        const kinds = new Set([...waiting].filter(
            kind => !(now < due[kind])));

        if (!kinds.size) {
            return;
        }
        busy = true;
        for (const kind of kinds) {
            waiting.delete(kind);
            due[kind] = now + (LEAST_MS[kind] ?? 0);
        }
        try {
            await changed(kinds);
            setState(source?.readyState === EventSource.OPEN ? "live"
                : "polling");
        } catch (error) {
            if (!(error instanceof Away)) {
                throw error;
            }
            for (const kind of kinds) {
                waiting.add(kind);
                delete due[kind];
            }
            setState("away");
        } finally {
            busy = false;
        }
    }

    function listen() {
        if (source && source.readyState !== EventSource.CLOSED) {
            return;
        }
        source = new EventSource("/v1/events");
        for (const kind of EVENTS) {
            source.addEventListener(kind, () => waiting.add(kind));
        }
        // Events may have been missed.
        for (const event of ["open", "error", LOST]) {
            source.addEventListener(event, askAll);
        }
    }

    function askAll() {
        EVENTS.forEach(kind => waiting.add(kind));
        work();
    }

    listen();
    setInterval(work, 1000);
    setInterval(listen, RETRY_MS);
    setInterval(() => {
        if (source.readyState !== EventSource.OPEN) {
            askAll();
        }
    }, POLL_MS);
}

// SPDX-License-Identifier: Apache-2.0

// News from the controller: its events where there are any, else questions.
//
// An event says only that something changed; what it is now is asked of
// "/v1/", so that a page that missed some is right all the same.

const POLL_MS = 2000;
const RETRY_MS = 30000;     // Without events, they are tried again so often.

// What comes of an event is asked for no more often than this: telemetry is
// there each second, and a controller's stages are many.
const LEAST_MS = { stage: 10000, telemetry: POLL_MS };

const EVENTS = ["order", "stage", "decision", "telemetry"];
const LOST = "lost";        // There were more than the controller keeps.

// What get() and getText() throw if the controller does not answer.
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

// Returns the object at 'path', or null if there is none there.
export function get(path) {
    return ask(path, answer => answer.json());
}

export function getText(path) {
    return ask(path, answer => answer.text());
}

// Calls 'changed' with the set of kinds of events that came, at most once a
// second, for some kinds less often, and never while it runs.  Calls 'state'
// with "live", "polling" or "away" when that changes.
export function follow(changed, state) {
    const waiting = new Set();
    let busy = false;
    let source = null;
    let known = "";
    const due = {};

    function tell(now) {
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
            tell(source?.readyState === EventSource.OPEN ? "live" : "polling");
        } catch (error) {
            if (!(error instanceof Away)) {
                throw error;
            }
            for (const kind of kinds) {
                waiting.add(kind);
                delete due[kind];
            }
            tell("away");
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
        // What was missed before, or will be, is not known.
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

// SPDX-License-Identifier: Apache-2.0

// News from the controller: its events where there are any, else questions.
//
// An event says only that something changed; what it is now is asked of
// "/v1/", so that a page that missed some is right all the same.

const POLL_MS = 2000;
const STAGES_MS = 10000;    // A controller's stages are many.
const RETRY_MS = 30000;     // Without events, they are tried again so often.
const EVENTS = ["order", "stage", "decision", "telemetry"];

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
// second and never while it runs; "stage" is in it once in ten seconds at
// most.  Calls 'state' with "live", "polling" or "away" when that changes.
export function follow(changed, state) {
    const waiting = new Set(EVENTS);
    let busy = false;
    let source = null;
    let known = "";
    let stagesDue = 0;

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
        const kinds = new Set(waiting);

        if (Date.now() < stagesDue) {
            kinds.delete("stage");
        } else if (kinds.has("stage")) {
            stagesDue = Date.now() + STAGES_MS;
        }
        if (!kinds.size) {
            return;
        }
        busy = true;
        kinds.forEach(kind => waiting.delete(kind));
        try {
            await changed(kinds);
            tell(source?.readyState === EventSource.OPEN ? "live" : "polling");
        } catch (error) {
            if (!(error instanceof Away)) {
                throw error;
            }
            kinds.forEach(kind => waiting.add(kind));
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
        // What was missed in between is not known.
        source.addEventListener(
            "open", () => EVENTS.forEach(kind => waiting.add(kind)));
    }

    listen();
    work();
    setInterval(work, 1000);
    setInterval(listen, RETRY_MS);
    setInterval(() => {
        if (source.readyState !== EventSource.OPEN) {
            EVENTS.forEach(kind => waiting.add(kind));
        }
    }, POLL_MS);
}

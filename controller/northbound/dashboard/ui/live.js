// SPDX-License-Identifier: Apache-2.0

// Reads the controller's state again and again.

const POLL_MS = 2000;
const STAGES_MS = 10000;    // A controller has many stages.

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

// Calls 'refresh' every two seconds, but not while it runs or the page is
// hidden; its argument says whether stages are due.  Calls 'state' with "live"
// or "disconnected" when that changes.
export function follow(refresh, state) {
    let busy = false;
    let known = "";
    let stagesDue = 0;

    function setState(now) {
        if (now !== known) {
            known = now;
            state(now);
        }
    }

    async function work() {
        if (busy || document.hidden) {
            return;
        }
        const now = Date.now();
        const stages = now >= stagesDue;

        busy = true;
        try {
            await refresh(stages);
            stagesDue = stages ? now + STAGES_MS : stagesDue;
            setState("live");
        } catch (error) {
            if (!(error instanceof Away)) {
                throw error;
            }
            setState("disconnected");
        } finally {
            busy = false;
        }
    }

    work();
    setInterval(work, POLL_MS);
}

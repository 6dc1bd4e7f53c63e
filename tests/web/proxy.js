// SPDX-License-Identifier: Apache-2.0

// A TCP port for browsers in front of the controller's unix socket.

import http from "node:http";

// Streams simulated events, see openProxy().
function openEvents(listeners, answer) {
    answer.writeHead(200, { "Content-Type": "text/event-stream",
                            "Cache-Control": "no-store" });
    answer.write(": hello\n\n");
    listeners.add(answer);
    answer.on("close", () => listeners.delete(answer));
}

function pass(socketPath, request, answer) {
    const onward = http.request({
        socketPath, path: request.url, method: request.method,
        headers: request.headers,
    }, reply => {
        answer.writeHead(reply.statusCode, reply.headers);
        reply.pipe(answer);
    });

    onward.on("error", () => answer.destroy());
    request.pipe(onward);
    answer.on("close", () => onward.destroy());
}

// Listens on a free port.  'events' is the source of "/v1/events": "made" for
// events of push(kind), "none", or "controller".  'made' has objects that
// replace the controller's reply for some paths.  While 'away' is set no
// request gets a reply.
export async function openProxy(socketPath, events, made = {}) {
    const listeners = new Set();
    const seen = [];
    const proxy = {
        away: false, seen,
        push(kind) {
            for (const answer of listeners) {
                answer.write(`event: ${kind}\ndata: {}\n\n`);
            }
        },
        close() {
            server.closeAllConnections();
            return new Promise(resolve => server.close(resolve));
        },
    };
    const server = http.createServer((request, answer) => {
        const instead = made[request.url.split("?")[0]];

        seen.push(request.url);
        if (proxy.away) {
            answer.destroy();
        } else if (request.url === "/v1/events" && events === "made") {
            openEvents(listeners, answer);
        } else if (request.url === "/v1/events" && events === "none") {
            answer.writeHead(404).end();
        } else if (instead) {
            answer.writeHead(200, { "Content-Type": "application/json" })
                .end(JSON.stringify(instead));
        } else {
            pass(socketPath, request, answer);
        }
    });

    await new Promise(resolve => server.listen(0, "127.0.0.1", resolve));
    proxy.url = `http://127.0.0.1:${server.address().port}`;
    return proxy;
}

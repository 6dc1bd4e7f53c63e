// SPDX-License-Identifier: Apache-2.0

// A TCP port for browsers in front of the controller's unix socket.

import http from "node:http";

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

// Listens on a free port.  'made' has objects that replace the controller's
// reply for some paths.  While 'away' is set no request gets a reply.
export async function openProxy(socketPath, made = {}) {
    const seen = [];
    const proxy = {
        away: false, seen,
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

# SPDX-License-Identifier: Apache-2.0

"""A controller's REST socket, and threads, for tests of its clients."""

import http.server
import json
import os
import socketserver
import threading


class FakeRest(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """It answers on RUNDIR/rest.sock, and remembers each request in 'asked'.
    A stage of a cojob that nobody has put is 404; with 'status', all is."""

    daemon_threads = True

    def __init__(self, rundir, status=None):
        self.asked, self.cojobs, self.status = [], set(), status
        super().__init__(os.path.join(rundir, "rest.sock"), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_stages(self):
        """("begin", rung, rungs, jobs) and ("end", rung), in order."""
        stages = []
        for method, path, body, status in self.asked:
            if "/stages/" in path and status == 200:
                rung = int(path.rpartition("/")[2])
                stages.append(("end", rung) if method == "DELETE" else (
                    "begin", rung, ",".join(
                        ":".join(str(r[k]) for k in ("iterations", "keep")
                                 if k in r) for r in body["rungs"]),
                    ",".join(body["jobs"])))
        return stages


class AtOnce:
    """Announces in the thread that asks for it, so that none is left out."""

    def submit(self, call, *args):
        call(*args)


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size) or b"null")
        cojob, *stage = self.path.split("/")[3:]
        status = self.server.status or (
            400 if size and self.command == "DELETE"
            else 404 if stage and cojob not in self.server.cojobs else 200)
        if status == 200:
            self.server.cojobs.add(cojob)
        self.server.asked.append((self.command, self.path, body, status))
        text = json.dumps({"error": "/: no"} if status >= 400 else {}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_DELETE = answer

    def address_string(self):
        return "client"

    def log_message(self, *args):
        pass

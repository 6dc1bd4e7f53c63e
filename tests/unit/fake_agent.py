# SPDX-License-Identifier: Apache-2.0

"""An agent, or a controller, for tests of its clients: it answers on
RUNDIR/agent.ctl, or 'name' there, and RUNDIR/progress.sock and remembers each
message.
"""

import contextlib
import json
import os
import socket
import tempfile
import threading
import time


class FakeAgent:
    """It answers a command in 'answers' {command: object} with the object, or
    what a function there returns, and others with "{}".  A 'mute' agent reads and never answers."""

    def __init__(self, answers=None, mute=False, name="agent.ctl"):
        self.folder = tempfile.TemporaryDirectory(prefix="sct-agent-")
        self.rundir = self.folder.name
        self.answers = answers or {}
        self.mute = mute
        self.calls = []
        self.open = []
        self.lock = threading.Lock()
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.control.bind(os.path.join(self.rundir, name))
        self.control.listen(50)
        self.progress = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.progress.bind(os.path.join(self.rundir, "progress.sock"))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.control.accept()
            self.open.append(connection)
            threading.Thread(target=self.serve, args=(connection,),
                             daemon=True).start()

    def serve(self, connection):
        decoder, text = json.JSONDecoder(), ""
        while data := connection.recv(65536):
            text += data.decode()
            try:
                request, end = decoder.raw_decode(text)
            except ValueError:
                continue
            text = text[end:]
            with self.lock:
                self.calls.append([request["method"]] + request["params"])
            if self.mute:
                continue
            result = self.answers.get(request["method"], {})
            if callable(result):
                result = result()
            with contextlib.suppress(OSError):  # Not all wait for it.
                connection.sendall(json.dumps(
                    {"id": request["id"], "error": None,
                     "result": json.dumps(result)}).encode())

    def get_calls(self, n=0):
        """The messages since the last call, at least 'n' commands."""
        deadline = time.monotonic() + 10
        while len(self.calls) < n and time.monotonic() < deadline:
            time.sleep(0.001)
        with self.lock:
            calls, self.calls = self.calls, []
        return calls

    def get_progress(self, timeout=10):
        """The next progress datagram, None if none comes."""
        self.progress.settimeout(timeout)
        try:
            return json.loads(self.progress.recv(65536))
        except socket.timeout:
            return None

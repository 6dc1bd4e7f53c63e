#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""systemctl.py enable --now|restart|stop UNIT...: does with units of a folder
what systemd would, as far as a test needs it where none runs: their ExecStart
as it is written, with their environment file, in the order of Requires and
After, those that are PartOf another with it.

$UNITS: the folder; $BIN: where the programs are that units have in @bindir@,
$BINDIR.  $SERVICES: a folder for pid files and logs.
"""

import configparser
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

UNITS = pathlib.Path(os.environ["UNITS"])
SERVICES = pathlib.Path(os.environ["SERVICES"])
PATIENCE = 20                   # Seconds to start, or to stop.


def full(name):
    return name if name.endswith(".service") else name + ".service"


class Unit:
    def __init__(self, name):
        self.name = full(name)
        match = re.fullmatch(r"(.*@)(.+)(\.service)", self.name)
        self.instance = match[2] if match else ""
        file = UNITS / (match[1] + match[3] if match else self.name)
        text = file.read_text().replace("\\\n", " ")
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        parser.read_string(text)
        self.unit, self.service = parser["Unit"], parser["Service"]
        self.pidfile = SERVICES / (self.name + ".pid")

    def list(self, key):
        return [full(n) for n in self.unit.get(key, "").split()]

    def environment(self):
        """The environment file, by the rules of systemd.exec(5)."""
        file = pathlib.Path(self.service.get("EnvironmentFile", "-/").lstrip(
            "-"))
        text = file.read_text().replace("\\\n", " ") if file.is_file() else ""
        pairs = (line.partition("=") for line in text.splitlines()
                 if "=" in line and not line.startswith(("#", ";")))
        return {name: value[1:-1] if value[:1] == '"' else value
                for name, _, value in pairs}

    def command(self):
        """ExecStart; a variable that is a word becomes any number of them."""
        line = self.service["ExecStart"].replace("%i", self.instance)
        line = line.replace("%l", socket.gethostname())
        variables = self.environment()
        words = []
        for word in shlex.split(line):
            words += (variables.get(word[1:], "").split()
                      if word.startswith("$") else [word])
        assert words[0].startswith(os.environ["BINDIR"] + "/"), words
        words[0] = os.environ["BIN"] + words[0][len(os.environ["BINDIR"]):]
        return words

    def pid(self):
        try:
            pid = int(self.pidfile.read_text())
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        except (OSError, ValueError):
            return 0
        # One that has ended stays until somebody asks how.
        return 0 if stat.rpartition(") ")[2].startswith("Z") else pid

    def start(self):
        for name in self.list("Requires"):
            Unit(name).start()
        if self.pid():
            return
        environment = dict(os.environ)
        notify = None
        if self.service["Type"] == "notify":
            notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            path = f"{SERVICES}/{self.name}.notify"
            if os.path.exists(path):
                os.unlink(path)
            notify.bind(path)
            notify.settimeout(PATIENCE)
            environment["NOTIFY_SOCKET"] = path
        with open(SERVICES / (self.name + ".log"), "ab") as log:
            process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=environment, start_new_session=True)
        self.pidfile.write_text(str(process.pid))
        if notify:
            while b"READY=1" not in notify.recv(4096):
                pass
        elif process.poll() is not None:
            sys.exit(f"{self.name}: exit status {process.returncode}")

    def stop(self):
        pid = self.pid()
        if pid:
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + PATIENCE
            while self.pid() and time.monotonic() < deadline:
                time.sleep(0.02)
            if self.pid():
                sys.exit(f"{self.name} does not end")
        for part in parts_of(self.name):
            part.stop()


def running():
    return [Unit(path.name[:-len(".pid")])
            for path in sorted(SERVICES.glob("*.pid"))]


def parts_of(name):
    return [unit for unit in running() if name in unit.list("PartOf")]


def main():
    verb, *names = sys.argv[1:]
    units = [Unit(name) for name in names if name != "--now"]
    assert verb != "enable" or "--now" in names
    for unit in units:
        parts = [part for part in parts_of(unit.name) if part.pid()]
        if verb in ("restart", "stop"):
            unit.stop()
        if verb in ("restart", "enable"):
            unit.start()
            for part in parts:
                part.start()


main()

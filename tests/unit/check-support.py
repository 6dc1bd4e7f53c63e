#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-support.py STAGECOACH: what `stagecoach support` takes, and that it
takes no secrets."""

import json
import os
import stat
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_agent import FakeAgent

stagecoach = os.path.abspath(sys.argv[1])
KEY = """-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj
-----END PRIVATE KEY-----
"""
# Each of these is planted, and must not be in the archive.
SECRETS = [
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", "s3cret-of-config",
    "s3cret-of-option", "s3cret-of-policy", "s3cret-of-environment",
    "s3cret-of-unit", "s3cret-of-journal", "s3cret-of-log",
    "s3cret-of-controller", "s3cret-of-agent", "s3cret-of-url",
    "0123456789abcdef0123456789abcdef", "binary-relay-key",
]


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as stream:
        stream.write(text)
    os.chmod(path, mode)


def plant(folder, rundir):
    """Writes the configuration, logs, and programs that print secrets."""
    write(f"{folder}/root/etc/default/stagecoach",
          "OPTIONS='--address 10.0.0.1 --auth-token s3cret-of-option'\n"
          "DB_PASSWORD=s3cret-of-config\nSTAGECOACH_TOKEN=0123456789abcdef"
          "0123456789abcdef\n")
    write(f"{folder}/root/etc/stagecoach/policy.json",
          json.dumps({"name": "mine", "api_key": "s3cret-of-policy"}))
    write(f"{folder}/root/etc/stagecoach/tls/identity.pem", KEY)
    write(f"{folder}/root/etc/stagecoach/relay.key", "binary-relay-key")
    write(f"{rundir}/controller.log",
          "started\n" + KEY + "password: s3cret-of-log\n"
          "GET http://eva:s3cret-of-url@host/x\n"
          # Without a name here, but configured as a password.
          "login with s3cret-of-config refused\n")
    for name, text in ("journalctl", "Nov 26 agent: token=s3cret-of-journal, "
                       "0123456789abcdef0123456789abcdef"), \
                      ("systemctl", "Environment=CLIENT_SECRET="
                       "s3cret-of-unit"):
        write(f"{folder}/bin/{name}", f"#!/bin/sh\necho '{text}'\n", 0o755)


def main():
    controller = FakeAgent({
        "controller/status": {"state": "active", "alarms": [
            "the policy is refused: token s3cret-of-controller",
            "x: secret=s3cret-of-controller"]},
    }, name="controller.ctl")
    with tempfile.TemporaryDirectory(prefix="sct-support-") as folder:
        # The agent's socket is beside the controller's.
        agent = FakeAgent({"agent/jobs": {"jobs": [
            {"job": "a/b", "password": "s3cret-of-agent"}]}})
        os.symlink(f"{agent.rundir}/agent.ctl",
                   f"{controller.rundir}/agent.ctl")
        plant(folder, controller.rundir)
        env = dict(os.environ, STAGECOACH_RUNDIR=controller.rundir,
                   STAGECOACH_TOKEN="s3cret-of-environment",
                   PATH=f"{folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin")
        file = f"{folder}/a.tar.gz"

        def run(*options):
            return subprocess.run(
                [stagecoach, "support", "--root", f"{folder}/root", *options],
                env=env, text=True, timeout=100, capture_output=True,
                cwd=folder)

        done = run(file)
        assert (done.returncode, done.stderr) == (0, ""), done
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        assert not any(secret in done.stdout for secret in SECRETS), \
            done.stdout

        texts = {}
        with tarfile.open(file) as archive:
            for entry in archive:
                if entry.isfile():
                    top, name = entry.name.split("/", 1)
                    assert top.startswith("stagecoach-support-"), top
                    texts[name] = archive.extractfile(entry).read().decode()
        for name, text in texts.items():
            for secret in SECRETS:
                assert secret not in text, (secret, name, text)

        # What it is for is there.
        assert json.loads(texts["controller/status.json"])["state"] \
            == "active", texts["controller/status.json"]
        assert '"job": "a/b"' in texts["agent/jobs.json"].replace(
            '":"', '": "'), texts["agent/jobs.json"]
        for text in "--address 10.0.0.1", '"mine"', "DB_PASSWORD=[removed]", \
                "identity.pem", "relay.key":
            assert text in texts["config.txt"], (text, texts["config.txt"])
        assert "started\n" in texts["logs.txt"], texts["logs.txt"]
        assert "Nov 26 agent: token=[removed], [removed]" \
            in texts["journal.txt"], texts["journal.txt"]
        assert "stagecoach " in texts["versions.txt"], texts["versions.txt"]
        assert "hosts; " in texts["doctor.txt"], texts["doctor.txt"]

        # The lists of what was taken and what was not.
        contents = texts["CONTENTS.txt"]
        assert contents in done.stdout, done.stdout
        for name in texts:
            assert f"taken: {name}, " in contents or name == "CONTENTS.txt", \
                (name, contents)
        assert "left out: environments of processes, " in contents, contents

        # An existing file stays, also as the target of a link.
        os.symlink(file, f"{folder}/link")
        for name in file, f"{folder}/link":
            done = run(name)
            assert done.returncode == 1 and "a new file is needed" \
                in done.stderr, done

        # By default the file has a name of its own.
        done = run()
        assert done.returncode == 0, done
        assert [name for name in os.listdir(folder)
                if name.startswith("stagecoach-support-")
                and name.endswith(".tar.gz")], os.listdir(folder)

        # Programs that do not run here are one line each.
        env["STAGECOACH_RUNDIR"] = f"{folder}/nowhere"
        done = run("other.tar.gz")
        assert done.returncode == 0, done
        for name in "controller", "agent":
            assert done.stdout.count(f"left out: {name}") == 1, done.stdout

    done = subprocess.run([stagecoach, "support", "--hours", "0"],
                          text=True, capture_output=True)
    assert done.returncode == 2 and "--hours" in done.stderr, done


main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""images.py SOURCE ARCHIVES FOLDER: unpacks the images in ARCHIVES, each into
a folder of its name, and checks that they have what they say, every path and
command of the chart and of their own configuration, and nothing needless.
"""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import unittest

import yaml

SOURCE, ARCHIVES, FOLDER = (sys.argv.pop(1) for _ in range(3))
sys.path.append(f"{SOURCE}/tests/unit")
import chart  # noqa: E402 (a module of the unit tests)

IMAGES = ["stagecoach-agent", "stagecoach-controller", "stagecoach-trainer"]
# What a container of the chart is given by its runtime or by Kubernetes.
GIVEN = ("/proc/", "/dev/", "/var/run/secrets/")
ALL_VALUES = {
    "image": {"registry": "registry.example.com"},
    "controller": {"addresses": ["10.0.0.1", "10.0.0.2", "10.0.0.3"],
                   "policy": "{}", "topology": "{}",
                   "rest": {"create": True}}}


def unpack(name):
    """Returns the configuration of an image, which it unpacks."""
    def get(digest):
        data = archive.extractfile(f"blobs/{digest.replace(':', '/')}").read()
        assert digest == "sha256:" + hashlib.sha256(data).hexdigest()
        return data

    with tarfile.open(f"{ARCHIVES}/{name}.tar") as archive:
        index = json.load(archive.extractfile("index.json"))
        manifest = json.loads(get(index["manifests"][0]["digest"]))
        config = json.loads(get(manifest["config"]["digest"]))
        assert len(manifest["layers"]) == 1
        layer = manifest["layers"][0]["digest"]
        get(layer)
        with tarfile.open(fileobj=archive.extractfile(
                f"blobs/{layer.replace(':', '/')}")) as files:
            files.extractall(f"{FOLDER}/{name}", numeric_owner=True)
    return config


CONFIGS = {name: unpack(name) for name in IMAGES}


def find(image, path):
    """Whether an image has this path; its links are those of its own."""
    return subprocess.run(
        ["chroot", f"{FOLDER}/{image}", "/usr/bin/ls", "-d", path],
        capture_output=True, check=False).returncode == 0


def find_command(image, command):
    folders = [""] if command.startswith("/") else ["/usr/bin/", "/usr/sbin/"]
    return any(find(image, folder + command) for folder in folders)


class Images(unittest.TestCase):
    def test_state_what_they_are(self):
        for name, config in CONFIGS.items():
            labels = config["config"]["Labels"]
            for label in "title", "description", "version", "created":
                self.assertTrue(labels[f"org.opencontainers.image.{label}"])
            self.assertTrue(find(name, labels["stagecoach.dev/sbom"]))
            self.assertTrue(find(name, config["config"]["Entrypoint"][0]))
            self.assertIn(config["config"]["User"], ("root", "stagecoach"))

    def test_start_their_programs(self):
        for name, config in CONFIGS.items():
            program = config["config"]["Entrypoint"][0]
            for option in "--version", "--help":
                done = subprocess.run(
                    ["chroot", f"{FOLDER}/{name}", program, option],
                    capture_output=True, text=True, check=True)
                self.assertIn("stagecoach", done.stdout)
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc",
             f"--root={FOLDER}/stagecoach-trainer", "stagecoach-trainer",
             "train", "--iterations", "5", "--workers", "1"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_list_their_packages(self):
        for name in IMAGES:
            with open(f"{ARCHIVES}/{name}.spdx.json",
                      encoding="utf-8") as stream:
                text = stream.read()
            with open(f"{FOLDER}/{name}/usr/share/stagecoach/sbom.spdx.json",
                      encoding="utf-8") as stream:
                self.assertEqual(text, stream.read())
            sbom = json.loads(text)
            self.assertEqual(sbom["spdxVersion"], "SPDX-2.3")
            image, *packages = sbom["packages"]
            contained = {r["relatedSpdxElement"] for r in sbom["relationships"]
                         if r["spdxElementId"] == image["SPDXID"]}
            self.assertEqual(contained, {p["SPDXID"] for p in packages})
            for package in packages:
                self.assertRegex(package["SPDXID"], r"^SPDXRef-[\w.-]+$")
                self.assertTrue(find(
                    name, f"/usr/share/doc/{package['name']}/copyright"),
                    package["name"])
            done = subprocess.run(
                ["dpkg-query", f"--admindir={FOLDER}/{name}/var/lib/dpkg",
                 "-W", "-f", "${Package} ${Version} ${db:Status-Status}\n"],
                capture_output=True, text=True, check=True)
            self.assertEqual(
                sorted(f"{p['name']} {p['versionInfo']} installed"
                       for p in packages), sorted(done.stdout.splitlines()))
            self.assertIn("libc6", {p["name"] for p in packages})

    def test_have_nothing_needless(self):
        for name in IMAGES:
            root = f"{FOLDER}/{name}"
            for path in ("usr/share/man", "usr/share/locale", "var/cache",
                         "var/lib/apt", "usr/bin/perl", "usr/bin/apt",
                         "usr/bin/openssl", "etc/ssl"):
                self.assertFalse(os.path.exists(f"{root}/{path}"), path)
            self.assertEqual(glob.glob(f"{root}/usr/bin/python*"), [])
            # No program with the rights of another user.
            for folder, _, files in os.walk(root):
                for file in files:
                    mode = os.lstat(f"{folder}/{file}").st_mode
                    self.assertFalse(mode & 0o6000, f"{folder}/{file}")

    def test_have_what_the_chart_uses(self):
        objects = yaml.safe_load_all(
            chart.render(f"{SOURCE}/packaging/chart", ALL_VALUES))
        seen = set()
        for o in objects:
            if o["kind"] not in ("StatefulSet", "DaemonSet"):
                continue
            pod = o["spec"]["template"]["spec"]
            for container in pod["initContainers"] + pod["containers"]:
                seen.add(container["name"])
                self.check_container(container)
        self.assertEqual(len(seen), 9)

    def check_container(self, container):
        image = container["image"].split("/")[-1].split(":")[0]
        version = container["image"].split(":")[-1]
        self.assertEqual(version, CONFIGS[image]["config"]["Labels"][
            "org.opencontainers.image.version"])
        place = f"{image}, {container['name']}"
        probes = [container[probe]["exec"]["command"] for probe in
                  ("startupProbe", "readinessProbe", "livenessProbe")
                  if probe in container]
        for words in [container["command"], *probes]:
            self.assertTrue(find_command(image, words[0]),
                            f"{place}: {words[0]}")
            if words[:-1] == ["/usr/bin/sh", "-c"]:
                self.check_script(image, words[-1], place)
        mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
        for path in mounts:
            self.assertTrue(find(image, path), f"{place}: {path}")
        words = container["command"] + container.get("args", [])
        given = (*GIVEN, *(f"{path}/" for path in mounts))
        for path in re.findall(r"(?<![\w:./])/[\w./-]+", " ".join(words)):
            self.assertTrue(path.startswith(given) or path in mounts
                            or find(image, path), f"{place}: {path}")
        if container["command"][0].endswith("/sh"):
            self.check_script(image, container["args"][0], place)

    def check_script(self, image, script, place):
        """Checks the commands of a script by the shell of the image."""
        done = subprocess.run(
            ["chroot", f"{FOLDER}/{image}", "/usr/bin/sh", "-nc", script],
            capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), place)
        script = re.sub(r"\b(if|then|do|exec|until) |; |\|\|? ", "\n",
                        script.replace("\\\n", " "))
        commands = set(re.findall(r"(?m)^\s*([a-z][\w-]+) ", script)) - {
            "case", "continue", "done", "echo", "exit", "for"}
        self.assertTrue(commands, place)
        for command in commands:
            self.assertTrue(find_command(image, command),
                            f"{place}: {command}")


unittest.main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-manifest.py FOLDER PAGE AGENT PODS CNI: the manifest of the DaemonSet
is YAML that has what the programs rely on (PAGE: the agent's manual page),
starts them with options that they know, and the CNI plug-in takes its part of
the example of a network.
"""

import json
import os
import re
import subprocess
import sys
import unittest

import yaml

FOLDER, PAGE, AGENT, PODS, CNI = (sys.argv.pop(1) for _ in range(5))


def read_options(program):
    done = subprocess.run([program, "--help"], capture_output=True, text=True,
                          timeout=20, check=True)
    return set(re.findall(r"--[a-z][a-z-]*", done.stdout))


class Manifest(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(FOLDER, "daemonset.yaml"),
                  encoding="utf-8") as stream:
            objects = list(yaml.safe_load_all(stream))
        self.objects = {o["kind"]: o for o in objects}
        self.spec = self.objects["DaemonSet"]["spec"]
        self.pod = self.spec["template"]["spec"]
        self.containers = {c["name"]: c for c in self.pod["containers"]}

    def test_selects_its_own_pods(self):
        self.assertEqual(self.objects["DaemonSet"]["apiVersion"], "apps/v1")
        labels = self.spec["template"]["metadata"]["labels"]
        self.assertEqual(self.spec["selector"]["matchLabels"], labels)

    def test_sees_the_node(self):
        self.assertIs(self.pod["hostNetwork"], True)
        self.assertIs(self.pod["hostPID"], True)
        self.assertEqual(self.pod["tolerations"], [{"operator": "Exists"}])
        volumes = {v["name"]: v["hostPath"]["path"]
                   for v in self.pod["volumes"]}
        self.assertEqual(volumes["cni-bin"], "/opt/cni/bin")
        for name, container in self.containers.items():
            mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
            self.assertEqual(volumes[mounts["/run/stagecoach"]["name"]],
                             "/run/stagecoach", name)
            self.assertEqual(volumes[mounts["/sys/fs/cgroup"]["name"]],
                             "/sys/fs/cgroup", name)
        mounts = {m["mountPath"]: m
                  for m in self.containers["agent"]["volumeMounts"]}
        for path in "/run/netns", "/var/run/netns":
            self.assertEqual(volumes[mounts[path]["name"]], "/run/netns")
            self.assertEqual(mounts[path]["mountPropagation"],
                             "HostToContainer")

    def test_mounts_only_what_there_is(self):
        names = {v["name"] for v in self.pod["volumes"]}
        for container in self.pod["containers"] + self.pod["initContainers"]:
            for mount in container["volumeMounts"]:
                self.assertIn(mount["name"], names)

    def test_has_the_privileges_and_no_more(self):
        for container in self.containers.values():
            context = container["securityContext"]
            self.assertNotIn("privileged", context)
            self.assertEqual(context["capabilities"]["drop"], ["ALL"])
        with open(PAGE, encoding="utf-8") as page:
            kept = re.findall(r"^\.It Dv CAP_(\w+)", page.read(), re.M)
        self.assertEqual(
            set(kept),
            set(self.containers["agent"]["securityContext"]["capabilities"]
                ["add"]))
        self.assertNotIn(
            "add", self.containers["pods"]["securityContext"]["capabilities"])

    def test_may_ask_the_kubelet(self):
        rules = self.objects["ClusterRole"]["rules"]
        self.assertEqual(rules, [{"apiGroups": [""], "verbs": ["get"],
                                  "resources": ["nodes/proxy"]}])
        binding = self.objects["ClusterRoleBinding"]
        self.assertEqual(binding["roleRef"]["name"],
                         self.objects["ClusterRole"]["metadata"]["name"])
        account = self.objects["ServiceAccount"]["metadata"]
        self.assertEqual(binding["subjects"][0]["name"], account["name"])
        self.assertEqual(binding["subjects"][0]["namespace"],
                         account["namespace"])
        self.assertEqual(self.pod["serviceAccountName"], account["name"])

    def test_uses_options_that_there_are(self):
        for name, program in ("agent", AGENT), ("pods", PODS):
            container = self.containers[name]
            self.assertEqual(container["command"],
                             [os.path.basename(program)])
            used = {word.split("=")[0] for word in container["args"]}
            self.assertLessEqual(used, read_options(program))

    def test_the_network_of_the_example_works(self):
        with open(os.path.join(FOLDER, "stagecoach.conflist"),
                  encoding="utf-8") as stream:
            network = json.load(stream)
        plugin = network["plugins"][-1]
        self.assertEqual(plugin["type"], os.path.basename(CNI))
        result = {"cniVersion": network["cniVersion"], "ips": []}
        plugin |= {"cniVersion": network["cniVersion"],
                   "name": network["name"], "prevResult": result}
        done = subprocess.run([CNI], env={"CNI_COMMAND": "ADD"}, timeout=20,
                              input=json.dumps(plugin), capture_output=True,
                              text=True, check=True)
        self.assertEqual(json.loads(done.stdout), result)


unittest.main()

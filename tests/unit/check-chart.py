#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-chart.py CHART FOLDER PAGE AGENT PODS CNI STAGECOACH CONTROLLER: the
objects of the chart have what the programs rely on (PAGE: the agent's manual
page) and start them with options that they know; wrong values are refused by
one line each; FOLDER has what the chart makes of its values.yaml, and an
example of a network from which the CNI plug-in takes its part.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import chart

CHART, FOLDER, PAGE, AGENT, PODS, CNI, STAGECOACH, CONTROLLER = (
    sys.argv.pop(1) for _ in range(8))
EXAMPLE = os.path.join(FOLDER, "values.yaml")

# Everything that values can add to or take from the objects.
VARIANTS = {
    "one machine": {"controller": {"addresses": ["10.0.0.1"]}},
    "controllers elsewhere": {"controller": {"deploy": False}},
    "no agents": {"agent": {"deploy": False}},
    "agents only": {"agent": {"pods": False, "cni": {"install": False},
                              "nodeSelector": {"gpu": "yes"},
                              "options": ["--rate=25Gbit"]},
                    "controller": {"deploy": False}},
    "labels": {"agent": {"podLabels": "job a/b\n\nsearch a/c\n"},
               "controller": {"deploy": False}},
    "everything": {
        "image": {"registry": "localhost:5000/x", "tag": "1-rc",
                  "pullSecrets": [{"name": "key"}]},
        "controller": {"create": False, "policy": '{"name": "p"}\n',
                       "topology": '{\n "switches": []\n}\n',
                       "rest": {"create": True, "tokens": True},
                       "options": ["--max-agents=64"]},
        "serviceMonitor": {"create": True, "labels": {"release": "p"}}},
}

# Values that are refused, and the place that the message must name.
WRONG = [
    ({"controller": {"addresses": ["10.0.0.1", "10.0.0.2"]}},
     "controller.addresses"),
    ({"controller": {"addresses": ["controller.example.com"]}},
     "controller.addresses.0"),
    ({"controller": {"addresses": []}}, "controller.addresses"),
    ({"controller": {"replicas": 3}}, "controller"),
    ({"image": {"registry": ""}}, "image.registry"),
    ({"image": {"pullPolicy": "Sometimes"}}, "image.pullPolicy"),
    ({"agent": {"tlsPath": "etc/tls"}}, "agent.tlsPath"),
    ({"agent": {"options": ["rate=1Gbit"]}}, "agent.options.0"),
    ({"agent": {"resources": {"request": {}}}}, "agent.resources"),
    ({"serviceMonitor": {"create": True}}, "controller.rest.create"),
    ({"controller": {"rest": {"tokens": True}}}, "controller.rest.create"),
    ({"agents": {}}, "values"),
]


def read_options(program):
    done = subprocess.run([*program, "--help"], capture_output=True, text=True,
                          timeout=20, check=True)
    return set(re.findall(r"--[a-z][a-z-]*", done.stdout))


def render(values=None):
    """Returns the objects that the chart makes of the example's values, with
    these."""
    values = chart.merge(chart.load(EXAMPLE), values or {})
    return list(yaml.safe_load_all(chart.render(CHART, values)))


def get_pod(objects, kind):
    """Returns the specification of the pods of the object of this kind."""
    return next(o["spec"]["template"]["spec"] for o in objects
                if o["kind"] == kind)


class Chart(unittest.TestCase):
    def test_makes_the_manifest_of_the_documents(self):
        with open(os.path.join(FOLDER, "stagecoach.yaml"),
                  encoding="utf-8") as stream:
            self.assertEqual(
                stream.read(), chart.render(CHART, chart.load(EXAMPLE)),
                f"make it by: tests/unit/chart.py {CHART} {EXAMPLE}")

    @unittest.skipUnless(shutil.which("helm"), "no helm")
    def test_means_the_same_to_helm(self):
        for name, values in VARIANTS.items():
            values = chart.merge(chart.load(EXAMPLE), values)
            with self.subTest(name), tempfile.NamedTemporaryFile(
                    "w", encoding="utf-8") as stream:
                yaml.safe_dump(values, stream)
                stream.flush()
                ours, theirs = (
                    {(o["kind"], o["metadata"]["name"]): o
                     for o in yaml.safe_load_all(text) if o}
                    for text in (chart.render(CHART, values),
                                 chart.render_by_helm(CHART, stream.name)))
                self.assertEqual(ours, theirs)

    def test_has_objects_that_kubernetes_knows(self):
        try:
            from kubernetes import client
        except ImportError:
            self.skipTest("no python3-kubernetes")

        def check(value, kind, place):
            found = re.match(r"(list|dict)(?:\[|\(str, )(.*)[\])]$", kind)
            if found:
                self.assertIsInstance(value, list if found[1] == "list"
                                      else dict, place)
                pairs = (value.items() if found[1] == "dict"
                         else enumerate(value))
                for key, part in pairs:
                    check(part, found[2], f"{place}/{key}")
            elif hasattr(client, kind):
                model = getattr(client, kind)
                names = {v: k for k, v in model.attribute_map.items()}
                self.assertIsInstance(value, dict, place)
                for key, part in value.items():
                    self.assertIn(key, names, place)
                    check(part, model.openapi_types[names[key]],
                          f"{place}/{key}")
                # The constructor refuses what lacks a required member.
                model(**{names[key]: part for key, part in value.items()})
            elif kind != "object":
                types = {"str": str, "int": int, "bool": bool}
                self.assertIs(type(value), types[kind], place)

        for name, values in VARIANTS.items():
            for o in render(values):
                version = o["apiVersion"].split("/")[-1]
                if o["kind"] != "ServiceMonitor":
                    check(o, version.capitalize() + o["kind"],
                          f"{name}: {o['kind']}")

    def test_names_the_place_of_wrong_values(self):
        for values, place in WRONG:
            with self.subTest(values):
                with self.assertRaisesRegex(chart.ChartError,
                                            rf"(?m)^{place}: "):
                    render(values)

    def test_describes_and_requires_every_value(self):
        def check(values, schema, place):
            if "required" not in schema:
                return
            self.assertEqual(set(schema["required"]), set(values), place)
            self.assertEqual(set(schema["properties"]) - {"global"},
                             set(values), place)
            self.assertIs(schema["additionalProperties"], False, place)
            for name, part in values.items():
                check(part, schema["properties"][name], f"{place}/{name}")

        check(chart.load(f"{CHART}/values.yaml"),
              chart.load(f"{CHART}/values.schema.json"), "values")

    def test_has_notes(self):
        for name, values in VARIANTS.items():
            notes = chart.render(CHART, chart.merge(chart.load(EXAMPLE),
                                                    values), notes=True)
            controllers = values.get("controller", {}).get("deploy", True)
            self.assertEqual("stagecoach status" in notes, controllers, name)

    def test_adds_what_values_ask_for(self):
        objects = render(VARIANTS["everything"])
        files = next(o for o in objects if o["kind"] == "ConfigMap")["data"]
        self.assertEqual(json.loads(files["policy.json"]), {"name": "p"})
        self.assertEqual(json.loads(files["topology.json"]), {"switches": []})
        pod = get_pod(objects, "StatefulSet")
        args = pod["containers"][-1]["args"]
        for word in ("--policy=/etc/stagecoach/config/policy.json",
                     "--topology=/etc/stagecoach/config/topology.json",
                     "--rest=pssl:8443:$(HOST_IP)", "--max-agents=64",
                     "--api-server=https://kubernetes.default.svc"):
            self.assertIn(word, args)
        self.assertEqual(next(o for o in objects if o["kind"] == "ClusterRole"
                              and o["metadata"]["name"]
                              == "stagecoach-controller")["rules"],
                         [{"apiGroups": ["authentication.k8s.io"],
                           "resources": ["tokenreviews"],
                           "verbs": ["create"]}])
        self.assertEqual(
            [c["name"] for c in pod["initContainers"] + pod["containers"]
             if "account" in (m["name"] for m in c["volumeMounts"])],
            ["controller"])
        self.assertNotIn("controller init", pod["initContainers"][1]["args"][0])
        self.assertIn("controller init", get_pod(
            render(), "StatefulSet")["initContainers"][1]["args"][0])
        endpoint = next(o for o in objects if o["kind"] == "ServiceMonitor")[
            "spec"]["endpoints"][0]
        ports = next(o for o in objects
                     if o["kind"] == "Service")["spec"]["ports"]
        self.assertIn(endpoint["port"], [port["name"] for port in ports])
        self.assertNotIn("honorLabels", endpoint)
        self.assertEqual({c["image"] for c in pod["containers"]},
                         {"localhost:5000/x/stagecoach-controller:1-rc"})
        objects = render(VARIANTS["labels"])
        self.assertEqual(next(o for o in objects if o["kind"] == "ConfigMap")[
            "data"]["labels"], "job a/b\n\nsearch a/c\n")
        pods = get_pod(objects, "DaemonSet")["containers"][-1]
        self.assertIn("--labels=" + pods["volumeMounts"][-1]["mountPath"]
                      + "/labels", pods["args"])
        self.assertIn("--labels", read_options([PODS]))
        kinds = {o["kind"] for o in render(VARIANTS["agents only"])}
        self.assertEqual(kinds, {"ServiceAccount", "DaemonSet"})


class Controller(unittest.TestCase):
    def setUp(self):
        self.objects = render(VARIANTS["everything"])
        self.set = next(o for o in self.objects if o["kind"] == "StatefulSet")
        self.pod = get_pod(self.objects, "StatefulSet")
        self.containers = self.pod["initContainers"] + self.pod["containers"]

    def test_has_a_replica_for_each_address(self):
        self.assertEqual(self.set["spec"]["replicas"], 3)
        one = render(VARIANTS["one machine"])
        self.assertEqual(next(o for o in one if o["kind"] == "StatefulSet")[
            "spec"]["replicas"], 1)

    def test_selects_its_own_pods(self):
        labels = self.set["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(self.set["spec"]["selector"]["matchLabels"], labels)
        service = next(o for o in self.objects if o["kind"] == "Service")
        self.assertEqual(service["spec"]["selector"], labels)
        self.assertEqual(self.set["spec"]["serviceName"],
                         service["metadata"]["name"])

    def test_needs_no_privilege(self):
        for container in self.containers:
            context = container["securityContext"]
            self.assertIs(context["allowPrivilegeEscalation"], False)
            self.assertIs(context["readOnlyRootFilesystem"], True)
            self.assertEqual(context["capabilities"].pop("add", []),
                             ["CHOWN"] if container["name"] == "owner" else [])
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})

    def test_mounts_only_what_there_is(self):
        names = {v["name"] for v in self.pod["volumes"]}
        for container in self.containers:
            for mount in container["volumeMounts"]:
                self.assertIn(mount["name"], names)

    def test_uses_options_that_there_are(self):
        ours = read_options([STAGECOACH, "controller"])
        theirs = read_options([CONTROLLER]) | {"-vconsole:info"}
        for container in self.pod["containers"]:
            words = container["command"] + container["args"]
            if words[0] == "/usr/bin/sh":
                last = words[2].splitlines()[-1]
                self.assertEqual(last, 'exec stagecoach controller exec "$@"')
                words[:4] = last.split()[1:-1]
            program, *words = words
            self.assertEqual(program, os.path.basename(STAGECOACH))
            self.assertEqual(words[:3],
                             ["controller", "exec", container["name"]])
            extra = words.index("--") if "--" in words else len(words)
            self.assertLessEqual({w.split("=")[0] for w in words[3:extra]},
                                 ours)
            self.assertLessEqual({w.split("=")[0] for w in words[extra + 1:]},
                                 theirs)


class Agent(unittest.TestCase):
    def setUp(self):
        self.objects = {o["kind"]: o for o in render(
            {"controller": {"deploy": False}})}
        self.spec = self.objects["DaemonSet"]["spec"]
        self.pod = self.spec["template"]["spec"]
        self.containers = {c["name"]: c for c in self.pod["containers"]}

    def test_selects_its_own_pods(self):
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
        self.assertEqual(volumes[mounts["/run/netns"]["name"]], "/run/netns")
        self.assertEqual(mounts["/run/netns"]["mountPropagation"],
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

    def test_may_watch_pods(self):
        rules = self.objects["ClusterRole"]["rules"]
        self.assertEqual(rules, [{"apiGroups": [""], "resources": ["pods"],
                                  "verbs": ["get", "list", "watch"]}])
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
            self.assertLessEqual(used, read_options([program]))

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

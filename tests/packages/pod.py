#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""pod.py MANIFEST KIND IMAGES NODE NAME ADDRESS NETNS: what a kubelet makes of
the pod of the StatefulSet or DaemonSet in MANIFEST, on a node with this NAME
and ADDRESS whose files are in the folder NODE.

Writes a bundle of OCI for each container, NODE/pod/KIND/CONTAINER, and prints
the names of the containers, those of initContainers first, with a "-".  Images
are unpacked in folders of IMAGES.  Volumes: files of the node, which are
NODE/PATH except for those of the kernel; a Secret is the folder
NODE/secrets/NAME.  A bundle also has the container's user and the words of its
probes, one a line.
"""

import json
import os
import re
import shutil
import sys

import yaml

MANIFEST, KIND, IMAGES, NODE, NAME, ADDRESS, NETNS = sys.argv[1:]
FIELDS = {"spec.nodeName": NAME, "status.hostIP": ADDRESS}


def expand(word, env):
    return re.sub(r"\$\((\w+)\)", lambda found: env[found[1]], word)


def write_files(folder, files):
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as stream:
            stream.write(text)
    return folder


def give(folder, group):
    """As fsGroup: the group may use it."""
    for path, _, names in os.walk(folder):
        for each in [path, *(f"{path}/{name}" for name in names)]:
            os.chown(each, -1, group)
            os.chmod(each, 0o2770 if os.path.isdir(each) else 0o440)


class Pod:
    def __init__(self, objects):
        self.objects = objects
        self.spec = self.find(KIND)["spec"]["template"]["spec"]
        self.context = self.spec.get("securityContext", {})
        self.folder = f"{NODE}/pod/{KIND}"
        self.volumes = {volume["name"]: self.make_volume(volume)
                        for volume in self.spec["volumes"]}

    def find(self, kind):
        return next(o for o in self.objects if o["kind"] == kind)

    def make_volume(self, volume):
        """Returns its folder on this machine."""
        if "hostPath" in volume:
            path = volume["hostPath"]["path"]
            if path.startswith("/sys/"):
                return path
            if volume["hostPath"]["type"] == "DirectoryOrCreate":
                os.makedirs(NODE + path, exist_ok=True)
            assert os.path.isdir(NODE + path), f"{path}: no such folder"
            return NODE + path
        folder = f"{self.folder}/volumes/{volume['name']}"
        if "secret" in volume:
            shutil.copytree(f"{NODE}/secrets/{volume['secret']['secretName']}",
                            folder)
        elif "configMap" in volume:
            write_files(folder, self.find("ConfigMap")["data"])
        else:
            assert "emptyDir" in volume, volume
            os.makedirs(folder)
        if "fsGroup" in self.context:
            give(folder, self.context["fsGroup"])
        return folder

    def make_mounts(self, container):
        mounts = [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "mode=755"]},
            {"destination": "/sys", "type": "bind", "source": "/sys",
             "options": ["rbind", "ro"]}]
        for mount in container["volumeMounts"]:
            spread = mount.get("mountPropagation") == "HostToContainer"
            mounts.append({
                "destination": mount["mountPath"], "type": "bind",
                "source": self.volumes[mount["name"]],
                "options": ["rbind", "rslave" if spread else "rprivate",
                            "ro" if mount.get("readOnly") else "rw"]})
        return mounts

    def make_bundle(self, container):
        env = {"PATH": "/usr/bin:/usr/sbin"}
        for variable in container.get("env", []):
            env[variable["name"]] = variable.get("value") or FIELDS[
                variable["valueFrom"]["fieldRef"]["fieldPath"]]
        context = self.context | container.get("securityContext", {})
        added = context["capabilities"].get("add", [])
        assert context["capabilities"]["drop"] == ["ALL"], container["name"]
        capabilities = [f"CAP_{name}" for name in added]
        uid = context.get("runAsUser", 0)
        assert uid or not context.get("runAsNonRoot"), container["name"]
        # Capabilities are effective for root only, as in every runtime.
        sets = {"bounding": capabilities, "permitted": capabilities,
                "effective": capabilities if not uid else []}
        words = container["command"] + container.get("args", [])
        image = container["image"].split("/")[-1].split(":")[0]
        namespaces = [{"type": kind} for kind in ("mount", "ipc", "uts")]
        assert self.spec["hostNetwork"]
        namespaces.append({"type": "network", "path": f"/run/netns/{NETNS}"})
        if not self.spec.get("hostPID"):
            namespaces.append({"type": "pid"})
        write_files(f"{self.folder}/{container['name']}", {
            "user": f"{uid}:{context.get('runAsGroup', 0)}",
            "config.json": json.dumps({
                "ociVersion": "1.0.0", "hostname": NAME,
                "root": {"path": f"{IMAGES}/{image}",
                         "readonly": context.get("readOnlyRootFilesystem",
                                                 False)},
                "mounts": self.make_mounts(container),
                "process": {
                    "args": [expand(word, env) for word in words],
                    "cwd": "/", "env": [f"{k}={v}" for k, v in env.items()],
                    "user": {"uid": uid, "gid": context.get("runAsGroup", 0),
                             "additionalGids": [context["fsGroup"]]
                             if "fsGroup" in context else []},
                    "capabilities": sets,
                    "noNewPrivileges":
                        not context.get("allowPrivilegeEscalation", True)},
                "linux": {"namespaces": namespaces}})} | {
            probe: "\n".join(
                container[probe]["exec"]["command"]) + "\n"
            for probe in ("startupProbe", "readinessProbe", "livenessProbe")
            if probe in container})


def main():
    with open(MANIFEST, encoding="utf-8") as stream:
        pod = Pod([o for o in yaml.safe_load_all(stream) if o])
    for mark, containers in (("-", pod.spec.get("initContainers", [])),
                             ("", pod.spec["containers"])):
        for container in containers:
            pod.make_bundle(container)
            print(mark + container["name"])


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""build.py [--dist DIR] [--out DIR] [NAME...]: makes images of containers from
Debian packages: those of Stagecoach that ./package has left in DIR (default
dist), and those of this Debian release that they depend on, by apt's sources
of this machine.  Each recipe NAME.json beside this program becomes
OUT/stagecoach-NAME.tar, an archive of OCI, with OUT/stagecoach-NAME.spdx.json,
the list of its packages (SPDX 2.3).

A recipe names files.  An image has these files, the libraries that they need,
and the copyright notices and dpkg's records of the packages that the files
come from.  Nothing is configured while it is made.  No daemon and no registry is
involved.  The same packages give the same image.

Needs root and buildah.  $SOURCE_DATE_EPOCH is the time of all files; default:
that of debian/changelog.
"""

import argparse
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SBOM = "usr/share/stagecoach/sbom.spdx.json"
BUSYBOX = "/usr/bin/busybox"

# Databases stay on their node from one image to the next, and so must the
# number of their user.
USERS = {"root": 0, "stagecoach": 10001}


def fail(text):
    print(f"build.py: {text}", file=sys.stderr)
    sys.exit(1)


def run(*words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False,
                          text=True, **options)
    if done.returncode:
        fail(f"{' '.join(map(str, words[:4]))} ...: failed")
    return done.stdout


class Package:
    """A file of dpkg, and the paths of its files with merged /usr."""

    def __init__(self, deb):
        self.deb = deb
        self.control = run("dpkg-deb", "-f", deb)
        self.paths = set()

    def field(self, name, default=None):
        found = re.search(rf"^{name}: (.*)$", self.control, re.M)
        return found[1] if found else default

    def unpack(self, stage):
        listing = run("sh", "-ec", 'dpkg-deb --fsys-tarfile "$1" | '
                      'tar -C "$2" -xv --keep-directory-symlink', "sh",
                      self.deb, stage)
        for path in listing.splitlines():
            path = path.removeprefix("./")
            self.paths.add(re.sub(r"^(bin|sbin|lib\w*)/", r"usr/\1/", path))


def ours_needed(recipe, ours):
    """Returns the names of our packages that the recipe's depend on."""
    names = [name for name in recipe["packages"] if name in ours]
    for name in names:
        depends = run("dpkg-deb", "-f", ours[name], "Depends")
        names += [other for other in re.findall("[a-z0-9][a-z0-9.+-]+", depends)
                  if other in ours and other not in names]
    return names


def download(recipe, dist, folder):
    """Returns the files of the recipe's packages and of all that they depend
    on; 'folder' keeps Debian's."""
    ours = {os.path.basename(deb).split("_")[0]: deb
            for deb in glob.glob(f"{dist}/*.deb") if "-dbgsym_" not in deb}
    for name in recipe["packages"]:
        if name.startswith("stagecoach-") and name not in ours:
            fail(f"{dist}: has no package {name}, ./package makes it")
    os.makedirs(f"{folder}/partial", exist_ok=True)
    # The standalone program for users is smaller than systemd.
    apt = ["apt-get", "-qq", "-y", "--no-install-recommends",
           "-o", "Dir::State::status=/dev/null",
           "-o", f"Dir::Cache::archives={folder}",
           "-o", "pkgCacheGen::Essential=none", "-o", "Debug::NoLocking=1",
           "-o", "APT::Sandbox::User=root", "install",
           *(ours[name] for name in ours_needed(recipe, ours)),
           *(name for name in recipe["packages"] if name not in ours),
           "base-files", "busybox", "libgcc-s1", "systemd-standalone-sysusers"]
    if subprocess.run([*apt, "--download-only"], check=False,
                      stderr=subprocess.DEVNULL).returncode:
        run("apt-get", "-qq", "update")
        run(*apt, "--download-only")
    chosen = re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)",
                        run(*apt, "--simulate"), re.M)
    return [ours.get(name) or
            f"{folder}/{name}_{version.replace(':', '%3a')}_{architecture}.deb"
            for name, version, architecture in chosen]


def make_merged(root):
    """Makes an empty file system with merged /usr, as Debian's."""
    for name in "bin", "sbin", "lib", "lib64":
        os.makedirs(f"{root}/usr/{name}")
        os.symlink(f"usr/{name}", f"{root}/{name}")


def make_links(stage, recipe, libraries):
    """Returns the links of the recipe, which it makes."""
    links = {f"/usr/bin/{name}": "busybox" for name in recipe["applets"]}
    links |= recipe.get("links", {})
    links = {path.replace("LIBRARIES", libraries): target
             for path, target in links.items()}
    for path, target in links.items():
        if not os.path.lexists(stage + path):
            os.symlink(target, stage + path)
    return list(links)


def follow(stage, path):
    """Returns 'path', which may have links, and what they lead to."""
    paths = []
    while True:
        folder = os.path.realpath(stage + os.path.dirname(path))
        path = os.path.join(folder, os.path.basename(path))[len(stage):]
        paths.append(path)
        if not os.path.islink(stage + path):
            return paths
        path = os.path.join(os.path.dirname(path), os.readlink(stage + path))


def find_libraries(stage, loader, path):
    """Returns the paths of the libraries that a program needs, and the
    loader's."""
    with open(stage + path, "rb") as stream:
        head = stream.read(4096)
    if head[:4] != b"\x7fELF" or loader.encode() not in head:
        return []
    done = subprocess.run(["chroot", stage, loader, "--list", path], text=True,
                          capture_output=True, check=False)
    if done.returncode or "not found" in done.stdout:
        fail(f"{path}: needs a library that no package has: "
             f"{done.stdout}{done.stderr}")
    return [loader, *re.findall(r"=> (/\S+)", done.stdout)]


def collect(stage, recipe):
    """Returns the paths of all files of the image, without folders."""
    loader = glob.glob(f"{stage}/lib*/ld-linux*.so.?")
    if len(loader) != 1:
        fail("libc6: has no loader")
    loader = "/" + os.path.relpath(loader[0], stage)
    # A library that libc opens by its name when a thread ends.
    gcc = glob.glob(f"{stage}/usr/lib/*/libgcc_s.so.1")[0][len(stage):]
    todo = [*make_links(stage, recipe, os.path.dirname(gcc)), gcc, BUSYBOX,
            "/etc/debian_version", "/etc/os-release"]
    for pattern in recipe["files"]:
        paths = sorted(glob.glob(stage + pattern))
        if not paths:
            fail(f"{pattern}: no package has it")
        todo += [path[len(stage):] for path in paths]
    found = set()
    for path in todo:
        paths = follow(stage, path)
        if not os.path.exists(stage + paths[-1]):
            fail(f"{path}: no package has {paths[-1]}")
        found.update(paths)
        todo += [library for library in
                 find_libraries(stage, loader, paths[-1])
                 if library not in todo]
    return found


def write(root, path, text):
    os.makedirs(os.path.dirname(f"{root}/{path}"), exist_ok=True)
    with open(f"{root}/{path}", "w", encoding="utf-8") as stream:
        stream.write(text)


def fill(stage, root, recipe, paths, packages):
    """Copies 'paths' to 'root', and writes what no package has."""
    notices = {f"/usr/share/doc/{package.field('Package')}/copyright"
               for package in packages}
    make_merged(root)
    for path in sorted(paths | notices):
        if os.path.exists(stage + path):
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            # Notices are links into other packages, sometimes.
            shutil.copy2(stage + path, root + path,
                         follow_symlinks=path in notices)
    for path in "proc", "sys", "dev", "tmp":
        os.mkdir(f"{root}/{path}")
    os.chmod(f"{root}/tmp", 0o1777)
    os.makedirs(f"{root}/run")
    os.makedirs(f"{root}/var")
    os.symlink("../run", f"{root}/var/run")
    for path, owner in recipe["folders"].items():
        os.makedirs(root + path, exist_ok=True)
        os.chown(root + path, USERS[owner], USERS[owner])
    write(root, "etc/passwd", "".join(
        f"{name}:x:{uid}:{uid}::/:/usr/sbin/nologin\n"
        for name, uid in USERS.items()))
    write(root, "etc/group", "".join(
        f"{name}:x:{uid}:\n" for name, uid in USERS.items()))
    write(root, "etc/nsswitch.conf", "hosts: files dns\n")
    write(root, "var/lib/dpkg/status", "\n".join(
        package.control.replace("\n", "\nStatus: install ok installed\n", 1)
        for package in packages))


def describe(recipe, name, packages, epoch):
    """Returns the list of packages in SPDX's words."""
    version = next(package.field("Version") for package in packages
                   if package.field("Package") == recipe["packages"][0])
    elements, relationships = [], []
    for package in packages:
        package_name = package.field("Package")
        vendor = ("stagecoach" if "stagecoach" in package_name else "debian")
        source = package.field("Source", package_name)
        with open(package.deb, "rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        spdx_id = "SPDXRef-Package-" + re.sub("[^a-zA-Z0-9.-]", "-",
                                              package_name)
        elements.append({
            "SPDXID": spdx_id, "name": package_name,
            "versionInfo": package.field("Version"),
            "supplier": "Organization: " + package.field(
                "Maintainer").split(" <")[0],
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "sourceInfo": f"built from the Debian source package {source}",
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
            "comment": "The image has a part of the files; licenses: "
                       f"/usr/share/doc/{package_name}/copyright",
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator":
                    f"pkg:deb/{vendor}/{package_name}@"
                    + package.field("Version").replace(":", "%3A").replace(
                        "+", "%2B")
                    + f"?arch={package.field('Architecture')}"}]})
        relationships.append({
            "spdxElementId": "SPDXRef-Image", "relationshipType": "CONTAINS",
            "relatedSpdxElement": spdx_id})
    digest = hashlib.sha256(json.dumps(elements).encode()).hexdigest()
    image = {"SPDXID": "SPDXRef-Image", "name": f"stagecoach-{name}",
             "versionInfo": version, "primaryPackagePurpose": "CONTAINER",
             "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": "NOASSERTION",
             "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT", "name": f"stagecoach-{name}-{version}",
        "documentNamespace":
            f"https://stagecoach.example/spdx/stagecoach-{name}-{digest}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "creators": ["Tool: stagecoach-packaging/container/build.py"]},
        "packages": [image, *elements],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT",
             "relationshipType": "DESCRIBES",
             "relatedSpdxElement": "SPDXRef-Image"}, *relationships]}


def build(name, dist, debs, out, epoch):
    with open(HERE / f"{name}.json", encoding="utf-8") as stream:
        recipe = json.load(stream)
    with tempfile.TemporaryDirectory(prefix="stagecoach-image-") as work:
        stage = f"{work}/stage"
        make_merged(stage)
        packages = [Package(deb) for deb in
                    download(recipe, dist, debs)]
        for package in packages:
            package.unpack(stage)
        paths = collect(stage, recipe)
        packages = sorted(
            (package for package in packages
             if any(path[1:] in package.paths for path in paths)),
            key=lambda package: package.field("Package"))
        sbom = describe(recipe, name, packages, epoch)
        text = json.dumps(sbom, indent=1) + "\n"
        version = sbom["packages"][0]["versionInfo"]
        store = ["buildah", "--root", f"{work}/store", "--runroot",
                 f"{work}/run", "--storage-driver", "vfs"]
        container = run(*store, "from", "scratch").strip()
        try:
            root = run(*store, "mount", container).strip()
            fill(stage, root, recipe, paths, packages)
            write(root, SBOM, text)
            labels = {"title": recipe["title"],
                      "description": recipe["description"],
                      "version": version,
                      "created": sbom["creationInfo"]["created"]}
            run(*store, "config", "--user", recipe["user"],
                "--workingdir", "/", "--env", "PATH=/usr/bin:/usr/sbin",
                "--entrypoint", json.dumps(recipe["entrypoint"]),
                "--cmd", "--help",
                *(word for key, value in labels.items() for word in
                  ("--label", f"org.opencontainers.image.{key}={value}")),
                "--label", f"stagecoach.dev/sbom=/{SBOM}", container)
            file = f"{out}/stagecoach-{name}.tar"
            pathlib.Path(file).unlink(missing_ok=True)
            run(*store, "commit", "--quiet", "--disable-compression=false",
                "--timestamp", str(epoch), container,
                f"oci-archive:{file}:stagecoach-{name}:{version}")
        finally:
            subprocess.run([*store, "rm", container], check=False,
                           stdout=subprocess.DEVNULL)
        write(out, f"stagecoach-{name}.spdx.json", text)
    print(f"{file}: {os.path.getsize(file) / 2**20:.1f} MiB, "
          f"{len(packages)} packages")


def main():
    names = sorted(path.stem for path in HERE.glob("*.json"))
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--dist", default="dist")
    parser.add_argument("--out", default=None, help="default: DIST/images")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=f"{', '.join(names)}; default: all")
    options = parser.parse_args()
    for name in options.names:
        if name not in names:
            parser.error(f"\"{name}\" is not one of {', '.join(names)}")
    if os.getuid():
        fail("must be run as root")
    if not shutil.which("buildah"):
        fail("buildah: not found, it is in the package buildah")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or run(
        "dpkg-parsechangelog", "-l", str(HERE / "../../debian/changelog"),
        "-S", "Timestamp"))
    os.umask(0o022)
    out = options.out or os.path.join(options.dist, "images")
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stagecoach-debs-") as debs:
        for name in options.names or names:
            build(name, os.path.abspath(options.dist), debs,
                  os.path.abspath(out), epoch)


main()

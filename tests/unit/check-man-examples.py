#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-man-examples.py STAGECOACH PAGE...: the JSON examples of the man pages
are read without complaint, and the members that a page documents are those
that the policies' schema has.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

LITERAL = re.compile(r"^\.Bd -literal.*?\n(.*?)^\.Ed", re.M | re.S)


def get_examples(page):
    """Returns the JSON objects of the page, by what they are."""
    found = {}
    for text in LITERAL.findall(page):
        members = json.loads(text)
        kind = ("policy" if "order" in members
                else "scenario" if "searches" in members
                else "sim-scenario" if "cojobs" in members
                else "search" if "trials" in members else "cluster")
        found[kind] = text
    return found


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=30)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: {done.stdout}")


stagecoach, policy_page, *scenario_pages = sys.argv[1:]
policy_text = pathlib.Path(policy_page).read_text(encoding="utf-8")
examples = get_examples(policy_text)
for page in scenario_pages:
    examples |= get_examples(pathlib.Path(page).read_text("utf-8"))

with tempfile.TemporaryDirectory() as folder:
    files = {}
    for kind, text in examples.items():
        files[kind] = pathlib.Path(folder, f"{kind}.json")
        files[kind].write_text(text, encoding="utf-8")
    run(stagecoach, "policy", "check", files["policy"])
    run(stagecoach, "search", "check", files["search"],
        "--cluster", files["cluster"])
    run(stagecoach, "sim", files["scenario"])
    run(stagecoach, "sim", files["sim-scenario"])

root = pathlib.Path(__file__).parents[2]
schema = json.loads((root / "policies/policy.schema.json").read_text())
properties = dict(schema["properties"])
for section in schema["properties"].values():
    properties |= section.get("properties", {})
entries = {}
for names, text in re.findall(r"^\.It Va ([^\n]+)\n(.*?)(?=^\.It|^\.El)",
                              policy_text, re.M | re.S):
    for name in names.split(" , "):
        entries[name] = text
if set(properties) != set(entries):
    sys.exit(f"{policy_page}: {sorted(set(properties) ^ set(entries))}: not in "
             "both the page and the schema")
for name, rule in properties.items():
    for key in ("minimum", "maximum", "default"):
        if (isinstance(rule.get(key), (int, float))
                and not re.search(rf"\b{rule[key]}\b", entries[name])):
            sys.exit(f"{policy_page}: {name}: does not give {key}, "
                     f"{rule[key]}")

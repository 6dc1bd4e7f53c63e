# SPDX-License-Identifier: Apache-2.0
"""check-readers-schema.py STAGECOACH: readers.schema.json and the reader agree.

As check-schema.py does for policies: every file of tests/readers/good is
accepted by both; every file of tests/readers/bad is refused by both, with the
messages in NAME.err beside it, but NAME.semantic.json by the reader alone.
"""

import json
import pathlib
import subprocess
import sys

import jsonschema

failures = []
stagecoach = pathlib.Path(sys.argv[1]).resolve()
schema = json.loads(pathlib.Path("policies/readers.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)


def check(path, good):
    run = subprocess.run([stagecoach, "policy", "check", path.name],
                         cwd=path.parent, capture_output=True, text=True,
                         timeout=10, check=False)
    expected = (f"{path.name}: ok\n" if good
                else path.with_suffix(".err").read_text())
    if (run.returncode, run.stdout, run.stderr) != (not good, expected, ""):
        failures.append(f"{path}: exit {run.returncode}, {run.stdout!r} "
                        f"{run.stderr!r} is not {expected!r}")
    errors = [e.message for e in
              validator.iter_errors(json.loads(path.read_text()))]
    if bool(errors) == (good or ".semantic" in path.suffixes):
        failures.append(f"{path}: the schema says {errors}")


def has_descriptions(place, members):
    for name, member in members.items():
        if not member.get("description"):
            failures.append(f"{place}/{name} has no description")
        has_descriptions(f"{place}/{name}", member.get("properties", {}))


top = schema["properties"]
has_descriptions("", top)
has_descriptions("/readers/*", top["readers"]["items"]["properties"])
n = 0
for kind in ("good", "bad"):
    for file in sorted(pathlib.Path("tests/readers", kind).glob("*.json")):
        check(file, kind == "good")
        n += 1
print("\n".join(failures + [f"{n} files, {len(failures)} failures"]))
sys.exit(bool(failures) or n < 20)

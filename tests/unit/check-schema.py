# SPDX-License-Identifier: Apache-2.0
"""check-schema.py STAGECOACH: policy.schema.json and the reader agree.

Every file of policies/ and tests/policies/good is accepted by both; every
file of tests/policies/bad is refused by both, with the messages that are in
NAME.err beside it.  What no schema can say (NAME.semantic.json) is refused by the reader
alone; what is not even JSON (NAME.syntax.json) has no say of the schema.
"""

import json
import pathlib
import subprocess
import sys

import jsonschema

failures = []


def fail(path, what):
    failures.append(f"{path}: {what}")


def reader_says(stagecoach, path):
    """Returns whether the reader accepts the file, and what it prints."""
    run = subprocess.run([stagecoach, "policy", "check", path.name],
                         cwd=path.parent, capture_output=True, text=True,
                         timeout=10, check=False)
    lines = run.stdout.splitlines()
    if (run.returncode not in (0, 1) or run.stderr or not lines
            or any(not line.startswith(path.name + ":") for line in lines)):
        fail(path, f"exit {run.returncode}, {run.stdout!r} {run.stderr!r}")
    return run.returncode == 0, run.stdout


def expect(stagecoach, path, validator, good):
    accepted, line = reader_says(stagecoach, path)
    if accepted != good:
        fail(path, f"the reader says {line!r}")
    if not good:
        expected = path.with_suffix(".err").read_text()
        if line != expected:
            fail(path, f"{line!r} is not {expected!r}")
    if ".syntax" in path.suffixes:
        return
    errors = [e.message for e in
              validator.iter_errors(json.loads(path.read_text()))]
    if bool(errors) == (good or ".semantic" in path.suffixes):
        fail(path, f"the schema says {errors}")


def has_descriptions(place, members):
    for name, member in members.items():
        if not member.get("description"):
            fail(place, f"{name} has no description")
        has_descriptions(f"{place}/{name}", member.get("properties", {}))


def main():
    stagecoach = pathlib.Path(sys.argv[1]).resolve()
    schema_file = pathlib.Path("policies/policy.schema.json")
    schema = json.loads(schema_file.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    has_descriptions(schema_file, schema["properties"])

    if reader_says(stagecoach, schema_file) != (
            True, "policy.schema.json: skipped, a JSON schema\n"):
        fail(schema_file, "the reader takes it for a policy")

    good = [p for p in sorted(pathlib.Path("policies").glob("*.json"))
            if ".schema" not in p.suffixes]
    good += sorted(pathlib.Path("tests/policies/good").glob("*.json"))
    bad = sorted(pathlib.Path("tests/policies/bad").glob("*.json"))
    if len(good) < 4 or len(bad) < 10:
        fail("tests/policies", f"{len(good)} good and {len(bad)} bad: too few")
    for path in good:
        expect(stagecoach, path, validator, True)
    for path in bad:
        expect(stagecoach, path, validator, False)

    print("\n".join(failures + [f"{len(good)} good, {len(bad)} bad, "
                                f"{len(failures)} failures"]))
    return 1 if failures else 0


sys.exit(main())

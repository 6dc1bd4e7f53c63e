# SPDX-License-Identifier: Apache-2.0
"""check-topology.py: topology.schema.json agrees with the topology's reader.

test-topology shows that the reader accepts what is in good and refuses what
is in bad; here the schema does.  NAME.semantic.json is what no schema can
say.
"""

import json
import pathlib
import sys

import jsonschema

schema = json.loads(
    pathlib.Path("controller/southbound/topology.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
failures = n = 0
for path in sorted(pathlib.Path("tests/topologies").glob("*/*.json")):
    errors = list(validator.iter_errors(json.loads(path.read_text())))
    good = path.parent.name == "good" or ".semantic" in path.suffixes
    n += 1
    if bool(errors) == good:
        print(f"{path}: {[e.message for e in errors]}")
        failures += 1
print(f"{n} files, {failures} failures")
sys.exit(failures > 0 or n < 15)

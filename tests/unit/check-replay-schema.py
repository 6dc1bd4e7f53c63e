# SPDX-License-Identifier: Apache-2.0
"""check-replay-schema.py: rules.schema.json agrees with the rules' reader.

test-replay-rules shows that the reader accepts what is in good and refuses
what is in bad; here the schema does.  NAME.semantic.json is what no schema
can say.
"""

import json
import pathlib
import sys

import jsonschema

schema = json.loads(pathlib.Path("shim/replay/rules.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
failures = n = 0
for path in sorted(pathlib.Path("tests/replay-rules").glob("*/*.json")):
    errors = list(validator.iter_errors(json.loads(path.read_text())))
    good = path.parent.name == "good" or ".semantic" in path.suffixes
    n += 1
    if bool(errors) == good:
        print(f"{path}: {[e.message for e in errors]}")
        failures += 1
print(f"{n} files, {failures} failures")
sys.exit(failures > 0 or n < 20)

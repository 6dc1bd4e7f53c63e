# SPDX-License-Identifier: Apache-2.0
"""check-good-bad.py SCHEMA FOLDER LEAST: a schema agrees with its reader.

A unit test shows that the reader accepts what is in FOLDER/good and refuses
what is in FOLDER/bad; here the schema does.  NAME.semantic.json is what no
schema can say.  There are at least LEAST files.
"""

import json
import pathlib
import sys

import jsonschema

schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
failures = n = 0
for path in sorted(pathlib.Path(sys.argv[2]).glob("*/*.json")):
    errors = list(validator.iter_errors(json.loads(path.read_text())))
    good = path.parent.name == "good" or ".semantic" in path.suffixes
    n += 1
    if bool(errors) == good:
        print(f"{path}: {[e.message for e in errors]}")
        failures += 1
print(f"{n} files, {failures} failures")
sys.exit(failures > 0 or n < int(sys.argv[3]))

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-stage-names.py ROOT: base/stage-name.h alone formats stage names.

Prints "FILE:LINE: WHAT" for each other format of the product, in C or CUDA,
in which a number follows a string and "/", or begins with "/" and a number,
and exits with 1 if there is one.  A prefix length or the index of a JSON
pointer is no rung: OTHERS.  Before that it examines the formats that the
product once had.
"""

import pathlib
import re
import sys

FOLDERS = ("agent", "base", "cli", "controller", "lab", "order", "policies",
           "reporting", "scenario", "shim", "sim", "trainer", "wire")
HOME = "base/stage-name.h"
OTHERS = {("base/json-check.c", "/%zu"), ("shim/classify/prefix.c", "/%3u")}

LITERAL = r'"(?:\\.|[^"\\\n])*"'
COMMENT = re.compile(rf"({LITERAL})|/\*.*?\*/|//[^\n]*", re.S)
# Adjacent literals, and the macros of <inttypes.h> between them.
FORMAT = re.compile(rf"{LITERAL}(?:\s*(?:{LITERAL}|PRI\w+))*")
NUMBER = r"%[-+ 0#]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|j|z|t)?[diufg]"
STAGE_NAME = re.compile(rf"(?:%[-\d.*]*s|^)/{NUMBER}")

# Code, and whether it formats the name of a stage.
CASES = (
    ('xasprintf("%s/%d", row->cojob, row->rung)', True),
    ('ds_put_format(&named, "%s%s/%d (%.1f s)", comma, cojob, rung)', True),
    ('add(e, "its stage %s/%d is number %"PRIuSIZE" of ", c, rung)', True),
    ('xasprintf("stage %s/%d %s", cojob, rung, what)', True),
    ('asprintf(&name, "%s/%d", cojob ? cojob : "", rung)', True),
    ('xasprintf("%.*s/%u", n, cojob, rung)', True),
    ('xasprintf("%s/"\n    "%"PRId64, cojob, rung)', True),
    ('put_row_name(stream, s->cojob, "/%d", s->rung, "")', True),
    ('ds_put_format(html, "/%.0f</th>", rung)', True),
    ('xasprintf(STAGE_NAME_FMT, cojob, rung)', False),
    ('xasprintf("%s/%s", cojob, job)', False),
    ('xasprintf("%d/%d", done, all)', False),
    ('/* "%s/%d" */ f("%s %d")', False),
    ('f("unix://%s"); g("%s %d")', False),
)


def find(text):
    """Yields (line, format) for each format of a stage name in 'text'."""
    code = COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    for match in FORMAT.finditer(code):
        joined = re.sub(r"PRI([diu])\w+", r'"\1"', match[0])
        joined = re.sub(r'"\s*"', "", joined)[1:-1]
        found = STAGE_NAME.search(joined)
        if found:
            yield text.count("\n", 0, match.start()) + 1, found[0]


def main():
    for code, is_name in CASES:
        assert bool(list(find(code))) == is_name, code
    root = pathlib.Path(sys.argv[1])
    files = [p for folder in FOLDERS for p in (root / folder).rglob("*")
             if p.suffix in (".c", ".h", ".cu")]
    faults = 0
    for path in sorted(files):
        name = path.relative_to(root).as_posix()
        for line, found in find(path.read_text(encoding="utf-8")):
            if name != HOME and (name, found) not in OTHERS:
                print(f'{name}:{line}: "{found}" formats the name of a stage; expected '
                      f"STAGE_NAME_FMT of {HOME}")
                faults += 1
    assert list(find((root / HOME).read_text(encoding="utf-8"))), HOME
    print(f"{len(files)} files, {faults} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

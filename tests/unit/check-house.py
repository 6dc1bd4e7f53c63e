#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-house.py size|words ROOT: keeps the tree from growing.

Compares what it counts with the limits in house-limits.json, which are the
counts of the last change, and prints both.  Exits with 1 if a count is above
its limit.  A change that raises a limit adds to its "why" what it is for; a
change that falls below lowers it.

size: lines, and lines with code, of the C files of the product and of tests.
words: marks of a private dialect per 1,000 words of comments, and words in
names, comments and messages that the glossary of CONTRIBUTING.md replaces,
in the product and in tests.
"""

import json
import pathlib
import re
import subprocess
import sys

SUFFIXES = (".c", ".h", ".cu", ".cuh")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|'
                     r'(/\*.*?\*/|//[^\n]*)', re.S)
MARKS = re.compile(r"\b(?:who|whom|whose|whoever|nobody|says|told|tell|shall|"
                   r"anew|in vain|so many|of which|that of|is none)\b", re.I)
# The column "not" of the glossary, without words that have another meaning
# elsewhere: "place" (of an error, in a table), "ahead" (looking ahead),
# "silent" (what sends nothing; of stages and cojobs it is "inactive"), "peer",
# "left", "alone", "move", "turn", "room", "way", "worker" and the like.
NOT = re.compile(r"(?<![A-Za-z])(?:answer(?:s|ed|ing)?|ask(?:s|ed|ing)?|"
                 r"look(?:s|ed|ing)?(?![_ ]?(?:up|ahead))|told|untold|heard|"
                 r"owed|awake|evidence|wish(?:es)?|naps?|succession|"
                 r"successors?|handover|doubtful|tidy|away|gone|who|nobody's|"
                 r"in_step|(?:stage|cojob)[-_ ]silent)(?![a-z])", re.I)
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


def c_files(root):
    """Returns the product's C files and those of tests."""
    names = subprocess.run(["git", "-C", root, "ls-files"], check=True,
                           capture_output=True, text=True).stdout.split("\n")
    paths = [name for name in names if name.endswith(SUFFIXES)
             and (pathlib.Path(root) / name).exists()]
    tests = [name for name in paths if name.startswith("tests/")]
    return sorted(set(paths) - set(tests)), tests


def lines_of(root, names):
    """Returns the lines of the files, and of these the ones with code."""
    lines = code = 0
    for name in names:
        text = (pathlib.Path(root) / name).read_text()
        lines += text.count("\n")
        bare = COMMENT.sub(lambda m: "" if m.group(1) else m.group(0), text)
        code += sum(1 for line in bare.split("\n") if line.strip())
    return lines, code


def count_size(root):
    product, tests = c_files(root)
    lines, code = lines_of(root, product)
    return {"lines": lines, "code_lines": code,
            "test_lines": lines_of(root, tests)[0]}


def marks_of(root, names):
    """Returns the marks in 1,000 words of the comments of the files."""
    comments = " ".join(m.group(1) for name in names for m in COMMENT.finditer(
        (pathlib.Path(root) / name).read_text()) if m.group(1))
    return round(1000 * len(MARKS.findall(comments))
                 / len(WORD.findall(comments)), 2)


def replaced_of(root, names):
    """Returns how many words the files have that the glossary replaces."""
    return sum(len(NOT.findall((pathlib.Path(root) / name).read_text()))
               for name in names)


def count_words(root):
    product, tests = c_files(root)
    return {"marks_per_1000_words": marks_of(root, product),
            "test_marks_per_1000_words": marks_of(root, tests),
            "not_words": replaced_of(root, product),
            "test_not_words": replaced_of(root, tests)}


def main():
    what, root = sys.argv[1:]
    if subprocess.run(["git", "-C", root, "rev-parse"],
                      capture_output=True).returncode:
        print("skip: not a git checkout")
        return 77
    path = pathlib.Path(__file__).parent / "house-limits.json"
    limits = json.loads(path.read_text())[what]
    failed = 0
    for name, value in {"size": count_size,
                        "words": count_words}[what](root).items():
        above = value > limits[name]["at_most"]
        failed |= above
        print(f"{name}: {value}; at most {limits[name]['at_most']}"
              + (": above the limit of house-limits.json" if above else ""))
    return failed


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-outputs.py SOURCE: in the documents that show commands with their
output, each block of output belongs to commands that a test runs, by
tests/lab/run-document.py.

A block of "text" is output: it follows a block of "sh" that is not left out as
"<!-- takes minutes -->".  Blocks of other languages are files, code or JSON; a
block without a language, or of "console", would be output that nothing runs.
A document with output is named in a test that calls run-document.py.
"""

import pathlib
import re
import sys

DOCUMENTS = ["README.md", "docs/install.md", "docs/operations.md",
             "docs/simulate.md", "docs/training.md", "docs/tutorial.md"]
BLOCK = re.compile(r"(?:^ *<!-- (.*?) -->\n)?^ *```(\S*)\n.*?^ *```$", re.M | re.S)
CODE = {"c", "json", "python", "yaml"}


def mistakes_in(name, text):
    """Yields what is wrong with the blocks of a document."""
    before = None
    for match in BLOCK.finditer(text):
        mark, kind = match.groups()
        place = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        if match[0].startswith(" "):
            yield f"{place}: a block that is indented, which no test sees"
        elif kind == "text" and before != "sh":
            yield f"{place}: output of commands that no test runs"
        elif kind not in CODE | {"sh", "text"}:
            yield f"{place}: a block of \"{kind}\"; expected sh, text or code"
        before = "left out" if mark == "takes minutes" else kind
    if re.search(r"^ {4}\$ ", text, re.M):
        yield f"{name}: a command with \"$\" outside of a block of sh"


def tests_of(source):
    """Returns the texts of the tests that run documents."""
    return [text for path in (source / "tests").rglob("*")
            if path.name == "meson.build" or path.suffix == ".sh"
            for text in [path.read_text(encoding="utf-8")]
            if "run-document" in text]


def check_itself():
    for blocks, good in (
            ("```sh\na\n```\n```text\nb\n```\n", True),
            ("```sh\na\n```\n\nText.\n\n```json\nb\n```\n", True),
            ("<!-- takes minutes -->\n```sh\na\n```\n```text\nb\n```\n", False),
            ("```json\na\n```\n```text\nb\n```\n", False),
            ("```\n$ a\nb\n```\n", False),
            ("```console\n$ a\nb\n```\n", False),
            ("* item\n\n  ```sh\n  a\n  ```\n", False),
            ("    $ a\n    b\n", False)):
        assert good == (not list(mistakes_in("", blocks))), blocks


def main():
    source = pathlib.Path(sys.argv[1])
    check_itself()
    tests = tests_of(source)
    mistakes = []
    for name in DOCUMENTS:
        mistakes += mistakes_in(
            name, (source / name).read_text(encoding="utf-8"))
        if not any(name in text for text in tests):
            mistakes.append(f"{name}: no test runs its commands")
    sys.exit("\n".join(mistakes) or 0)


main()

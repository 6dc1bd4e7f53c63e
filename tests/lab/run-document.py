#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""run-document.py FILE OLD=NEW...: runs the commands of a document, the
blocks of "sh", in one shell, and compares what each block prints with the
block of "text" after it, as doctest does: "..." stands for anything, and
blanks do not count.  A block without one may print what it likes.  Of blocks
after "<!-- takes minutes -->" only the files that they name must be there.

Each OLD in commands that is a whole word is replaced by NEW, and in what they
print NEW by OLD.
"""

import doctest
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r"(<!-- takes minutes -->\n)?^```(\w+)\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Shell:
    """A shell that is given one piece of a script after the other."""

    def __init__(self, output):
        self.output = open(output, "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            ["sh", "-e"], stdin=subprocess.PIPE, stdout=self.output,
            stderr=subprocess.STDOUT, text=True)
        self.done = output + ".done"

    def run(self, commands):
        """Returns what the commands print, and whether all succeeded."""
        before = self.output.seek(0, os.SEEK_END)
        self.process.stdin.write(f"{commands}\n: >{self.done}\n")
        self.process.stdin.flush()
        while not os.path.exists(self.done) and self.process.poll() is None:
            time.sleep(0.02)
        good = os.path.exists(self.done)
        if good:
            os.unlink(self.done)
        self.output.seek(before)
        return self.output.read(), good


def replace_word(text, old, new):
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda m: new, text)


def check_named(commands, directory):
    """Commands that are not run: is there what they name?"""
    for word in commands.replace('"$src"', directory).replace(
            "$src", directory).replace('"', "").split():
        if word.startswith(("./", "/")):
            path = pathlib.Path(directory, word)
            assert path.exists(), f"{word} is not there"
            assert word[0] != "." or os.access(path, os.X_OK), word


def main():
    document, *pairs = sys.argv[1:]
    text = pathlib.Path(document).read_text(encoding="utf-8")
    blocks = [(slow, kind, body, text.count("\n", 0, m.start(3)) + 1)
              for m in BLOCK.finditer(text)
              for slow, kind, body in [m.groups()]]
    replaced = [pair.split("=", 1) for pair in pairs]
    checker = doctest.OutputChecker()
    with tempfile.TemporaryDirectory() as folder:
        shell = Shell(folder + "/output")
        for i, (slow, kind, body, line) in enumerate(blocks):
            if kind != "sh":
                continue
            if slow:
                check_named(body, os.getcwd())
                continue
            commands = body
            for old, new in replaced:
                commands = replace_word(commands, old, new)
            began = time.monotonic()
            got, good = shell.run(commands)
            for old, new in replaced:
                got = replace_word(got, new, old)
            print(f"line {line}: {time.monotonic() - began:.1f} s", flush=True)
            if not good:
                sys.exit(f"{document}:{line}: failed after\n{got}")
            after = blocks[i + 1] if i + 1 < len(blocks) else None
            if after and after[1] == "text" and not checker.check_output(
                    after[2], got, FLAGS):
                sys.exit(f"{document}:{after[3]}: the text has\n{after[2]}"
                         f"but there was\n{got}")
        shell.process.stdin.close()
        shell.process.wait()


main()

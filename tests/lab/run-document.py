#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""run-document.py [--update] [--machine COMMAND] FILE OLD=NEW...: runs the
commands of a document, the blocks of "sh", in one shell, and compares what each
block prints with the block of "text" after it, as doctest does: "..." stands
for anything, and blanks do not count.  A block without one may print what it
likes.  Of blocks after "<!-- takes minutes -->" only the files that they name
must be there.

--update writes what was printed into each block of "text" that differs: write
"..." again for what is another time.

Temporary files of the commands are removed at the end.

Each OLD in commands that is a whole word is replaced by NEW, and in what they
print NEW by OLD.

A block after "<!-- on NAME -->" is run in another shell, one for each NAME,
that "COMMAND NAME" is, or in several, "<!-- on NAME and NAME -->"; one after
"<!-- on NAME, in the end -->" again and again until it prints what the text
says.  If a shell has ended between two blocks, because its machine was switched
off, COMMAND starts another one.
"""

import argparse
import doctest
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import uuid

BLOCK = re.compile(r"(?:<!-- (takes minutes|on \w+(?: and \w+)*(?:, in the end)?) -->\n)?"
                   r"^```(\w+)\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)
CHECKER = doctest.OutputChecker()
PATIENCE = 20                   # Seconds for what is so in the end.
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Shell:
    """A shell that runs one piece of a script after the other.  It may have
    another file system, so it marks the end of a piece in its output."""

    def __init__(self, output, command, env):
        # A file of its own for the shell: it would else write where this
        # program has just begun to read.
        with open(output, "a", encoding="utf-8") as written:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=written,
                stderr=subprocess.STDOUT, text=True, env=env)
        self.output = open(output, encoding="utf-8", errors="replace")
        self.done = f"done {uuid.uuid4()}"

    def run(self, commands):
        """Returns what the commands print, and whether all succeeded."""
        before = self.output.seek(0, os.SEEK_END)
        self.process.stdin.write(f"{commands}\nprintf '\\n%s\\n' '{self.done}'\n")
        self.process.stdin.flush()
        while True:
            ended = self.process.poll() is not None
            self.output.seek(before)
            got, done, _ = self.output.read().rpartition(f"\n{self.done}\n")
            if done:
                return got, True
            if ended:
                self.output.seek(before)
                return self.output.read(), False
            time.sleep(0.02)


def replace_word(text, old, new):
    return re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", lambda m: new, text)


def check_named(commands, directory):
    """Checks that the files named by commands exist, without running them."""
    for word in commands.replace('"$src"', directory).replace(
            "$src", directory).replace('"', "").split():
        if word.startswith(("./", "/")):
            path = pathlib.Path(directory, word)
            assert path.exists(), f"{word} is not there"
            assert word[0] != "." or os.access(path, os.X_OK), word


class Document:
    """The blocks of a document, and the shells that run them."""

    def __init__(self, name, machine, pairs, folder, update):
        self.name = name
        self.machine = machine
        self.replaced = [pair.split("=", 1) for pair in pairs]
        self.folder = folder
        self.shells = {}
        self.update = update
        self.printed = {}       # What differs, by the number of its block.
        text = pathlib.Path(name).read_text(encoding="utf-8")
        self.blocks = [(mark, kind, body, text.count("\n", 0, m.start(3)) + 1)
                       for m in BLOCK.finditer(text)
                       for mark, kind, body in [m.groups()]]

    def shell(self, machine):
        shell = self.shells.get(machine)
        if shell is None or shell.process.poll() is not None:
            self.shells[machine] = Shell(
                f"{self.folder}/output-{machine}",
                [self.machine, machine] if machine else ["sh", "-e"],
                None if machine else {**os.environ, "TMPDIR": self.folder})
        return self.shells[machine]

    def run_commands(self, shell, commands, line):
        """Returns what they print."""
        for old, new in self.replaced:
            commands = replace_word(commands, old, new)
        got, good = shell.run(commands)
        for old, new in self.replaced:
            got = replace_word(got, new, old)
        if not good:
            sys.exit(f"{self.name}:{line}: failed after\n{got}")
        return got

    def run_block(self, i):
        mark = self.blocks[i][0] or ""
        machines, _, when = mark.removeprefix("on ").partition(", ")
        for machine in machines.split(" and "):
            self.run_on(machine, when, i)

    def run_on(self, machine, when, i):
        _, _, commands, line = self.blocks[i]
        shell = self.shell(machine)
        after = self.blocks[i + 1] if i + 1 < len(self.blocks) else None
        wanted = after[2] if after and after[1] == "text" else None
        deadline = time.monotonic() + (PATIENCE if when else 0)
        if when:
            commands = f"( {commands} ) || :"
        while True:
            got = self.run_commands(shell, commands, line)
            if wanted is None or CHECKER.check_output(wanted, got, FLAGS):
                return
            if self.update and time.monotonic() >= deadline:
                self.printed[i + 1] = got
                return
            if time.monotonic() >= deadline:
                sys.exit(f"{self.name}:{after[3]}: the text has\n{wanted}"
                         f"but there was\n{got}")
            time.sleep(0.1)

    def run(self):
        for i, (mark, kind, commands, line) in enumerate(self.blocks):
            if kind != "sh":
                continue
            if mark == "takes minutes":
                check_named(commands, os.getcwd())
                continue
            began = time.monotonic()
            self.run_block(i)
            print(f"line {line}: {time.monotonic() - began:.1f} s", flush=True)
        for shell in self.shells.values():
            shell.process.stdin.close()
            shell.process.wait()
        if self.printed:
            self.write()

    def write(self):
        """Writes the document with what was printed."""
        numbers = iter(range(len(self.blocks)))

        def replace(match):
            got = self.printed.get(next(numbers))
            return match[0] if got is None else f"```text\n{got.rstrip()}\n```"

        path = pathlib.Path(self.name)
        path.write_text(BLOCK.sub(replace, path.read_text(encoding="utf-8")),
                        encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--machine")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("document")
    parser.add_argument("pairs", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Document(args.document, args.machine, args.pairs, folder,
                 args.update).run()


main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-usage.py ROOT [BUILD]: the code that headers show compiles.

The comments of a header show how its functions are used, in lines indented by
four or more spaces.  Each call in them whose function the project declares
must have as many arguments as the prototype or the macro; each call whose name
begins like the header's own functions must be declared.  An argument "..."
stands for any number of arguments, and "name()" for the function's name.

With BUILD, a build directory, the compiler checks the code, by the flags in
its compile_commands.json; usage_units.py has the rules.  Code is what has a
statement that declares something or calls a function; tables, formulas, JSON
and commands have none.  Headers whose module is not built are
named.

Prints "FILE:LINE: WHAT" for each fault and exits with 1 if there is one.
"""

import pathlib
import re
import sys

import usage_units

from usage_units import CALL, COMMENT, KEYWORDS, split_arguments

FOLDERS = ("agent", "base", "cli", "controller", "lab", "order", "packaging",
           "policies", "reporting", "scenario", "shim", "sim", "trainer",
           "wire")


def declarations(text):
    """Yields (name, least, most) for what the code of a header declares."""
    code = COMMENT.sub(lambda m: " " * 0, text)
    for match in re.finditer(r"^#\s*define\s+(\w+)\(([^)]*)\)", code, re.M):
        names = [n.strip() for n in match[2].split(",") if n.strip()]
        if "..." in match[2]:
            yield match[1], len(names) - 1, 99
        else:
            yield match[1], len(names), len(names)
    code = re.sub(r"^#.*?(?<!\\)$", "", code, flags=re.M | re.S)
    code = code.replace('extern "C" {', "")
    code = re.sub(r"\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", ";", code)
    for match in CALL.finditer(code):
        if match[1] in KEYWORDS:
            continue
        arguments = split_arguments(code, match.end())
        if arguments is None:
            continue
        if arguments == ["void"]:
            arguments = []
        if "..." in arguments:
            yield match[1], len(arguments) - 1, 99
        else:
            yield match[1], len(arguments), len(arguments)


def shown_code(text):
    """Yields (line number, code) for each run of indented comment lines."""
    for comment in COMMENT.finditer(text):
        first = text.count("\n", 0, comment.start()) + 1
        if text.rfind("\n", 0, comment.start()) + 1 != comment.start():
            continue
        run, began = [], 0
        lines = comment[0].split("\n")
        for number, line in enumerate(lines + [" * end"], first):
            found = re.match(r" \*(?: {4,}(.*)|\s*)$", line.rstrip("*/ "))
            if found:
                if found[1] and not run:
                    began = number
                if run or found[1]:
                    run.append(found[1] or "")
            elif run:
                yield began, "\n".join(run)
                run = []


def strip_literals(code):
    """Returns 'code' without what strings and remarks in it say."""
    code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', code)
    code = re.sub(r"'(?:\\.|[^'\\\n])'", "0", code)
    return re.sub(r"//[^\n]*", "", code)


def main():
    root = pathlib.Path(sys.argv[1])
    headers = {p.relative_to(root).as_posix():
               p.read_text(encoding="utf-8", errors="replace")
               for folder in FOLDERS for p in (root / folder).rglob("*.h")}
    known, own = {}, {}
    for name, text in headers.items():
        own[name] = set()
        for function, least, most in declarations(text):
            known.setdefault(function, []).append((least, most))
            own[name].add(function)
    faults = n_calls = 0
    for name, text in sorted(headers.items()):
        prefix = pathlib.PurePath(name).stem.replace("-", "_") + "_"
        for line, code in shown_code(text):
            code = strip_literals(code)
            for match in CALL.finditer(code):
                function = match[1]
                if function in KEYWORDS:
                    continue
                arguments = split_arguments(code, match.end())
                where = line + code.count("\n", 0, match.start())
                if function not in known:
                    if function.startswith(prefix) and own[name]:
                        print(f"{name}:{where}: {function}() is not declared")
                        faults += 1
                    continue
                n_calls += 1
                if arguments is None:
                    print(f"{name}:{where}: the call of {function}() has no "
                          "end")
                    faults += 1
                elif (arguments and not any("..." in a for a in arguments)
                      and not any(least <= len(arguments) <= most
                                  for least, most in known[function])):
                    print(f"{name}:{where}: {function}() has "
                          f"{len(arguments)} arguments, allowed: "
                          + ", ".join(str(l) for l, _ in known[function]))
                    faults += 1
    print(f"{n_calls} calls in {len(headers)} headers, {faults} wrong")
    n_blocks = 1
    if len(sys.argv) > 2:
        n_blocks, skipped, errors = usage_units.check(root, sys.argv[2],
                                                      headers)
        for name, line, text in errors:
            print(f"{name}:{line}: {text}")
        for name in skipped:
            print(f"{name}: not compiled, not a part of this build")
        print(f"{n_blocks} blocks compiled, {len(errors)} errors")
        faults += len(errors)
    return 1 if faults or not n_calls or not n_blocks else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-includes.py ROOT [FOLDER...]: checks the directions of #include.

Reads the C files of the product below ROOT and prints one line, "FILE:LINE:
WHAT", for each include that breaks a rule:

* no circle between the folders at the top, or between the rooms of one folder
  (a room is a folder with C files; the files directly in the folder count as
  one room, but controller.h, which only names the modules, as another);
* order/ includes itself and the C library only;
* controller/model includes no database and nothing of the controller's other
  rooms;
* agent, controller and shim, and what they include, include nothing of
  trainer, lab or sim;
* what a header declares is defined in its room or below, so that rooms know
  each other by includes only.

Exits with 1 if there is such a line.  Without FOLDER, all folders of the
product are read.
"""

import collections
import pathlib
import re
import sys

FOLDERS = ("agent", "base", "cli", "controller", "lab", "order", "packaging",
           "policies", "reporting", "scenario", "shim", "sim", "trainer",
           "wire")
ALONE = "controller/controller.h"
DAEMONS = ("agent", "controller", "shim")
NOT_IN_DAEMONS = ("lab", "sim", "trainer")
SUFFIXES = (".c", ".h", ".cu")
C_LIBRARY = {
    "assert.h", "ctype.h", "errno.h", "float.h", "immintrin.h", "inttypes.h",
    "limits.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h",
    "stdio.h", "stdlib.h", "string.h", "time.h",
}
# The header of libstagecoach-balance, which has two rooms.
OF_TWO_ROOMS = ("trainer/balance/batch-size-manager.h",)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
DEFINED = re.compile(
    r"^(?:[a-zA-Z_][^;{}()]*\n)?([a-z_]\w*)\([^;{}]*?\)\s*\n\{"
    r"|^(?!extern|static|typedef)[a-z][\w *]*?\b([a-z_]\w*)(?:\[[^]]*\])* = ",
    re.M)
DECLARED = re.compile(
    r"^(?!static|extern|typedef)[a-z][\w *\n]*?[ *]([a-z_]\w*)\([^;{}]*\)"
    r"[^;{}]*;"
    r"|^extern [\w *\n]*?[ *]([a-z_]\w*)(?:\[[^]]*\])*;", re.M)
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^">]+)[">]')

Include = collections.namedtuple("Include", "file line quote target")


def top(path):
    """Returns the folder at the top that 'path' is in."""
    return path.split("/")[0]


def room(path):
    """Returns the folder that 'path' is in."""
    return path if path == ALONE else path.rsplit("/", 1)[0]


def read_includes(root, folders):
    """Returns the includes of all C files in 'folders' below 'root'."""
    includes = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            name = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8", errors="replace")
            for number, line in enumerate(text.splitlines(), 1):
                found = INCLUDE.match(line)
                if found:
                    includes.append(Include(name, number, found[1], found[2]))
    return includes


def names_in(root, folders, suffixes, pattern):
    """Yields the file and the name of each match of 'pattern'."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes:
                text = COMMENT.sub("", path.read_text("utf-8", "replace"))
                for found in pattern.finditer(text):
                    yield (path.relative_to(root).as_posix(),
                           found[1] or found[2])


def find_foreign(root, folders):
    """Yields a line for each declaration of what another room defines."""
    rooms = collections.defaultdict(set)
    for path, name in names_in(root, folders, (".c", ".cu"), DEFINED):
        rooms[name].add(room(path) + "/")
    for path, name in names_in(root, folders, (".h",), DECLARED):
        if (rooms[name] and path not in OF_TWO_ROOMS and not any(
                r.startswith(room(path) + "/") for r in rooms[name])):
            yield (f"{path}: declares {name}, which is defined in "
                   f"{', '.join(sorted(rooms[name]))}")


def reachable(start, edges):
    """Returns the nodes that a path of at least one edge leads to."""
    seen, todo = set(), [start]
    while todo:
        for node in edges[todo.pop()]:
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return seen


def find_circles(includes, node_of):
    """Yields a message for each include of the thinnest edge of a circle."""
    edges = collections.defaultdict(lambda: collections.defaultdict(list))
    for include in includes:
        source, target = node_of(include.file), node_of(include.target)
        if source != target:
            edges[source][target].append(include)
    circles = collections.defaultdict(list)
    for source in list(edges):
        for target in edges[source]:
            behind = reachable(target, edges)
            if source in behind:
                members = frozenset(n for n in behind
                                    if n in reachable(source, edges)
                                    and source in reachable(n, edges))
                circles[members].append((source, target))
    for members, arrows in circles.items():
        source, target = min(
            arrows, key=lambda arrow: len(edges[arrow[0]][arrow[1]]))
        for include in edges[source][target]:
            yield include, (f"{source} includes {target}, which closes a "
                            f"circle of {', '.join(sorted(members))}")


def check_order(include):
    """Returns what is wrong with an include of order/, or None."""
    if include.quote == '"':
        if top(include.target) != "order":
            return "order/ includes itself and the C library only"
    elif include.target not in C_LIBRARY:
        return "order/ includes itself and the C library only"
    return None


def check_model(include):
    """Returns what is wrong with an include of controller/model, or None."""
    target = include.target
    if target.endswith("-idl.h") or target in ("ovsdb-idl.h", "sqlite3.h"):
        return "controller/model includes no database"
    if (top(target) == "controller" and "/" in target
            and room(target) != "controller/model"):
        return "controller/model includes no other room of the controller"
    return None


def find_faults(root, folders):
    """Returns the lines to print about the files below 'root', sorted."""
    includes = read_includes(root, folders)
    ours = [i for i in includes
            if i.quote == '"' and "/" in i.target and top(i.target) in folders]
    faults = set(find_circles(ours, top))
    for folder in folders:
        inside = [i for i in ours
                  if top(i.file) == folder == top(i.target)]
        faults.update(find_circles(inside, room))

    edges = collections.defaultdict(set)
    for include in ours:
        edges[top(include.file)].add(top(include.target))
    of_daemons = set(DAEMONS).union(*(reachable(d, edges) for d in DAEMONS))
    of_daemons -= set(NOT_IN_DAEMONS)

    for include in includes:
        wrong = None
        if top(include.file) == "order":
            wrong = check_order(include)
        elif room(include.file) == "controller/model":
            wrong = check_model(include)
        if wrong:
            faults.add((include, wrong))
        if (top(include.file) in of_daemons and include.quote == '"'
                and top(include.target) in NOT_IN_DAEMONS
                and "/" in include.target):
            faults.add((include, "a daemon includes nothing of lab, sim or "
                                 "trainer"))
    return sorted([f'{i.file}:{i.line}: #include "{i.target}": {wrong}'
                   for i, wrong in faults] + list(find_foreign(root, folders)))


def main():
    folders = sys.argv[2:] or FOLDERS
    faults = find_faults(pathlib.Path(sys.argv[1]), folders)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""completion.py bash|zsh PROGRAM: prints the completion of PROGRAM for a shell.

Commands, options, their values and descriptions are those that --help prints,
which comes from the tables of commands and options (base/options.h).
"""

import os
import re
import subprocess
import sys

COMMAND = re.compile(r"  ([a-z][a-z-]*)\b.*")
OPTION = re.compile(r"  (?:-(\w), )?--([a-z][a-z0-9-]*)(?: (\S+(?: \S+)*))?"
                    r"(?:  +(\S.*))?")
OPTION_IN_USAGE = re.compile(r"--([a-z][a-z0-9-]*)(?: ([^]\s]+))?")
# Words of a value that stand for themselves; placeholders are in capitals.
CHOICES = re.compile(r"[a-z0-9+_-]+(\|[a-z0-9+_-]+)*")


NOTE = "# Generated from --help by packaging/completion/completion.py."


class Node:
    """A program or one of its commands."""

    def __init__(self):
        self.commands = {}      # Name -> (summary, Node).
        self.options = {}       # "--NAME" or "-L" -> (value, description).


def add_options(node, lines):
    """Reads the lines of options, and those that continue a description."""
    names = []
    for line in lines:
        option = OPTION.fullmatch(line)
        if option:
            letter, name, value, text = option.groups()
            names = [f"--{name}"] + ([f"-{letter}"] if letter else [])
        elif names and line.startswith(" " * 24):
            text = line.strip()
            value, before = node.options[names[0]]
            text = f"{before} {text}".strip()
        else:
            names = []
        for name in names:
            node.options[name] = (value, text or "")


def read(argv):
    """Returns the node of 'argv', None if it is not a command with --help."""
    done = subprocess.run([*EMULATOR, *argv, "--help"], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20,
                          check=False)
    if done.returncode or not done.stdout.startswith("usage:"):
        return None
    node = Node()
    lines = done.stdout.splitlines()
    own = " ".join([os.path.basename(argv[0]), *argv[1:]])
    for word in re.findall(rf"^(?:usage:|      ) {own} ([a-z]+)\b",
                           done.stdout, re.M):
        node.commands[word] = ("", read([*argv, word]))
    if re.match(r"usage: .* COMMAND \[ARG\.\.\.\]", lines[0]):
        for line, summary in zip(lines, lines[1:]):
            command = COMMAND.fullmatch(line)
            below = command and read([*argv, command[1]])
            if below:
                node.commands[command[1]] = (summary.strip(), below)
    add_options(node, lines)
    if not node.options:
        # Help of a table of commands: its usage line has the options.
        for name, value in OPTION_IN_USAGE.findall(lines[0]):
            node.options[f"--{name}"] = (value or None, "")
    node.options.setdefault("--help", (None, "print this help"))
    return node


def walk(node, path=""):
    """Yields the path and node of each command, "/lab/run"."""
    yield path, node
    for name, (_, below) in node.commands.items():
        yield from walk(below, f"{path}/{name}")


def choices(value):
    return value.replace("|", " ") if CHOICES.fullmatch(value or "") else ""


def print_path(top, words):
    """Prints the loop that finds the command among the words before the
    cursor."""
    print(f"    for word in {words}; do\n"
          "        case $command/$word in")
    paths = [path for path, _ in walk(top) if path]
    print(f"        {'|'.join(paths) or 'none'}) command=$command/$word ;;\n"
          "        esac\n"
          "    done")


def print_bash(name, top):
    function = "_" + name.replace("-", "_")
    print(f"{NOTE}\n\n{function}()\n{{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} command= word words=\n"
          "    local prev=${COMP_WORDS[COMP_CWORD-1]}\n\n"
          '    if [[ $cur == "=" ]]; then          # --NAME=\n'
          "        cur=\n"
          '    elif [[ $prev == "=" ]]; then       # --NAME=VALUE\n'
          "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi")
    print_path(top, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')
    print('    case $command:$prev in')
    for path, node in walk(top):
        for option, (value, _) in node.options.items():
            if choices(value):
                print(f'    "{path}:{option}") words="{choices(value)}" ;;')
            elif value:
                print(f'    "{path}:{option}") return ;;')
    print("    *)\n        case $command in")
    for path, node in walk(top):
        words = " ".join([*node.commands, *node.options])
        print(f'        "{path}") words="{words}" ;;')
    print("        esac ;;\n    esac\n"
          "    if [[ -z $cur && $words == --* ]]; then\n"
          "        return          # An argument: the names of files.\n"
          "    fi\n"
          '    COMPREPLY=($(compgen -W "$words" -- "$cur"))\n}\n'
          f"complete -o default -F {function} {name}")


def quote(text):
    """Returns 'text' for a specification of zsh's _arguments."""
    return re.sub(r"([][:\\])", r"\\\1", text).replace("'", "'\\''")


def print_zsh(name, top):
    function = "_" + name.replace("-", "_")
    print(f"#compdef {name}\n{NOTE}\n\n{function}()\n{{\n"
          "    local command= word n=0\n")
    print_path(top, '"${(@)words[2,CURRENT-1]}"')
    print("    case $command in")
    for path, node in walk(top):
        print(f'    "{path}")')
        if path:
            depth = path.count("/")
            print(f"        shift {depth} words\n"
                  f"        (( CURRENT -= {depth} ))")
        if node.commands:
            print("        if (( CURRENT == 2 )); then\n"
                  "            local -a commands=(")
            for word, (summary, _) in node.commands.items():
                print(f"                '{word}:{quote(summary)}'")
            print("            )\n"
                  "            _describe command commands\n"
                  "            return\n"
                  "        fi")
        print("        _arguments -S \\")
        for option, (value, text) in node.options.items():
            spec = f"*{option}" + (f"[{quote(text)}]" if text else "")
            if value:
                words = choices(value)
                spec += f":{quote(value)}:" + (f"({words})" if words
                                               else "_files")
            print(f"            '{spec}' \\")
        print("            '*:file:_files' ;;")
    print(f"    esac\n}}\n\n{function} \"$@\"")


shell, program, *EMULATOR = sys.argv[1:]
tree = read([os.path.abspath(program)])
if not tree:
    sys.exit(f"{program}: has no --help")
{"bash": print_bash, "zsh": print_zsh}[shell](os.path.basename(program), tree)

# SPDX-License-Identifier: Apache-2.0

"""Translation units made of the code that headers show.

All code of one comment becomes the body of one function, in the order of the
comment, so a later block may use the variables of an earlier one.

Identifiers that the code does not declare are declared at the beginning of the
function.  Their types follow from the code:

    f(x), o->f(x)   the type of the parameter
    f(&x), f(x[i])  what the parameter points to, or a pointer to it
    x = f(...)      the type of the result
    .m = x, .m = &x in an initializer of struct s: the type of the member
    x = ... "text"  a string
    y.m = x         the type of the member
    otherwise       CONTEXT, or int if the compiler does not know it

Text between "..." and "...", "..." alone, "// text", and text in parentheses
at the end of a line are remarks.  A remark is an empty statement, an argument
of the right type (a single "...": all further ones), a condition, or nothing
in an initializer.  Calls of declared functions in a remark are statements, as
is a remark that is a member ("...result.mean...").
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile

from dataclasses import dataclass, field

CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'')
LINE_END_REMARK = re.compile(
    r"(?<=[;{}.]) +\((?:[^()]|\([^()]*\))*\) *$", re.M)
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "defined",
            "__attribute__", "__format__", "else", "do", "case", "true",
            "false"}
TYPE_WORDS = {"void", "char", "short", "int", "long", "float", "double",
              "signed", "unsigned", "bool", "size_t", "ssize_t"}
# Other headers that the program around a block includes, those of
# libopenvswitch if a source of the room does.
LIBRARIES = (
    "errno.h", "inttypes.h", "math.h", "poll.h", "pthread.h",
    "signal.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h", "time.h", "unistd.h",
)
OPEN_VSWITCH = (
    "openvswitch/dynamic-string.h", "openvswitch/ofpbuf.h",
    "openvswitch/poll-loop.h", "ovsdb-idl.h", "svec.h", "timeval.h", "util.h",
)
FLAGS = ("-fsyntax-only", "-Werror=implicit-function-declaration",
         "-Werror=incompatible-pointer-types", "-Werror=int-conversion",
         "-Werror=discarded-qualifiers", "-Werror=overflow", "-Wformat",
         "-Werror=format", "-Wno-return-type", "-Wno-unused")
UNDECLARED = re.compile(r"'(\w+)' undeclared|use of undeclared identifier "
                        r"'(\w+)'")

# Folders whose headers all may include, and folders that may include all.
SHARED = ("base/", "order/", "policies/", "reporting/", "scenario/", "wire/")
USERS = ("cli", "lab")

# Further headers of the program around a block.
INCLUDES = {"shim/ports/route-socket.h": "linux/rtnetlink.h"}

# What the program around a block declares, if the code does not show it.
CONTEXT = {
    "base/compare.h": "double *times;",
    "base/json-check.h":
        "struct { const char *name; int64_t lease; int dscp[8]; } *policy;",
    "base/options.h": "struct args { double rate; bool json; } args;",
    "cli/operator/table.h": "const char *host, *state;",
    "controller/northbound/rest/rest-listen.h":
        "const char *key, *certificate, *ca_cert;",
    "order/problem/progress-curve.h": "struct order_traits traits;",
    "order/problem/sort.h": "const struct order_options *options;",
    "order/problem/scratch.h": "struct order_problem *op;",
    "shim/loop/egress.h": "struct verdict verdict;",
    "shim/queue/job-queue.h": "struct job *job;",
    "shim/queue/long-queue.h":
        "struct { struct long_queue_node node; } *queue;",
    "shim/queue/rank-queue.h":
        "void find(void *, struct queue_item *, uint16_t *, uint32_t), *aux;"
        "void drop(void *, const struct queue_item *);",
    "trainer/net/dispatch.h":
        "char *begin_push(void *, struct link *);"
        "char *end_push(void *, struct link *);"
        "char *end_bye(void *, struct link *);",
    "trainer/tasks/clustering.h": "struct { uint32_t row; } *samples;",
    "trainer/tasks/node-task.h": "struct options *options;",
}


@dataclass
class Function:
    """A prototype: types are templates with "@" in place of the name."""
    header: str
    returns: str
    params: list


@dataclass
class Block:
    """The code of one comment."""
    header: str
    runs: list                  # (line, code).
    declarations: dict = field(default_factory=dict)    # Name to template.
    placeholders: list = field(default_factory=list)    # Templates.


def split_arguments(text, start):
    """Returns the arguments of the call whose '(' is at 'start' - 1, or None
    if it does not end."""
    depth, arguments, current = 0, [], ""
    for c in text[start:]:
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                arguments.append(current.strip())
                return [] if arguments == [""] else arguments
            depth -= 1
        elif c == "," and depth == 0:
            arguments.append(current.strip())
            current = ""
            continue
        current += c
    return None


def end_of_call(text, start):
    """Returns the position after the ')' of the call whose '(' is at 'start'
    - 1, or None."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i + 1
    return None


# Types.

def template(parameter):
    """Returns the type of a parameter with "@" in place of its name."""
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)|\b(OVS_UNUSED|restrict|static|"
                  r"inline|extern|OVS_\w+|WARN_\w+|register)\b", " ",
                  parameter)
    text = " ".join(text.split())
    pointer = re.search(r"\(\s*\*\s*\w*\s*\)\s*\(", text)
    if pointer:
        return text[:pointer.start()] + "(*@)(" + text[pointer.end():]
    sizes = re.findall(r"\[[^\]]*\]", text)
    text = re.sub(r"\[[^\]]*\]", "", text).strip()
    words = [w for w in re.findall(r"\w+", text)
             if w not in ("const", "volatile")]
    tagged = bool({"struct", "enum", "union"} & set(words))
    last = re.search(r"(\w+)$", text)
    if last and last[1] not in TYPE_WORDS and len(words) > 1 + tagged:
        text = text[:last.start()].strip()
    if len(sizes) > 1:
        return f"{text} (*@){''.join(sizes[1:])}"
    return joined(f"{text} {'*' * len(sizes)}@")


def joined(kind):
    """Returns 'kind' without spaces between '*' and '@'."""
    return re.sub(r"\*\s+(?=[*@])", "*", kind)


def pointed_to(kind):
    """Returns the type that 'kind' points to, or None.  A string does not
    point to a variable."""
    if not kind.endswith("*@"):
        return None
    kind = kind[:-2].strip()
    if "*" not in kind:
        kind = re.sub(r"\bconst\s*", "", kind)
    return None if kind in ("void", "char") else joined(kind + " @")


def without_const(kind):
    """Returns a type that 'kind' accepts without a cast, not constant."""
    return (re.sub(r"\bconst\s+", "", kind)
            if kind.endswith("*@") and kind.count("*") == 1 else kind)


# What headers declare.

class Index:
    """The declarations of all headers."""

    def __init__(self, headers):
        self.functions = {}     # Name to list of Function.
        self.methods = {}       # Header to dict of name to Function.
        self.names = {}         # Other name, "struct x" to list of headers.
        self.members = {}       # (header, struct) to list of member names.
        for header, text in headers.items():
            self.add(header, text)

    def add(self, header, text):
        code = COMMENT.sub(" ", text)
        for name in re.findall(r"^#\s*define\s+(\w+)", code, re.M):
            if not name.endswith("_H"):
                self.names.setdefault(name, []).append(header)
        code = re.sub(r"^#(?:\\\n|[^\n])*", "", code, flags=re.M)
        code = code.replace('extern "C" {', "")
        for match in re.finditer(r"\b(struct|union|enum)\s+(\w+)?\s*\{", code):
            end = end_of_call(code, match.end()) or len(code)
            body = code[match.end():end - 1]
            if match[2]:
                self.names.setdefault(f"{match[1]} {match[2]}",
                                      []).append(header)
            if match[1] == "enum":
                for item in body.split(","):
                    word = re.match(r"\s*(\w+)", item)
                    if word:
                        self.names.setdefault(word[1], []).append(header)
        for match in re.finditer(r"\bextern\s([^;(]*);", code):
            for name in re.findall(r"(\w+)\s*(?:\[[^]]*\])?\s*(?:,|$)",
                                   match[1]):
                self.names.setdefault(name, []).append(header)
        for match in re.finditer(r"([\w\s*]+)\(\s*\*\s*(\w+)\s*\)\s*\(", code):
            self.methods.setdefault(header, {})[match[2]] = self.function(
                header, match[1], split_arguments(code, match.end()))
        code = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", code, flags=re.S)
        for statement in self.statements(code):
            match = re.match(r"([\w\s*]*?[\s*])(\w+)\s*\(", statement)
            if match and not statement.startswith("typedef"):
                self.functions.setdefault(match[2], []).append(self.function(
                    header, match[1], split_arguments(statement, match.end())))

    @staticmethod
    def function(header, returns, parameters):
        kinds = ["..." if p == "..." else template(p)
                 for p in parameters or [] if p != "void"]
        return Function(header, template(returns + " name_"), kinds)

    @staticmethod
    def statements(code):
        """Yields the declarations of 'code', without what is in braces."""
        depth, current = 0, ""
        for c in code:
            if c == "{":
                depth += 1
            elif c == "}":
                depth -= 1
                if depth == 0 and ")" in current:
                    yield current.strip()
                    current = ""
            elif depth == 0 and c == ";":
                yield current.strip()
                current = ""
            elif depth == 0:
                current += c

    def closest(self, headers, header):
        """Returns which of 'headers' a user of 'header' would include."""
        here = pathlib.PurePath(header).parts
        return max(headers, key=lambda h: (
            h == header, sum(1 for a, b in zip(pathlib.PurePath(h).parts[:-1],
                                               here[:-1]) if a == b),
            h.startswith(SHARED)))

    def find(self, name, header):
        """Returns the function or method 'name', for code in 'header'."""
        found = self.functions.get(name, [])
        if found:
            where = self.closest([f.header for f in found], header)
            return next(f for f in found if f.header == where)
        own = self.methods.get(header, {}).get(name)
        others = [m[name] for m in self.methods.values() if name in m]
        return own or (others[0] if len(others) == 1 else None)

    def where(self, name, header):
        """Returns the header that declares 'name' for code in 'header', or
        None."""
        headers = ([f.header for f in self.functions.get(name, [])]
                   or self.names.get(name))
        return headers and self.closest(headers, header)


# Remarks.

class Cleaner:
    """Removes the remarks of a block's code."""

    def __init__(self, index, block):
        self.index = index
        self.block = block
        self.literals = []

    def hide(self, match):
        self.literals.append(match[0])
        return f"__s{len(self.literals) - 1}_"

    def placeholder(self, kind):
        if kind is None or kind == "...":
            return "usage_any()"
        self.block.placeholders.append(kind)
        return f"usage_{len(self.block.placeholders) - 1}"

    def clean(self, code):
        """Returns C code in as many lines as 'code'."""
        code = LITERAL.sub(self.hide, code)
        code = re.sub(r"//[^\n]*", "", code)
        code = LINE_END_REMARK.sub("", code)
        code = re.sub(r"^(\s*)static\s", r"\1", code, flags=re.M)
        code = self.remove_remarks(code)
        return re.sub(r"__s(\d+)_", lambda m: self.literals[int(m[1])], code)

    def remove_remarks(self, code):
        done = ""
        while "..." in code:
            before, code = code.split("...", 1)
            done += before
            remark = ""
            if code[:1].strip() and code[0] not in ")]},;":
                remark, code = self.split_remark(code)
            done = self.replace(done, remark, code) + "\n" * remark.count("\n")
        return done + code

    @staticmethod
    def split_remark(code):
        """Returns the remark at the beginning of 'code', and what follows."""
        line = code.split("\n", 1)[0]
        if "..." not in line and line.endswith(":"):
            return line, code[len(line):]
        for match in re.finditer(r"(?<=[^\s(,{\[])\.\.\.", code):
            return code[:match.start()], code[match.end():]
        return line, code[len(line):]

    def calls(self, remark):
        """Returns the calls in 'remark' as statements."""
        text, position = "", 0
        if re.fullmatch(r"\w+(?:(?:\.|->)\w+|\[\w+\])+", remark):
            return f"(void) ({remark});"
        for match in CALL.finditer(remark):
            end = end_of_call(remark, match.end())
            arguments = split_arguments(remark, match.end())
            function = self.index.find(match[1], self.block.header)
            if (match.start() < position or not end or not function
                    or not (arguments or not function.params)):
                continue
            position = end
            call = remark[match.start():end].replace("\n", " ")
            text += self.remove_remarks(call) + ";"
        return text

    def replace(self, done, remark, after):
        """Returns 'done' with what stands for 'remark' before 'after'."""
        bracket = self.open_bracket(done)
        last = done.rstrip()[-1:]
        following = after.lstrip()[:1]
        if bracket is None or (done[bracket] == "{"
                               and not self.is_initializer(done, bracket)):
            target = re.search(r"([A-Za-z_][\w.>\[\]-]*)\s*=\s*$", done)
            if target:
                return done + target[1] + ("" if following == ";" else ";")
            if last in "+*/<>&|?-" and last:
                return done + "usage_any();"
            return done + ";" + self.calls(remark)
        if done[bracket] == "{":
            return done
        name = re.search(r"(\w+)\s*$", done[:bracket])
        whole = last == "(" and following == ")"
        if whole and name and name[1] == "for":
            return done + ";;"
        function = name and self.index.find(name[1], self.block.header)
        if (not function or done[bracket] == "[" or last not in "(,"
                or following not in ",)"):
            return done + "usage_any()"
        n = len(split_arguments(done + ")", bracket + 1) or [""])
        kinds = [k for k in function.params[n - 1:] if k != "..."]
        if remark:
            return done + self.placeholder(kinds[0] if kinds else None)
        if not kinds:
            return re.sub(r",\s*$", "", done)
        return done + ", ".join(self.placeholder(k) for k in kinds)

    @staticmethod
    def open_bracket(done):
        """Returns the position of the innermost bracket that is open at the
        end of 'done', or None."""
        depth = 0
        for i in range(len(done) - 1, -1, -1):
            if done[i] in ")]}":
                depth += 1
            elif done[i] in "([{":
                if depth == 0:
                    return i
                depth -= 1
        return None

    @staticmethod
    def is_initializer(done, brace):
        before = done[:brace].rstrip()
        return (before[-1:] in ("=", ",", "{", "(")
                or bool(re.search(r"\((?:const )?(?:struct|union) \w+\)$",
                                  before)))


# Blocks.

def is_code(run, index, header):
    """Returns true if 'run' has statements: a line that ends with ';' or '{',
    or is a remark, and either a call of a declared function with its
    arguments, or a line that is a declaration or a call."""
    text = LITERAL.sub('""', run)
    text = re.sub(r"//[^\n]*", "", text)
    text = LINE_END_REMARK.sub("", text)
    if not re.search(r"(?:[;{}]|\.\.\.)\s*$", text, re.M):
        return False
    if re.search(r"^\s*(?:static |const )*(?:struct|enum|int|char|double|"
                 r"u?int\d+_t) [\w *]+(?:\[\w*\])*(?: = .*)?[;{]\s*$", text,
                 re.M) or re.search(r"^\s*\w+\(.*\);$", text, re.M):
        return True
    return any(index.where(m[1], header) and split_arguments(text, m.end())
               for m in CALL.finditer(text))


def find_blocks(header, text, index):
    """Returns a Block for each comment of 'text' that shows code.  Code begins
    with an indentation of four spaces; lists have three or five."""
    blocks = []
    for comment in COMMENT.finditer(text):
        if text.rfind("\n", 0, comment.start()) + 1 != comment.start():
            continue
        first = text.count("\n", 0, comment.start()) + 1
        runs, run, began = [], [], 0
        for number, line in enumerate(comment[0].split("\n") + [" * end"],
                                      first):
            line = re.sub(r"\s*\*/$", "", line)
            if re.match(r" \* {4,}\S" if run else r" \* {4}\S", line):
                began = began or number
                run.append(line[2:])
            elif not line[2:].strip() and run:
                run.append("")
            elif run:
                runs.append((began, "\n".join(run)))
                run, began = [], 0
        runs = [(n, r) for n, r in runs if is_code(r, index, header)]
        if runs:
            blocks.append(Block(header, runs))
    return blocks


def cleaned(block, index):
    """Returns the code of 'block' without remarks."""
    cleaner = Cleaner(index, Block(block.header, []))
    return "\n".join(cleaner.clean(code) for _, code in block.runs)


def is_balanced(block, index):
    """Returns true if each bracket in the code of 'block' has a partner."""
    code = LITERAL.sub("", cleaned(block, index))
    code = re.sub(r"[^][(){}]", "", code)
    while re.search(r"\(\)|\[\]|{}", code):
        code = re.sub(r"\(\)|\[\]|{}", "", code)
    return not code


def infer(name, code, block, index):
    """Returns the type of the undeclared identifier 'name' in 'code', or
    None."""
    found = []
    for match in re.finditer(rf"(?<![\w.>]){name}\s*=\s*(?:[\w>.-]*?>)?"
                             r"(\w+)\s*\(", code):
        function = index.find(match[1], block.header)
        end = end_of_call(code, match.end()) or len(code)
        if (function and function.returns.strip() != "void @"
                and code[end:].lstrip()[:1] in (";", ")")):
            found.append(function.returns)
    if re.search(rf'(?<![\w.>]){name}\s*=[^;]*";', code):
        found.append("const char *@")
    for match in CALL.finditer(code):
        function = index.find(match[1], block.header)
        arguments = split_arguments(code, match.end())
        if not function or not arguments:
            continue
        for kind, argument in zip(function.params, arguments):
            argument = re.sub(r"\s+", "", argument)
            if kind == "...":
                break
            if argument == name or re.match(rf"&{name}\[", argument):
                found.append(without_const(kind))
            elif argument == "&" + name:
                found.append(pointed_to(kind))
            elif argument == "*" + name or re.match(rf"{name}\[[^\]]*\]$",
                                                    argument):
                found.append(kind.replace("@", "*@"))
    for match in re.finditer(rf"\.(\w+)\s*=\s*(&?){name}\b(?!\s*[(\[.-])",
                             code):
        tags = re.findall(r"struct (\w+)[^;{]*\{", code[:match.start()])
        if tags:
            kind = f"((struct {tags[-1]} *) 0)->{match[1]}"
            found.append(f"__typeof__({'*' if match[2] else ''}{kind}) @")
    found = [f for f in found if f]
    better = [f for f in found if "*" in f or "struct" in f]
    return (better or found or [None])[0]


def declare(block, index):
    """Declares the identifiers of 'block' whose types follow from its code.  A
    function's name is a variable only if its address is taken by '&' or if
    it is assigned to."""
    code = LITERAL.sub('""', cleaned(block, index))
    names = set(re.findall(r"(?<![\w.>])([a-z]\w*)\b(?!\s*\()", code))
    names -= KEYWORDS | TYPE_WORDS
    known = re.sub(r"\{[^}]*\}", "", CONTEXT.get(block.header, ""))
    unknown = []
    kinds = rf"(?:struct|enum) \w+|\w+_t|{'|'.join(TYPE_WORDS)}"
    for name in sorted(names):
        if (name.startswith("usage_") or name in index.names
                or re.search(rf"[\s*]{name}\s*[;,(]", known)
                or re.search(rf"\b(?:{kinds})[\s*]+(?:const )?{name}\b", code)
                or name in index.functions
                and not re.search(rf"&{name}\b|\b{name} = ", code)):
            continue
        kind = infer(name, code, block, index)
        if kind:
            block.declarations[name] = kind
        else:
            unknown.append(name)
    for name in unknown:
        to = re.search(rf"(?<![\w.>])(\w+)((?:\.|->)\w+) = {name};", code)
        if to and to[1] in block.declarations:
            block.declarations[name] = f"__typeof__({to[1]}{to[2]}) @"


# Units.

class Compiler:
    """The compiler and the flags of each folder, by compile_commands.json."""

    def __init__(self, root, build):
        self.root = root
        path = pathlib.Path(build) / "compile_commands.json"
        self.sources, self.flags = set(), {}
        for entry in json.loads(path.read_text(encoding="utf-8")):
            folder = pathlib.Path(entry["directory"])
            source = (folder / entry["file"]).resolve()
            if not source.is_relative_to(root) or source.suffix != ".c":
                continue
            source = source.relative_to(root)
            self.sources.add(source.as_posix())
            words = shlex.split(entry["command"])
            flags = self.flags.setdefault(source.parts[0], [])
            for i, word in enumerate(words):
                if word in ("-include", "-isystem"):
                    word = f"{word}\0{words[i + 1]}"
                elif word.startswith("-I"):
                    word = "-I" + str((folder / word[2:]).resolve())
                elif not re.match(r"-(?:D|U|m|std=)", word):
                    continue
                if word not in flags:
                    flags.append(word)

    def builds(self, header):
        """Returns true if the module of 'header' is a part of the build."""
        path = pathlib.PurePath(header)
        if re.search("__global__|<<<",
                     (self.root / path).read_text(encoding="utf-8")):
            return False        # For nvcc.
        source = path.with_suffix(".c").as_posix()
        if (self.root / source).exists():
            return source in self.sources
        return (not (self.root / path.with_suffix(".cu")).exists()
                and any(pathlib.PurePath(s).parent == path.parent
                        for s in self.sources))

    def run(self, folder, source):
        """Returns (header, line, message) for each error in 'source'."""
        flags = [f for flag in self.flags[folder] for f in flag.split("\0")]
        done = subprocess.run(
            ["cc", *flags, f"-I{self.root}", *FLAGS, str(source)],
            cwd=self.root, capture_output=True, text=True,
            env=dict(os.environ, LC_ALL="C"), timeout=120, check=False)
        errors = []
        for line in done.stderr.splitlines():
            match = re.match(r"(.*?):(\d+)(?::\d+)?: (?:fatal )?error: (.*)",
                             line)
            if match:
                errors.append((match[1], int(match[2]), match[3]))
        if done.returncode and not errors:
            errors.append((str(source), 0, done.stderr.strip()[-300:]))
        return errors


def includes_of(block, body, index, compiler):
    """Returns the headers that the code of 'block' needs."""
    names = {m[1] for m in CALL.finditer(body)}
    names |= set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", body))
    names |= set(re.findall(r"&(\w+)", body))
    names |= {name for name in re.findall(r"(?<!struct )\b\w+", body)
              if name in index.functions}
    names |= {f"{a} {b}" for a, b in re.findall(r"\b(struct|enum) (\w+)",
                                                body)}
    headers = [block.header]
    folder = pathlib.PurePath(block.header).parts[0]
    allowed = "" if folder in USERS else SHARED + (folder + "/",)
    for name in sorted(names):
        header = index.where(name, block.header)
        if (header and header not in headers and header.startswith(allowed)
                and compiler.builds(header)):
            headers.append(header)
    return headers


def is_built(block, index, compiler):
    """Returns true if the modules that 'block' shows and calls are parts of
    the build."""
    called = {index.where(m[1], block.header)
              for m in CALL.finditer(cleaned(block, index))}
    return all(compiler.builds(h) for h in called - {None} | {block.header})


def function_of(number, block, index):
    """Returns the code of 'block' as function 'number'."""
    block.placeholders = []
    cleaner = Cleaner(index, block)
    runs = [(line, cleaner.clean(code)) for line, code in block.runs]
    kinds = list(block.declarations.items()) + [
        (f"usage_{i}", kind) for i, kind in enumerate(block.placeholders)]
    lines = ["static void __attribute__((__unused__))",
             f"usage_{number}(void)", "{", CONTEXT.get(block.header, "")]
    lines += [kind.replace("@", name) + ";" for name, kind in kinds]
    for line, code in runs:
        lines += [f'#line {line} "{block.header}"', code]
    return "\n".join(lines + ["}", ""])


def write_unit(path, blocks, index, compiler):
    functions = [function_of(i, b, index) for i, b in enumerate(blocks)]
    headers = []
    for block, body in zip(blocks, functions):
        for header in includes_of(block, body, index, compiler):
            if header not in headers:
                headers.append(header)
    room = pathlib.PurePath(blocks[0].header).parent
    sources = [compiler.root / s for s in compiler.sources
               if pathlib.PurePath(s).parent == room]
    libraries = LIBRARIES
    if any("#include <config.h>" in s.read_text(encoding="utf-8")
           for s in sources):
        libraries = ("config.h",) + libraries + OPEN_VSWITCH
    libraries += tuple(INCLUDES[b.header] for b in blocks
                       if b.header in INCLUDES)
    lines = [f"#include <{name}>" for name in libraries]
    lines += [f'#include "{header}"' for header in headers]
    lines += ["int usage_any(void);", ""]
    path.write_text("\n".join(lines + functions), encoding="utf-8")


def check(root, build, headers):
    """Compiles the code that 'headers', a dict of names to texts, show, one
    unit a room.  Returns the number of blocks, the headers with code that are
    not a part of the build, and (header, line, message) for each error."""
    root = pathlib.Path(root).resolve()
    index = Index(headers)
    compiler = Compiler(root, build)
    units, skipped, errors, n = {}, [], [], 0
    for header, text in sorted(headers.items()):
        blocks = find_blocks(header, text, index)
        errors += [(header, b.runs[0][0], "a bracket has no partner")
                   for b in blocks if not is_balanced(b, index)]
        blocks = [b for b in blocks if is_balanced(b, index)]
        if blocks and all(is_built(b, index, compiler) for b in blocks):
            units.setdefault(str(pathlib.PurePath(header).parent),
                             []).extend(blocks)
            for block in blocks:
                declare(block, index)
            n += len(blocks)
        elif blocks:
            skipped.append(header)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "usage.c"
        for blocks in units.values():
            errors += compile_unit(path, blocks, index, compiler)
    return n, skipped, errors


def compile_unit(path, blocks, index, compiler):
    """Compiles 'blocks' until no identifier is undeclared."""
    errors = []
    for _ in range(4):
        write_unit(path, blocks, index, compiler)
        errors = compiler.run(blocks[0].header.split("/")[0], path)
        if not declare_missing(blocks, errors):
            break
    return errors


def declare_missing(blocks, errors):
    """Declares the identifiers that 'errors' name as integers.  Returns true
    if one was new."""
    changed = False
    for header, line, text in errors:
        found = UNDECLARED.search(text)
        block = found and next(
            (b for b in reversed(blocks) if b.header == header
             and b.runs[0][0] <= line), None)
        if not block:
            continue
        name = found[1] or found[2]
        if name in block.declarations:
            continue
        block.declarations[name] = "int @"
        changed = True
    return changed

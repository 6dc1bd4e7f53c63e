#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""chart.py CHART VALUES: prints what "helm template --namespace stagecoach"
makes of a chart, without helm.

Knows the part of the language of templates that packaging/chart uses, and
refuses everything else, also a value that is not in values.yaml, which helm
takes for an empty one.
"""

import copy
import os
import re
import subprocess
import sys

import jsonschema
import yaml

ACTION = re.compile(r"\{\{(-\s)?\s*(.*?)\s*(\s-)?\}\}", re.S)
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\||\(|\)|:=|,|[^\s|(),"]+')


class ChartError(Exception):
    pass


def merge(base, other):
    """Returns 'base' with the values of 'other', as helm merges them."""
    merged = copy.deepcopy(base)
    for key, value in other.items():
        merged[key] = (merge(merged[key], value)
                       if isinstance(value, dict)
                       and isinstance(merged.get(key), dict) else value)
    return merged


def show(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Template:
    """Parsed templates: nodes are texts, or tuples of an action."""

    def __init__(self):
        self.named = {}
        self.functions = {
            "default": lambda fallback, value: value or fallback,
            "gt": lambda a, b: a > b,
            "include": lambda name, dot: self.render(self.named[name], dot,
                                                     {"$": dot}),
            "join": lambda glue, words: glue.join(map(show, words)),
            "len": len,
            "list": lambda *words: list(words),
            "ne": lambda a, b: a != b,
            "nindent": lambda n, text: "\n" + "\n".join(
                " " * n + line for line in text.split("\n")),
            "or": lambda a, b: a or b,
            "title": str.title,
            "toYaml": lambda value: yaml.safe_dump(
                value, default_flow_style=False).strip(),
        }

    def parse(self, text):
        """Returns the nodes of a file, and keeps what it defines."""
        tokens, position, trim = [], 0, False
        for match in ACTION.finditer(text):
            before = text[position:match.start()]
            before = before.lstrip() if trim else before
            tokens.append(before.rstrip() if match[1] else before)
            tokens.append((match[2],))
            position, trim = match.end(), bool(match[3])
        tokens.append(text[position:].lstrip() if trim else text[position:])
        nodes, end = self.parse_until(tokens)
        if end is not None:
            raise ChartError(f"{end}: without a beginning")
        return nodes

    def parse_until(self, tokens):
        """Takes tokens up to an "end" or "else", which it returns, too."""
        nodes = []
        while tokens:
            token = tokens.pop(0)
            if isinstance(token, str):
                nodes.append(token)
                continue
            verb, _, rest = token[0].partition(" ")
            if verb in ("end", "else"):
                return nodes, token[0]
            if verb.startswith("/*"):
                continue
            if verb not in ("if", "range", "define"):
                nodes.append(("print", token[0]))
                continue
            body, end = self.parse_until(tokens)
            otherwise = []
            if end == "else":
                otherwise, end = self.parse_until(tokens)
            if end != "end":
                raise ChartError(f"{token[0]}: {end} instead of an end")
            if verb == "define":
                self.named[rest.strip('"')] = body
            else:
                nodes.append((verb, rest, body, otherwise))
        return nodes, None

    def render(self, nodes, dot, names):
        text = ""
        for node in nodes:
            if isinstance(node, str):
                text += node
            elif node[0] == "print":
                text += show(self.evaluate(node[1], dot, names))
            elif node[0] == "if":
                chosen = node[2 if self.evaluate(node[1], dot, names) else 3]
                text += self.render(chosen, dot, names)
            else:
                for value in self.evaluate(node[1], dot, names):
                    text += self.render(node[2], value, names)
        return text

    def evaluate(self, expression, dot, names):
        words = WORD.findall(expression)
        value = self.pipeline(words, dot, names)
        if words:
            raise ChartError(f"{expression}: {words[0]} is not expected")
        return value

    def pipeline(self, words, dot, names):
        value, piped = None, []
        while words and words[0] != ")":
            operands = []
            while words and words[0] not in ("|", ")"):
                operands.append(self.operand(words, dot, names))
            operands += piped
            value = operands[0]
            if callable(value):
                value = value(*operands[1:])
            elif len(operands) != 1:
                raise ChartError(f"{value}: is no function")
            piped = [value]
            if words and words[0] == "|":
                words.pop(0)
        return value

    def operand(self, words, dot, names):
        word = words.pop(0)
        if word == "(":
            value = self.pipeline(words, dot, names)
            words.pop(0)
            return value
        if word[0] == '"':
            return word[1:-1]
        if word.isdigit():
            return int(word)
        if word in self.functions:
            return self.functions[word]
        name, *path = word.split(".")
        if name not in ("", *names):
            raise ChartError(f"{word}: unknown")
        value = names[name] if name else dot
        for member in filter(None, path):
            if member not in value:
                raise ChartError(f"{word}: there is no {member}")
            value = value[member]
        return value


def load(path):
    with open(path, encoding="utf-8") as stream:
        return yaml.safe_load(stream)


def get_values(chart, values):
    """Returns the values of a chart with those given, which must be valid."""
    merged = merge(load(f"{chart}/values.yaml"), values)
    validator = jsonschema.Draft7Validator(load(f"{chart}/values.schema.json"))
    errors = [f"{'.'.join(map(str, error.absolute_path)) or 'values'}: "
              f"{error.message}" for error in validator.iter_errors(merged)]
    if errors:
        raise ChartError("\n".join(sorted(errors)))
    return merged


def render(chart, values, notes=False):
    """Returns the text of the chart's objects, or of its notes."""
    about = load(f"{chart}/Chart.yaml")
    dot = {"Values": get_values(chart, values),
           "Chart": {"AppVersion": about["appVersion"]},
           "Release": {"Name": "stagecoach", "Namespace": "stagecoach"}}
    template, files = Template(), {}
    for name in sorted(os.listdir(f"{chart}/templates")):
        with open(f"{chart}/templates/{name}", encoding="utf-8") as stream:
            files[name] = template.parse(stream.read())
    texts = {name: template.render(nodes, dot, {"$": dot}).strip()
             for name, nodes in files.items()}
    if notes:
        return texts["NOTES.txt"] + "\n"
    return "".join(f"---\n# Source: stagecoach/templates/{name}\n{text}\n"
                   for name, text in texts.items()
                   if name.endswith(".yaml") and text)


def render_by_helm(chart, path):
    done = subprocess.run(
        ["helm", "template", "stagecoach", chart, "--namespace", "stagecoach",
         "--values", path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChartError(done.stderr)
    return done.stdout


def main():
    try:
        print(render(sys.argv[1], load(sys.argv[2]) or {}), end="")
    except ChartError as error:
        print(f"chart.py: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

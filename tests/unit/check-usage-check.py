#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-usage-check.py CHECK: check-usage.py finds each kind of fault in the
code of one header, names its line, and accepts code without one."""

import json
import pathlib
import subprocess
import sys
import tempfile

HEADER = """/* Stops traffic for a while.
 *
 * Usage
 * =====
 *
%s
 *
 * A light is one of these:
 *
 *    red     (stop)
 *    green   go; do not wait
 */

#include <stdbool.h>
#include <stddef.h>

struct light;
struct lamp {
    int watts;
    const char *color;
};
struct light_class {
    int (*turn)(struct light *, bool on);
};

char *light_create(const char *name, struct light **lightp);
void light_destroy(struct light *);
int light_set(struct light *, const struct lamp *, size_t n);
size_t light_each(struct light *, void (*see)(const struct lamp *, void *aux),
                  void *aux);
struct lamp *light_lamp(struct light *, size_t i);
const char *light_name(const struct light *);
"""

# Name, code, and the faults: line of the code and words of the message.
CASES = (
    ("accepts_variables_that_the_code_does_not_declare",
     """error = light_create("a", &light);
        if (!light_set(light, lamps, n)) {
            count = light_each(light, see_lamp, aux);
        }
        name = light_name(light);
        light_destroy(light);""", ()),
    ("accepts_remarks",
     """light_set(light, ...);              // Again.
        light_set(light, ...lamps..., 1);   (the main thread)
        while (...there is time... && n < 3) {
            ...some lamp->watts, then light_destroy(light)...
            lamp = ...another one...
        }
        for (...) {
            ...
        }
        ...light_lamp(light, 0)->watts is enough...
        struct lamp red = { .watts = 5, ... };
        ...red.watts...""", ()),
    ("accepts_methods_and_members_of_initializers",
     """const struct light_class *class = ...the one that is built in...;
        struct lamp lamp = { .color = color };
        error = class->turn(light, true);
        light_destroy(light);""", ()),
    ("names_a_function_that_is_gone",
     """light_set(light, lamps, n);
        light_dim(light);""",
     ((2, "light_dim() is not declared"), (2, "light_dim"))),
    ("names_a_call_with_another_number_of_arguments",
     "light_set(light, n);",
     ((1, "light_set() has 2 arguments"), (1, "too few arguments"))),
    ("names_an_argument_of_another_type",
     """light_set(light, lamps, n);
        light_set(light, "red", n);""",
     ((2, "incompatible pointer type"),)),
    ("names_a_number_instead_of_a_pointer",
     "light_destroy(3);", ((1, "makes pointer from integer"),)),
    ("names_arguments_in_another_order",
     "light_create(&light, name);", ((1, "incompatible pointer type"),)),
    ("names_a_result_of_another_type",
     """struct lamp *lamp = light_lamp(light, 0);
        lamp = light_name(light);""",
     ((2, "incompatible pointer type"),)),
    ("names_a_constant_that_is_changed",
     """const struct lamp *lamp = light_lamp(light, 0);
        lamp->watts = 7;""", ((2, "read-only"),)),
    ("names_a_member_that_is_gone",
     """struct lamp lamp = { .amperes = 1 };
        lamp.volts = 230;
        ...lamp.height...""",
     ((1, "amperes"), (2, "volts"), (3, "height"))),
    ("names_a_call_in_a_remark",
     "...light_set(light, lamps, light) until it is dark...",
     ((1, "makes integer from pointer"),)),
    ("names_a_block_that_does_not_end",
     "if (light_set(light, lamps, n)) {",
     ((1, "bracket"),)),
)


def run(check, code):
    """Lines of the check's output and its exit status, for a tree with one
    header that shows 'code'."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "agent").mkdir()
        lines = [" *    " + line.strip() for line in code.split("\n")]
        (root / "agent/light.h").write_text(HEADER % "\n".join(lines),
                                            encoding="utf-8")
        (root / "agent/light.c").write_text("", encoding="utf-8")
        (root / "compile_commands.json").write_text(json.dumps([
            {"directory": folder, "file": "agent/light.c",
             "command": "cc -std=gnu11 -c agent/light.c"}]), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-B", check, folder, folder],
            capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done.stdout.splitlines(), done.returncode


def main():
    for name, code, expected in CASES:
        lines, status = run(sys.argv[1], code)
        faults = [line for line in lines if line.startswith("agent/light.h:")]
        assert status == (1 if expected else 0), (name, lines)
        assert len(faults) == len(expected), (name, lines)
        for line, (number, words) in zip(faults, expected):
            assert line.startswith(f"agent/light.h:{number + 5}: "), (name,
                                                                      line)
            assert words in line, (name, line, words)


if __name__ == "__main__":
    main()

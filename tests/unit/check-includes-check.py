#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-includes-check.py CHECK: check-includes.py finds each kind of fault
in a small tree, names its file and line, and accepts a tree without one."""

import pathlib
import subprocess
import sys
import tempfile

# Files of a tree, and the beginnings of the lines that the check prints.
CASES = (
    ("accepts_a_tree_without_a_circle",
     {"agent/a.c": '#include "wire/w.h"\n', "wire/w.h": "",
      "order/o.c": '#include <math.h>\n#include "order/p/q.h"\n',
      "order/p/q.h": "#include <stdint.h>\n"},
     []),
    ("names_the_include_that_closes_a_circle_of_folders",
     {"sim/a.h": '\n#include "policies/b.h"\n#include "policies/c.h"\n',
      "policies/b.h": '#include "sim/a.h"\n', "policies/c.h": ""},
     ["policies/b.h:1: "]),
    ("names_the_include_that_closes_a_circle_of_rooms",
     {"shim/x/a.h": '#include "shim/y/b.h"\n#include "shim/y/c.h"\n',
      "shim/y/b.h": "", "shim/y/c.h": '/* */\n\n#include "shim/x/a.h"\n'},
     ["shim/y/c.h:3: "]),
    ("counts_the_files_of_the_folder_itself_as_a_room",
     {"agent/a.h": '#include "agent/x/b.h"\n#include "agent/x/c.h"\n',
      "agent/x/b.h": "", "agent/x/c.h": '#include "agent/a.h"\n'},
     ["agent/x/c.h:1: "]),
    ("keeps_order_to_the_c_library",
     {"order/o.c": '#include <math.h>\n#include "base/m.h"\n'
                   '#include <cjson/cJSON.h>\n', "base/m.h": ""},
     ["order/o.c:2: ", "order/o.c:3: "]),
    ("keeps_databases_and_decisions_out_of_the_model",
     {"controller/model/m.c": '#include "wire/intent-idl.h"\n'
                              '#include "controller/decide/d.h"\n'
                              '#include "order/o.h"\n',
      "controller/decide/d.h": "", "order/o.h": ""},
     ["controller/model/m.c:1: ", "controller/model/m.c:2: "]),
    ("keeps_the_simulator_out_of_daemons",
     {"controller/c.c": '#include "sim/s.h"\n', "sim/s.h": ""},
     ["controller/c.c:1: "]),
    ("keeps_the_trainer_out_of_what_daemons_include",
     {"agent/a.c": '#include "wire/w.h"\n',
      "wire/w.h": '#include "trainer/t.h"\n', "trainer/t.h": ""},
     ["wire/w.h:1: "]),
    ("refuses_a_declaration_of_what_another_room_defines",
     {"trainer/a/a.h": "int f(int);\nextern const int g;\nint h(void);\n",
      "trainer/a/b/h.c": "int\nh(void)\n{\n    return 1;\n}\n",
      "trainer/c/f.c": "int\nf(int x)\n{\n    return x;\n}\n\n"
                       "const int g = 1;\n"},
     ["trainer/a/a.h: declares f,", "trainer/a/a.h: declares g,"]),
)


def main():
    for name, files, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                path = pathlib.Path(folder) / path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, sys.argv[1], folder],
                                  capture_output=True, text=True, timeout=20,
                                  check=False)
        lines = done.stdout.splitlines()
        assert done.returncode == (1 if expected else 0), (name, done)
        assert len(lines) == len(expected), (name, lines)
        for line, start in zip(lines, expected):
            assert line.startswith(start), (name, line, start)


if __name__ == "__main__":
    main()

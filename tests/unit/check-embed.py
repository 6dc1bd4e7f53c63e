#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-embed.py EMBED: files get into a program as they are, and files from
elsewhere only with the hash that is known; a page has all that it refers to."""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

DATA = bytes(range(256)) + b"\"\\\n??/"


PAGE = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<link rel="stylesheet" href="a.css">
<script src="b/x.js"></script>
<script type="module" src="main.js"></script>
"""
MODULES = {
    "main.js": 'import { two } from "./two.js";\n'
               'import { one, third }\n    from "./one.js";\nf(one, two);\n',
    "one.js": "export const one = 1;\nexport async function third() {}\n",
    "two.js": 'import { one } from "./one.js";\n\n'
              "export function two() { return one; }\n",
}
BUNDLE = """"use strict";
{
const modules = {};
modules["one.js"] = (() => {
const one = 1;
async function third() {}
return { one, third };
})();
modules["two.js"] = (() => {
const { one } = modules["one.js"];

function two() { return one; }
return { two };
})();
modules["main.js"] = (() => {
const { two } = modules["two.js"];
const { one, third } = modules["one.js"];
f(one, two);
return {  };
})();
}
"""


def embed(folder, *args):
    """Returns the output of embed.py in 'folder', or its error message."""
    output = folder / "out.c"
    done = subprocess.run(
        [sys.executable, sys.argv[1], args[0], output, *args[1:]],
        capture_output=True, text=True, timeout=20, check=False)
    return output.read_text() if done.returncode == 0 else done.stderr


def from_c(text, name):
    array = re.search(name + r"\[\] = {\n(.*?)};", text, re.S)[1]
    return bytes(int(n) for n in re.findall(r"\d+", array))


def check_table(folder):
    ui = folder / "ui"
    files = ("table", ui / "b" / "x.js", ui / "a.css")
    sums = ui / "b" / "SHA256SUMS"

    sums.write_text(hashlib.sha256(DATA).hexdigest() + "  x.js\n")
    text = embed(folder, *files)
    assert from_c(text, "file_1") == DATA, text
    assert '"/ui/a.css", "text/css; charset=utf-8"' in text, text
    assert f'file_1, {len(DATA)} }}' in text, text
    assert "n_dashboard_files = 2;" in text, text

    for line in ("0" * 64 + "  x.js\n", ""):
        sums.write_text(line)
        text = embed(folder, *files)
        assert "b/x.js: its SHA-256 is " in text, text
    sums.unlink()


def check_page(folder):
    def hash_of(text):
        return "'sha256-" + base64.b64encode(
            hashlib.sha256(text.encode()).digest()).decode() + "'"
    ui = folder / "ui"
    template = ui / "page.html"
    script = "f('\"');\n"

    template.write_text(PAGE)
    (ui / "a.css").write_text("a{}")
    (ui / "b" / "x.js").write_text(script)
    for name, text in MODULES.items():
        (ui / name).write_text(text)
    page = from_c(embed(folder, "page", template), "report_page").decode()
    assert page == (
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        f"'none'; style-src {hash_of('a{}')}; script-src {hash_of(script)} "
        f'{hash_of(BUNDLE)}">\n<style>a{{}}</style>\n'
        f"<script>{script}</script>\n<script>{BUNDLE}</script>\n\0"), page

    for text, error in [
            ("x = '</SCRIPT>';", 'a script has "</script"'),
            ("export default f;", '"export default f;" is not one of')]:
        (ui / "one.js").write_text(text)
        assert error in embed(folder, "page", template)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "ui" / "b").mkdir(parents=True)
        (folder / "ui" / "a.css").write_bytes(b"")
        (folder / "ui" / "b" / "x.js").write_bytes(DATA)
        check_table(folder)
        check_page(folder)


main()

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""check-embed.py EMBED: the dashboard's files get into the program as they
are, and those that came from elsewhere only if nobody changed them."""

import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

DATA = bytes(range(256)) + b"\"\\\n??/"


def embed(folder):
    """Returns the table of what is in 'folder', or what is wrong with it."""
    output = folder / "out.c"
    done = subprocess.run(
        [sys.executable, sys.argv[1], output, folder / "ui",
         folder / "ui" / "b" / "x.js", folder / "ui" / "a.css"],
        capture_output=True, text=True, timeout=20, check=False)
    return output.read_text() if done.returncode == 0 else done.stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "ui" / "b").mkdir(parents=True)
        (folder / "ui" / "a.css").write_bytes(b"")
        (folder / "ui" / "b" / "x.js").write_bytes(DATA)
        sums = folder / "ui" / "b" / "SHA256SUMS"

        sums.write_text(hashlib.sha256(DATA).hexdigest() + "  x.js\n")
        text = embed(folder)
        array = re.search(r"file_1\[\] = {\n(.*?)};", text, re.S)[1]
        assert bytes(int(n) for n in re.findall(r"\d+", array)) == DATA, text
        assert '"/ui/a.css", "text/css; charset=utf-8"' in text, text
        assert f'file_1, {len(DATA)} }}' in text, text
        assert "n_dashboard_files = 2;" in text, text

        for line in ("0" * 64 + "  x.js\n", ""):
            sums.write_text(line)
            text = embed(folder)
            assert "b/x.js: its SHA-256 is " in text, text


main()

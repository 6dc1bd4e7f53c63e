#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs all commands of docs/tutorial.md in a lab with another name, and
# compares their output.
set -eu
. "$SOURCE/tests/lab/lab-functions.sh"

begin_lab t

PATH=$PATH:/usr/sbin
need munged slurmctld slurmd srun sbatch
[ -e "$BUILD/agent/launch/stagecoach-spank.so" ] ||
    { echo "needs stagecoach-spank.so, which is not built"; exit 77; }
# Uses the Debian interpreter, whatever else is in PATH.
for module in torch optuna; do
    if ! /usr/bin/python3 -c "import $module" 2>/dev/null; then
        echo "needs python3-$module"
        exit 77
    fi
done

# Checks that wrong output, and a command that fails, are detected.
for commands in 'echo b' 'echo a; false'; do
    printf '```sh\n%s\n```\n```text\na...\n```\n' "$commands" >"$dir/wrong.md"
    if python3 "$SOURCE/tests/lab/run-document.py" "$dir/wrong.md" \
        >/dev/null 2>&1; then
        fail "no difference was seen: $commands"
    fi
done

cd "$SOURCE"
export BUILD TMPDIR="$dir"
timeout 800 python3 "$SOURCE/tests/lab/run-document.py" docs/tutorial.md \
    "\$PWD/build=$BUILD" "tutor=$name" || {
    find "$dir" -name '*.err' -exec tail -n 20 {} +
    fail "the tutorial"
}
assert_clean "the tutorial"
echo PASS

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Carries out the attacks of tests/hostile against the built programs, each of
# which worked once, and collects what they won.
set -eu
cd "$(dirname "$0")/../.."
export BUILD="$PWD/build" SOURCE="$PWD" HOSTILE_FULL="${HOSTILE_FULL:-1}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM

failed=0
# scene NAME COMMAND...: keeps the lines of a scene.
scene() {
    name=$1
    shift
    status=0
    timeout 900 "$@" >"$dir/$name" 2>"$dir/errors" </dev/null || status=$?
    [ $status != 77 ] || { cat "$dir/$name"; exit 77; }
    [ $status = 0 ] || {
        failed=$((failed + 1))
        tail -n 20 "$dir/errors" >&2
    }
}
for name in identity slowed tables; do
    scene $name env HOST_PIDS=1 sh tests/lab/isolated.sh \
        tests/hostile/$name.sh
done
scene shim-messages sh tests/lab/isolated.sh tests/hostile/shim-messages.sh
scene controller python3 tests/hostile/controller.py
python3 - "$dir" $failed <<'END'
import glob
import json
import sys

attacks = {}                    # By name; a line may have a part of one.
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith('{"attack"'):
                attack = json.loads(line)
                attacks.setdefault(attack["attack"], {}).update(attack)


def values(key):
    return {name: a[key] for name, a in attacks.items() if key in a}


print(json.dumps({
    "bench": "hostile",
    "figures": {
        "attacks": len(values("worked_at")),
        "failed": int(sys.argv[2]),
        "stolen": sum(values("stolen").values()),
        "slowed": max(values("slowed").values(), default=1),
        "alarm_s": max(values("alarm_s").values(), default=0),
        "refused_honest": sum(values("refused_honest").values()),
        "never_worked": len(attacks) - len(values("worked_at")),
        "slowed_by_attack": values("slowed"),
        "alarm_by_attack": values("alarm_s"),
    },
}))
END

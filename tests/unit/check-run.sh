#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check-run.sh RUN: ./run gives back the huge pages that it reserved, also if it
# fails or is interrupted, and no others; without shims it reserves none.  It
# measures "main" and simulates the same searches, "stage" first.  Set-up, lab
# and huge pages are fakes.
set -eu

dir=$(mktemp -d "${TMPDIR:-/tmp}/sct-run-$$-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/deps" "$dir/bin" "$dir/build/cli"
sed "s,/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages,$dir/pages," \
    "$1" >"$dir/run"

fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$dir/$1"
    chmod +x "$dir/$1"
}
fail() {
    echo "FAIL: $1" >&2
    exit 1
}
# Runs ./run with ARG..., expects exit status STATUS, and PAGES afterwards.
run() {
    status=$1 pages=$2
    shift 2
    echo 10 >"$dir/pages"
    : >"$dir/calls"
    got=0
    PATH="$dir/bin:$PATH" sh "$dir/run" "$@" >"$dir/out" 2>&1 || got=$?
    [ "$got" = "$status" ] || fail "exit status $got: $(cat "$dir/out")"
    [ "$(cat "$dir/pages")" = "$pages" ] ||
        fail "$(cat "$dir/pages") huge pages, expected $pages"
}

fake bin/id 'echo 0'
reserve="[ \"\$BUILD_FOR\" = run ] && echo 250 >$dir/pages &&
    echo \"\$BUILD_HUGE_PAGES\" >$dir/may-reserve"
call="echo \"\$@\" >>$dir/calls"
fake deps/setup.sh "$reserve"
fake build/cli/stagecoach "$call"
run 0 10 --seed 3
grep -qx 'lab run lab/scenarios/main.json --seed 3' "$dir/calls" ||
    fail "not measured: $(cat "$dir/calls")"
grep -q '^sim lab/scenarios/main.json --seed=3 --policy stage --policy plain ' \
    "$dir/calls" || fail "not simulated: $(cat "$dir/calls")"
[ "$(cat "$dir/may-reserve")" = true ] || fail "no huge pages for shims"
for option in "--actuator bpf" --actuator=bpf; do
    # shellcheck disable=SC2086
    run 0 10 $option
    [ "$(cat "$dir/may-reserve")" = false ] || fail "huge pages without shims"
    grep -qx "lab run lab/scenarios/main.json $option" "$dir/calls" ||
        fail "another actuator: $(cat "$dir/calls")"
done
run 0 10 --placements 2
! grep -q '^sim' "$dir/calls" || fail "simulates one of several placements"

fake build/cli/stagecoach "echo 255 >$dir/pages"
run 0 15
fake build/cli/stagecoach 'exit 1'
run 1 10
fake build/cli/stagecoach 'kill -INT $PPID; sleep 0.2'
run 130 10
fake deps/setup.sh "$reserve; exit 3"
run 3 10
fake deps/setup.sh :
fake build/cli/stagecoach "$call"
run 0 10

# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034,SC2154
#
# Functions for scenes in a lab: how much an attack slows a transfer.  An attack
# is a program that runs with its trick and, as often, with the same load without
# it.  Sourced.

# $HOSTILE_FULL=1: the median of five pairs instead of one.
pairs=1
[ "${HOSTILE_FULL:-0}" != 1 ] || pairs=5

on() {
    host=$1
    shift
    lab exec "$host" -- "$@"
}

# launch HOST COMMAND...: a process group that runs until end_attack.
attacks=
launch() {
    host=$1
    shift
    # shellcheck disable=SC2016 # Variables of the inner shell.
    on "$host" setsid --wait sh -c 'echo $$ >>"$1"; shift; exec "$@"' sh \
        "$dir/attackers" "$@" >>"$dir/attack.out" 2>&1 &
    attacks="$attacks $!"
    pids="$pids $!"
}
end_attack() {
    while read -r group; do
        kill -- "-$group" 2>/dev/null || true
    done <"$dir/attackers"
    : >"$dir/attackers"
    : >"$dir/attack.out"
    for attack in $attacks; do
        wait "$attack" || true
    done
    attacks=
}

# median FILE: prints the median of its lines.
median() { sort -g "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

# measure NAME TRANSFER ATTACK...: sets $slowed.  TRANSFER is a command that
# prints seconds; ATTACK, with "yes" or "no" for its trick, launches the program.
measure() {
    measured=$1 transfer=$2
    shift 2
    : >"$dir/ratios"
    : >>"$dir/attackers"
    i=0
    while [ $((i += 1)) -le "$pairs" ]; do
        for trick in no yes; do
            "$@" $trick
            sleep 0.5
            eval "$trick=\$($transfer)"
            end_attack
        done
        echo "$no $yes" | awk '{ print $2 / $1 }' >>"$dir/ratios"
    done
    slowed=$(median "$dir/ratios")
    echo "$measured: $no s without, $yes s with the trick" >&2
}
# is_above LIMIT: $slowed is above it.
is_above() { echo "$slowed $1" | awk '{ exit !($1 > $2) }'; }

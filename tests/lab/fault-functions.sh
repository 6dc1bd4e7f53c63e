# SPDX-License-Identifier: Apache-2.0
#
# shellcheck shell=sh disable=SC2034,SC2154
#
# Functions for tests that inject faults into a lab in which two searches
# train.  Sourced after lab-functions.sh.
#
# FAULT_SEED: seed of the moments of the faults; a test prints it.  A test
# prints one JSON line of measures for each fault; see fault-measure.py.

ann=12001 bob=12002

# begin_faults LETTER [FUNCTION]: starts a lab of three hosts, two searches, and a
# stranger who says that his traffic from h0 to h2 is that of one of the
# searches' jobs.  FUNCTION writes programs that replace the built ones to
# "$dir/bin".
begin_faults() {
    begin_lab "$1"
    # shellcheck disable=SC2317 # Called at a failure.
    show() { cat "$dir/searches/"*.out | grep -v '"progress"'; }
    need setpriv python3
    chmod 755 "$dir"
    rundir=/run/stagecoach/lab-$name
    export STAGECOACH_RUNDIR="$rundir"
    seed=${FAULT_SEED:-$(($(date +%s) % 1000000))}
    echo "seed $seed"
    mkdir "$dir/searches"
    failures=0
    # Everyone's environment counts, so that a stranger has a chance.
    sed 's/"order":/"trust": "environment", "order":/' \
        "$SOURCE/policies/stage.json" >"$dir/policy.json"
    mkdir "$dir/bin"
    ${2:-true}
    LAB_BIN=$dir/bin lab up "$SOURCE/lab/scenarios/smoke.json" \
        --policy "$dir/policy.json"
    python3 - "$SOURCE/lab/scenarios/smoke.json" "$dir" "$rundir" "$name" \
        <<'PYTHON'
import json, sys

scenario, folder, rundir, name = sys.argv[1:]
with open(scenario) as f:
    searches = [entry["search"] for entry in json.load(f)["searches"]]
# One search with a stage of a few seconds after the other, and one with a
# stage that does not end.
searches[0]["rungs"] = [{"iterations": 25 * (i + 1), "keep": 1}
                        for i in range(32)]
searches[1]["rungs"] = [{"iterations": 1000000, "keep": 1}]
for search in searches:
    with open(f"{folder}/{search['name']}.json", "w") as f:
        json.dump(search, f)
hosts = [{"name": f"h{i}", "address": f"10.77.0.{i + 1}", "launch": "netns",
          "netns": f"scl-{name}-h{i}", "rundir": f"{rundir}/hosts/h{i}",
          "cgroup": f"stagecoach/lab-{name}/hosts/h{i}", "slots": 8}
         for i in range(3)]
with open(f"{folder}/cluster.json", "w") as f:
    json.dump({"hosts": hosts}, f)
PYTHON
    begin_search asha
    begin_search bravo
    begin_stranger
    await_order "two searches train"
}

# write_agent DB CONTROLLER: writes an agent with TLS, certificates from "$pki"
# and these remotes.
write_agent() {
    cat >"$dir/bin/stagecoach-agent" <<SCRIPT
#!/bin/sh
last=
for word; do
    shift
    case \$last in
    --host) host=\$word ;;
    --db) word=$1 ;;
    --controller) word=$2 ;;
    esac
    last=\$word
    set -- "\$@" "\$word"
done
exec "$BUILD/agent/stagecoach-agent" "\$@" \
    -p "$pki/agents/\$host/identity.pem" \
    -c "$pki/agents/\$host/identity.pem" -C "$pki/agents/\$host/ca.pem"
SCRIPT
    chmod 755 "$dir/bin/stagecoach-agent"
}

# await_order WHAT: waits until all searches train, in an order.
await_order() {
    for out in "$dir/searches/"*.out; do
        await "$1: ${out##*/}" grep -q job-ready "$out"
    done
    await "$1" python3 "$SOURCE/tests/lab/fault-measure.py" "$rundir" none \
        --searches "$dir/searches" true
}

# begin_search NAME [SEARCH]: runs the search NAME, or SEARCH under that name,
# with process id $search.
begin_search() {
    sed "s/\"name\": \"${2:-$1}\"/\"name\": \"$1\"/" "$dir/${2:-$1}.json" \
        >"$dir/run-$1.json"
    "$BUILD/cli/stagecoach" search run "$dir/run-$1.json" \
        --cluster "$dir/cluster.json" --intent "${intent:-unix:$rundir/intent.sock}" \
        --format json >"$dir/searches/$1.out" 2>"$dir/$1.log" &
    search=$!
    pids="$pids $search" searches="${searches:-} $search"
}

begin_stranger() {
    cp "$BUILD/tests/lab/traffic" "$dir/"
    lab exec h2 -- "$dir/traffic" sink 600000 6001 >/dev/null &
    pids="$pids $!"
    sleep 0.2
    STAGECOACH_COJOB=bravo STAGECOACH_JOB=t0 lab exec h0 -- \
        setpriv --reuid $bob --regid $bob --clear-groups \
        "$dir/traffic" drip 10.77.0.3 6001 600000 10000 &
    pids="$pids $!"
}

# pid_of PATTERN: prints the id of the first process of the lab whose command
# line matches.
pid_of() {
    for dir_ in /proc/[0-9]*; do
        if tr '\0' ' ' 2>/dev/null <"$dir_/cmdline" | grep -q -- "$1"; then
            echo "${dir_#/proc/}"
            return
        fi
    done 2>/dev/null
}

# fault NAME OPTION... BEGIN [END]: injects a fault at a random moment of the
# next two seconds and measures it, on h2.
fault() {
    seed=$(((seed * 1103515245 + 12345) & 0x7fffffff))
    sleep "$(awk -v n=$((seed / 65536 % 2000)) 'BEGIN { print n / 1000 }')"
    lab exec h2 -- python3 "$SOURCE/tests/lab/fault-measure.py" "$rundir" \
        --port 6001 --searches "$dir/searches" "$@" ||
        failures=$((failures + 1))
}

# kill_one PID FAULT OPTION...
kill_one() {
    pid=$1
    shift
    [ -n "$pid" ] || fail "$1: there is no such process"
    fault "$@" "kill -9 $pid"
}

# stop_one PID FAULT OPTION...: stops the process for six seconds.
stop_one() {
    pid=$1
    shift
    [ -n "$pid" ] || fail "$1: there is no such process"
    fault "$@" --hold 6 "kill -STOP $pid" "kill -CONT $pid"
}

# pid_of_job HOST JOB: prints the id of a process of the job's.
pid_of_job() {
    head -n 1 "$(cgroup_mount)/stagecoach/lab-$name/hosts/$1/$2/cgroup.procs"
}

# end_faults: fails if a fault had a measure that is not as it must be.
end_faults() {
    [ "$failures" = 0 ] || fail "$failures faults"
    # shellcheck disable=SC2086
    kill $searches 2>/dev/null || :
    # shellcheck disable=SC2086
    wait $searches || :
    lab down
    assert_clean "the lab"
    echo PASS
}

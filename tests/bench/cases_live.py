#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cases_live.py: inputs by $SEED (51) for a controller and an agent.

Prints a line for each (tests/unit/case_lines.py).  Runs as root, below
tests/lab/isolated.sh with HOST_PIDS=1.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import string
import subprocess
import sys
import time
from random import Random

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("hostile", "unit")]
from controller import (  # noqa: E402
    BUILD, SOURCE, STAGECOACH, Cluster, Rest)
from case_lines import case, check, failures  # noqa: E402

AGENT = BUILD / "agent/stagecoach-agent"
FAKE_JOB = BUILD / "tests/lab/fake-job"
GROUP = "sct-cases"             # The cgroup of jobs.
PINS = f"/sys/fs/bpf/{GROUP}"
FAR = "10.98.0.2"
WORD = string.ascii_letters + string.digits + "_"
USERS = (1000, 1001)
ANNOUNCE = """
import json, sys, types
sys.path.insert(0, sys.argv[1])
from stagecoach_client import announce
search, *stage = json.loads(sys.argv[2])
announce(types.SimpleNamespace(**search), *stage)
"""


class Host(Cluster):
    """A controller, an agent of this host, and another host behind it."""

    def begin(self):
        os.chmod(self.dir, 0o755)
        os.symlink(self.dir / "c.rest", self.dir / "rest.sock")
        for words in ("netns add far",
                      "link add e0 type veth peer name e0 netns far",
                      "addr add 10.98.0.1/24 dev e0", "link set e0 up",
                      f"-n far addr add {FAR}/24 dev e0",
                      "-n far link set e0 up"):
            subprocess.run(["ip", *words.split()], check=True)
        self.launch("ip", "netns", "exec", "far", FAKE_JOB, "listen", FAR,
                    "5000")
        self.start_agent("h0", self.dir, "--actuator=observe", "--uplink=e0",
                         f"--pins={PINS}", f"--cgroup={GROUP}")
        self.until(lambda: self.ask("agent/status", "agent"))
        self.progress = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.progress.connect(str(self.dir / "progress.sock"))

    def __exit__(self, *_):
        super().__exit__()
        subprocess.run([AGENT, "--unload", "--pins", PINS], check=False)

    def launch(self, *words, **more):
        self.processes.append(subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            env={**self.env, "STAGECOACH_CGROUP": GROUP,
                 "STAGECOACH_RUNDIR": str(self.dir)}, **more))
        return self.processes[-1]

    def start_agent(self, host, rundir, *options):
        return self.launch(
            AGENT, f"--host={host}", f"--rundir={rundir}",
            f"--controller=tcp:127.0.0.1:{self.port}",
            f"--db=unix:{self.run}/hosts.sock", *options, "-vconsole:off",
            "-vsyslog:off")

    def run_job(self, name, *words, **more):
        cojob, job = name.split("/")
        return self.launch(STAGECOACH, "run", "--cojob", cojob, "--job", job,
                           *words, **more)

    def job(self, name):
        """What the agent says of a job."""
        return next((job for job in self.ask("agent/jobs", "agent")["jobs"]
                     if job["job"] == name), {})

    def http(self, method, path, body=None):
        """The status and the reply; 'body' may be text."""
        with contextlib.closing(Rest(self.dir / "c.rest")) as rest:
            rest.request(method, path, body if isinstance(body, str)
                         else body and json.dumps(body))
            answer = rest.getresponse()
            return answer.status, json.loads(answer.read())

    def status_of(self, *request):
        """The status of a request about what has just begun."""
        self.until(lambda: self.http(*request)[0] != 404)
        return self.http(*request)[0]


def make_name(random, size):
    """A name of 'size' characters, as hosts, searches and jobs may have."""
    return random.choice(WORD) + "".join(random.choices(WORD + ".-",
                                                        k=size - 1))


def make_metric(random, size):
    """A name of 'size' bytes, as metrics may have."""
    text = ""
    while len(text.encode()) < size - 3:
        text += random.choice("abc/@ {}\"\\'=,é…π<>&")
    return text + "x" * (size - len(text.encode()))


def names(host, random):
    host.sc("pki", "init", "--dir", str(host.dir / "pki"))
    for size in (1, 31, 32, 63, 65, 252, 253):
        machine, cojob = (make_name(random, size) for _ in range(2))
        metric = make_metric(random, size + 2)
        report = {"iteration": 3, "metric": metric, "value": 0.5}
        with case("names", (machine, cojob, metric)):
            host.agent(machine)
            check("its report", host.until(
                lambda: host.host_state(machine)) < 20, True)
            check("a search", host.http("PUT", f"/v1/cojobs/{cojob}")[0], 200)
            for worker in machine, "h0":
                job = make_name(random, max(size, 2))
                path, name = f"/v1/cojobs/{cojob}/jobs/{job}", f"{cojob}/{job}"
                check("a job", host.status_of(
                    "PUT", path, {"workers": [{"host": worker}]}), 200)
                if worker == machine:
                    check("REST", host.status_of("POST", f"{path}/progress",
                                                 report), 200)
                else:
                    host.run_job(name, "--", "sleep", "60")
                    host.until(lambda: host.job(name))
                    host.progress.send(json.dumps({
                        "cojob": cojob, "job": job, **report}).encode())
                host.until(lambda: host.http("GET", path)[1]["metric"])
                told = host.http("GET", path)[1]
                check("what it did", [told.get(key) for key in (
                    "job", "metric", "iteration", "hosts")],
                      [name, metric, 3, [worker]])
            for words in (("agent", machine),
                          ("client", f"{job[:200]}+lab@example.com", "--role",
                           "user")):
                done = host.sc("pki", "issue", *words, "--dir",
                               str(host.dir / "pki"), check=False)
                check(words, (done.returncode, done.stderr), (0, ""))
    for name in (make_name(random, 254), "-h", "a%20b", "%C3%A4", "a%40b"):
        with case("names", f"refused: {name}"):
            status, _ = host.http("PUT", f"/v1/cojobs/{name}")
            check(name, status in (400, 404), True)
    for size in 43, 253:
        name = make_name(random, size)
        with case("names", f"an agent: {name}"):
            rundir = host.dir / f"agent{size}"
            rundir.mkdir()
            agent = host.start_agent(name, rundir, f"--cgroup={GROUP}{size}")
            check("it reports", (host.until(lambda: host.host_state(
                name)) < 20, agent.poll()), (True, None))
            agent.kill()


def progress(host, random):
    """What programs report to an agent, and to a controller."""
    values = ["NaN", "Infinity", "-Infinity", "null", '"x"', "[1]", "{}",
              "1e999", "true"]
    metrics = ["null", "7", '""', json.dumps("m" * 256), '"eval loss"']
    host.http("PUT", "/v1/cojobs/odd")
    host.run_job("odd/sent", "--", "sleep", "60")
    host.until(lambda: host.job("odd/sent"))
    for number in range(1, 13):
        value = None if number % 3 else number / 8
        members = {"iteration": random.choice(["%d", "%d.0"]) % number,
                   "metric": random.choice(metrics),
                   "value": random.choice(values),
                   random.choice(["stage", "time"]):
                   random.choice(["-1", "null", '"x"', "1.5", "{}"])}
        if value:
            members |= {"metric": '"loss"', "value": str(value)}
        text = ", ".join(f'"{key}": {members[key]}' for key in random.sample(
            list(members), len(members)))
        with case("progress", text):
            host.progress.send(
                f'{{"cojob": "odd", "job": "sent", {text}}}'.encode())
            host.until(lambda: host.job("odd/sent")["iteration"] == number)
            told = host.job("odd/sent")
            check("a datagram", (told["iteration"], told.get("value")),
                  (number, value))
            path = f"/v1/cojobs/odd/jobs/r{number}"
            host.http("PUT", path, {"workers": [{"host": "h0"}]})
            check("a request", (
                host.status_of("POST", f"{path}/progress", f"{{{text}}}"),
                host.http("GET", path)[1].get("iteration")), (200, number))


class Log:
    """A log as training programs write it, in two parts: they restart."""

    def __init__(self, random, number, path):
        self.random, self.path, self.job = random, path, f"logs/l{number}"
        self.kind = ("csv", "rewritten", "bar", "json")[number % 4]
        self.end = random.choice(["\n", "\r\n", "\r"])
        self.last = 990 + random.randrange(20)
        self.columns = ["epoch", "loss", "acc"]
        self.metric = "eval/loss" if self.kind == "json" else "loss"
        self.spec = {
            "bar": f"regex:{path},iteration=step ([0-9,]+),"
                   "metric=loss=([0-9.]+)",
            "json": f"json-lines:{path},iteration=epoch,metric=eval/loss",
        }.get(self.kind, f"csv:{path},iteration=epoch,metric=loss")
        self.write(random.choice(["", "\ufeff"]), "wb", 20)

    def write(self, start, mode, n):
        self.random.shuffle(self.columns)
        lines = [self.pad(self.columns)] * (self.kind in ("csv", "rewritten"))
        lines += [self.line() for _ in range(n)]
        with open(self.path, mode) as file:
            file.write((start + "".join(
                line + self.end for line in lines)).encode())

    def pad(self, fields):
        return ",".join(text if text[0] == '"' else self.random.choice(
            ["", "  ", "\t"]) + text + self.random.choice(["", " "])
                        for text in fields)

    def line(self):
        self.last += 1
        loss = self.last / 1000
        count = self.random.choice([f"{self.last}", f"{self.last:,}"])
        if self.kind == "bar":
            return self.random.choice(["%s", "\033[1;32m%s\033[0m\033[K"]) % (
                f"step {count} of 9 loss={loss}")
        if self.kind == "json":
            told = self.random.choice(['"eval": {"loss": %s}',
                                       '"eval/loss": %s']) % loss
            return "{" + ", ".join(self.random.sample(
                [f'"epoch": {self.last}', told, '"acc": '
                 + self.random.choice(["NaN", "null", "1"])], 3)) + "}"
        fields = {"epoch": f'"{count}"' if "," in count else count,
                  "loss": f"{loss}"}
        return self.pad(fields.get(name, "0.5") for name in self.columns)

    def go_on(self):
        if self.kind == "rewritten":    # In place, with a new column.
            self.columns.append("lr")
            self.last -= 20
            self.write("", "wb", 40)
        else:                   # A CSV has a second header, of its own.
            self.write("", "ab", 9)


def logs(host, random):
    all_logs = [Log(random, i, host.dir / f"log{i}") for i in range(8)]
    for log in all_logs:
        host.run_job(log.job, "--log", log.spec, "--", "setpriv",
                     f"--reuid={USERS[0]}", "--clear-groups", "sleep", "60")
    for log in all_logs:
        with case("logs", (log.spec, log.columns, log.end)):
            for part in range(2):
                if part:
                    log.go_on()
                host.until(lambda: host.job(log.job)["iteration"] == log.last)
                told = host.job(log.job)
                check(f"part {part}", [told.get(key) for key in (
                    "iteration", "metric", "value")],
                      [log.last, log.metric, log.last / 1000])
            reader = next(r for r in host.ask("agent/readers", "agent")[
                "readers"] if r["job"] == log.job)
            check("its reader", (reader["malformed"], reader["bad"]), (0, 0))


def scheduler(host, random):
    """Jobs stay in cgroups of their schedulers, and leave others."""
    for number in range(12):
        uid = "-".join(f"{random.randrange(16 ** n):0{n}x}"
                       for n in (8, 4, 4, 4, 12))
        node = random.choice(["", "n1_", make_name(random, 9) + "_"])
        sluid = "s" + "".join(random.choices(string.digits + "ABCDEFGH", k=13))
        path, stays = [
            (f"{node}slurmstepd.scope/{sluid}/step_0/user/task_0", True),
            (f"system.slice/{node}slurmstepd.scope/job_{number}/step_batch",
             True),
            (f"kubepods/burstable/pod{uid}/{sluid}", True),
            ("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod"
             f"{uid.replace('-', '_')}.slice/crio-{sluid}.scope", True),
            (f"user.slice/session-{number}.scope", False),
            (f"system.slice/{sluid}.service", False)][number % 6]
        folder = pathlib.Path("/sys/fs/cgroup", path)
        folder.mkdir(parents=True)
        with case("scheduler", path):
            process = host.run_job(
                f"sched/j{number}", "--", "sleep", "60",
                preexec_fn=lambda: (folder / "cgroup.procs").write_text("0"))
            check("a job", host.until(lambda: host.job(
                f"sched/j{number}")) < 20, True)
            own = pathlib.Path(f"/proc/{process.pid}/cgroup")
            wanted = path if stays else f"{GROUP}/sched/j{number}"
            check("its cgroup", host.until(
                lambda: own.read_text().endswith(f"0::/{wanted}\n")) < 20,
                  True)


def addresses(host, random):
    """Each host has a job of its own where its environment names itself."""
    wanted = []
    for number in range(6):
        local = random.choice([
            "localhost", "LocalHost", "localhost.localdomain", "::1",
            f"127.{random.randrange(256)}.{random.randrange(256)}.1",
            "0.0.0.0", "::ffff:127.0.0.1", "ip6-localhost"])
        port = random.randrange(1024, 65536)
        task = f"[{local}]:{port}" if ":" in local else f"{local}:{port}"
        kind, environ = [
            ("torch", f"MASTER_ADDR={local} MASTER_PORT={port}"),
            ("ps-lite", f"DMLC_PS_ROOT_URI={local} DMLC_PS_ROOT_PORT={port}"),
            ("horovod", f"HOROVOD_GLOO_RENDEZVOUS_ADDR={local} "
             f"HOROVOD_GLOO_RENDEZVOUS_PORT={port}"),
            ("tensorflow", 'TF_CONFIG={"cluster":{"%s":["%s","b:1"]}}' % (
                random.choice(["chief", "worker", "ps"]), task))][number % 4]
        for _ in range(2):
            name = "h" + "".join(random.choices(
                "abc012-", k=random.randrange(60))) + "0"
            host.launch(
                "unshare", "--uts", "sh", "-c",
                'echo "$1" >/proc/sys/kernel/hostname; shift; exec env "$@"',
                "sh", name, *environ.split(), FAKE_JOB, "connect", FAR, "5000")
            wanted.append((f"{kind}-u0/{name}-{port}", environ))
    for job, environ in wanted:
        with case("addresses", (job, environ)):
            check(job, host.until(lambda: host.job(job)) < 20, True)


def jumps(host, random):
    """Trials that go on from other trials' checkpoints."""
    agent = host.agent("pbt")
    trials = {f"jumps/t{i}": (random.randrange(20, 60), int(
        10 ** random.uniform(3.7, 7))) for i in range(6)}
    host.http("PUT", "/v1/cojobs/jumps", {"uid": USERS[0]})
    host.http("PUT", "/v1/cojobs/jumps/stages/0", {
        "iterations": 10 ** 8, "jobs": [job[6:] for job in trials]})
    began = time.monotonic()
    while (now := time.monotonic() - began) < 5:
        for job, (pace, jump) in trials.items():
            done = int(now * pace)
            agent.jobs[job] = (done * 100_000, done + jump * (now > 2),
                               USERS[0])
        time.sleep(0.05)
    for job, (pace, jump) in trials.items():
        with case("jumps", f"{pace} a second, and {jump} at once"):
            told = agent.jobs[job][1]
            host.until(lambda: f"it reports iteration {told}:" in host.sc(
                "explain", job).stdout)
            text = host.sc("explain", job).stdout
            counts = host.http("GET", "/v1/cojobs/jumps/jobs/" + job[6:])[1][
                "iteration"]
            check("its own steps", told - jump - pace <= counts
                  <= told - jump, True)
            check(text, (f"it reports iteration {told}:" in text,
                         f"it has done {counts} " in text,
                         host.alarm("progress-refused") < 8), (True,) * 3)


def users(host, random):
    """Users announce their stages by the adapters' client, and change
    nothing of others."""
    shutil.copy(SOURCE / "docs/integrations/stagecoach_client.py", host.dir)

    def announce(uid, *stage):
        return subprocess.run(
            ["/usr/bin/python3", "-B", "-c", ANNOUNCE, host.dir,
             json.dumps(stage)], capture_output=True, text=True, check=False,
            user=uid, group=uid, extra_groups=[], cwd="/",
            env={"STAGECOACH_RUNDIR": str(host.dir)}).stderr

    for _ in range(6):
        name = make_name(random, random.randrange(1, 254))
        jobs = [make_name(random, 20) for _ in range(random.randrange(1, 9))]
        owner, other = random.sample(USERS, 2)
        search = {"cojob": name}

        def told():
            reply = host.http("GET", f"/v1/cojobs/{name}")[1]
            return (reply.get("owner_uid"), len(reply.get("stages", ())),
                    len(reply.get("jobs", ())))

        with case("users", (owner, name)):
            check("announced", announce(owner, search, 0, {
                "iterations": 4, "jobs": jobs}), "")
            host.until(lambda: told()[1])
            refused = announce(other, search, 0, {
                "iterations": 4, "jobs": ["other"]})
            check(refused, ("belongs to" in refused, told()),
                  (True, (owner, 1, len(jobs))))
            check("ended", announce(owner, search, 0, None), "")
            check("it has no stage", host.until(lambda: not told()[1]) < 20,
                  True)


def main():
    if os.geteuid() or os.listdir("/sys/class/net") != ["lo"]:
        print("not root, or no namespaces")
        return 77
    with Host("--rest-users") as host:
        host.begin()
        for kind in (names, progress, logs, scheduler, addresses, jumps,
                     users):
            kind(host, Random(os.environ.get("SEED", "51") + kind.__name__))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())

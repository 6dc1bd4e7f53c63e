#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""What `stagecoach sim` prints, and what it says about mistakes."""

import json
import os
import subprocess
import sys
import tempfile

failures = 0


def sim(*args):
    return subprocess.run([sys.argv[1], 'sim', *args], text=True, timeout=50,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check(what, found, expected):
    global failures
    if found != expected:
        failures += 1
        print(f'{what}: {found!r} is not {expected!r}')


def check_json(trace):
    out = json.loads(sim(trace, '--format', 'json').stdout)
    fair, stage = out['policies']
    check('names', [fair['name'], stage['name']], ['fair', 'stage'])
    check('measured', out['measured'], 'coflow')
    # Two flows of 128 MB on one port of 128 MB/s.
    check('fair', [round(fair[k], 6) for k in ('mean', 'p50', 'max')],
          [2, 2, 2])
    check('stage', [round(stage[k], 6) for k in ('mean', 'p50', 'p95', 'p99',
                                                 'max', 'bound', 'gap',
                                                 'ratio')],
          [1.5, 1, 2, 2, 2, 1.5, 1, 0.75])
    check('decisions', stage['decisions'], 2)
    check('stages', [(s['policy'], s['cojob'], s['rung'], s['start'],
                      round(s['end'], 6)) for s in out['stages']],
          [('fair', '1', 0, 0, 2), ('fair', '2', 0, 0, 2),
           ('stage', '1', 0, 0, 1), ('stage', '2', 0, 0, 2)])


def check_scenario(scenario):
    result = sim(scenario, '--policy', 'stage')
    lines = result.stdout.splitlines()
    check('scenario', (result.returncode, len(lines)), (0, 3))
    check('policy', lines[2].split()[0], 'stage')
    starts = [s['start'] for s in json.loads(
        sim(scenario, '--offline', '--format', 'json').stdout)['stages']
        if s['rung'] == 0]
    check('offline starts', set(starts), {0})


def check_mistakes(trace):
    for args, status, line in [
        ([], 2, 'stagecoach sim: one trace or scenario is needed, '
                '"stagecoach sim --help" tells more'),
        ([trace, '--format', 'xml'], 2,
         '--format: "xml" is not one of "table", "json"'),
        ([trace, '--policy', 'none'], 1,
         'none: no such policy, a name such as "stage" or a file such as '
         '"./stage.json" is allowed'),
        (['/nonexistent'], 1, '/nonexistent: No such file or directory'),
        (['lab/scenarios/bad/rate-0.json'], 1,
         'lab/scenarios/bad/rate-0.json: /rate: "0Mbit" is not a rate from '
         '"1kbit" to "10000Gbit", such as "50Mbit"'),
    ]:
        result = sim(*args)
        check(args, (result.returncode, result.stderr, result.stdout),
              (status, line + '\n', ''))


with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, 'trace.txt')
    with open(name, 'w') as f:
        f.write('2 2\n1 0 1 0 1 1:128\n2 0 1 0 1 1:128\n')
    check_json(name)
    check_mistakes(name)
check_scenario('lab/scenarios/smoke.json')
print(f'{failures} failures')
sys.exit(failures > 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""What `stagecoach sim` prints, and what it says about mistakes."""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from random import Random

from case_lines import case, check, failures


def sim(*args, **more):
    return subprocess.run([sys.argv[1], 'sim', *args], text=True, timeout=50,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more)


def use_one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def check_json(trace):
    out = json.loads(sim(trace, '--format', 'json').stdout)
    plain, stage = out['policies']
    check('names', [plain['name'], stage['name']], ['plain', 'stage'])
    check('measured', out['measured'], 'coflow')
    # Two flows of 128 MB on one port of 128 MB/s.
    check('plain', [round(plain[k], 6) for k in ('mean', 'p50', 'max')],
          [2, 2, 2])
    check('stage', [round(stage[k], 6) for k in ('mean', 'p50', 'p95', 'p99',
                                                 'max', 'bound', 'gap',
                                                 'ratio')],
          [1.5, 1, 2, 2, 2, 1.5, 1, 0.75])
    check('bound kind', stage['bound_kind'], 'ports')
    check('decisions', stage['decisions'], 2)
    # The second coflow took 2 s of which 1 was another's, in the plain network too.
    check('times', [[round(stage[k][j], 6) for j in ('n', 'mean', 'max')]
                    for k in ('sct', 'cct')], [[2, 1.5, 2], [2, 1.5, 2]])
    check('starvation', [round(p['starvation'], 6) for p in (plain, stage)],
          [1, 1])
    check('others', [sorted(stage['fairness']), 'p95' in stage['early'],
                     'mean' in stage['jct'], 'decision_us_p99' in stage,
                     'gained' in stage],
          [['jain', 'rho_max'], True, True, True, True])
    check('stages', [(s['policy'], s['cojob'], s['rung'], s['start'],
                      round(s['end'], 6)) for s in out['stages']],
          [('plain', '1', 0, 0, 2), ('plain', '2', 0, 0, 2),
           ('stage', '1', 0, 0, 1), ('stage', '2', 0, 0, 2)])


def check_scenario(scenario):
    result = sim(scenario, '--policy', 'stage')
    lines = result.stdout.splitlines()
    check('scenario', (result.returncode, len(lines)), (0, 7))
    check('policy', lines[2].split()[0], 'stage')
    check('bound', [lines[3].startswith('bound of these stages: '),
                    '(fluid)' in lines[3]], [True, True])
    starts = [s['start'] for s in json.loads(
        sim(scenario, '--offline', '--format', 'json').stdout)['stages']
        if s['rung'] == 0]
    check('offline starts', set(starts), {0})


def check_seed_of_placements():
    scenario = 'lab/scenarios/quickstart.json'

    def stages(*args):
        return json.loads(sim(scenario, '--policy', 'plain', '--format',
                              'json', *args).stdout)['stages']
    check('seed of the file', stages(), stages('--seed', '1'))
    check('other placements', stages() == stages('--seed', '2'), False)
    result = sim('lab/scenarios/smoke.json', '--seed', '2')
    check('no random placements', (result.returncode, result.stderr),
          (1, 'lab/scenarios/smoke.json: /random_searches: required member '
              'is missing, only it and "random_placements" depend on a '
              'seed\n'))
    # Drawn searches, and no others with the same seed.
    scenario = 'lab/scenarios/main.json'
    check('seed of the file', stages(), stages('--seed', '1'))
    check('other searches', stages() == stages('--seed', '2'), False)


def check_generated():
    one, same, other = (json.loads(sim(f'generate:{seed},cojobs=4', '--format',
                                       'json').stdout) for seed in (1, 1, 2))
    check('generated', [len(one['stages']), one['measured']], [24, 'stage'])
    check('same seed', one['stages'], same['stages'])
    check('other seed', one['stages'] == other['stages'], False)


def check_levels(trace):
    def last(*args):
        out = sim(trace, '--policy', 'stage', '--format', 'json', *args)
        return max(s['end'] for s in json.loads(out.stdout)['stages'])
    with_one = sim(trace, '--policy', 'stage', '--format', 'json',
                   '--levels', '1')
    # One level is no order: both coflows end together.
    check('one level', json.loads(with_one.stdout)['policies'][0]['mean'], 2)
    check('two levels', round(last('--levels', '2'), 6), 2)


def check_bound(trace):
    out = json.loads(sim(trace, '--bound', 'lp', '--format', 'json').stdout)
    check('bound', [out['bound'], round(out['policies'][1]['bound'], 6)],
          ['lp', 1.5])


def check_fabric(trace):
    def mean(*fabric):
        out = sim(trace, '--policy', 'plain', '--format', 'json', *fabric)
        return round(json.loads(out.stdout)['policies'][0]['mean'], 6)
    check('switch', mean('--fabric', 'switch'), 2)
    # Each host is a leaf whose uplink is as fast as the host, then a fourth.
    check('leaves', mean('--fabric', 'leaf-spine,leaf=1'), 2)
    check('slow uplinks', mean('--fabric', 'leaf-spine,leaf=1,over=4'), 8)


def check_topology(trace, folder):
    csv = os.path.join(folder, 'topology.csv')
    with open(csv, 'w', encoding='utf-8') as f:
        f.write('ip,DSW,PSW,ASW\na,G0,P0,S0\nb,G0,P0,S1\n')
    out = json.loads(sim(trace, '--policy', 'plain', '--format', 'json',
                         '--fabric', f'{csv},over=2').stdout)
    check('topology', round(out['policies'][0]['mean'], 6), 4)
    result = sim('generate:1,hosts=8', '--fabric', csv)
    check('small topology', (result.returncode, result.stderr),
          (1, f"{csv}: 2 hosts, at least the workload's 8 are needed\n"))
    scenario = os.path.join(folder, 'scenario.json')
    with open(scenario, 'w', encoding='utf-8') as f:
        json.dump({'kind': 'sim', 'name': 's',
                   'fabric': {'rate': '8Mbit', 'topology': 'topology.csv',
                              'oversubscription': 4},
                   'cojobs': [{'name': 'a', 'rungs': [{'iterations': 1}],
                               'jobs': [{'name': 't', 'ring': {
                                   'hosts': ['h0', 'h1'],
                                   'bytes': 1e6}}]}]}, f)
    out = json.loads(sim(scenario, '--policy', 'plain', '--format',
                         'json').stdout)
    check('named topology', round(out['policies'][0]['mean'], 6), 4)
    os.remove(csv)
    result = sim(scenario)
    check('no topology', (result.returncode, result.stderr),
          (1, f'{scenario}: /fabric/topology: {csv}: No such file or '
              'directory\n'))


def check_jobs(folder):
    trace = os.path.join(folder, 'jobs.csv')
    with open(trace, 'w', encoding='utf-8') as f:
        f.write('job_id,num_gpu,submit_time,iterations,model_name,duration,'
                'interval\n0,1,0,9,vgg11,50,1\n1,2,1,9,vgg11,50,1\n')

    def run(*args):
        out = json.loads(sim(*args, '--format', 'json').stdout)
        return out['hosts'], out['stages']
    check('jobs', (run(trace)[0], len(run(trace)[1])), (32, 4))
    check('hosts', run(f'{trace},hosts=8')[0], 8)
    check('seed of jobs', run(f'{trace},seed=3'), run(trace, '--seed', '3'))
    result = sim(f'{trace},hosts=1')
    check('bad setting', (result.returncode, result.stderr),
          (1, 'jobs: hosts: "1" is not an integer from 2 to 4096\n'))
    result = sim(f'{trace}x,hosts=8')
    check('no file', (result.returncode, result.stderr),
          (1, f'{trace}x: No such file or directory\n'))


class Trace:
    """A trace that a seed makes, plain and as other programs write it."""

    def __init__(self, random, kind):
        self.random, self.kind, self.header = random, kind, None
        self.rows = [getattr(self, kind)(i) for i in range(12)]
        if kind == 'coflow':
            self.header = ['4', '12']
            self.separator = ' '

    def coflow(self, i):
        mappers = self.random.sample(range(4), self.random.randrange(1, 4))
        size = self.random.randrange(1, 50)
        return [f'c{i}', str(100 * i), str(len(mappers)), *map(str, mappers),
                '1', f'{self.random.randrange(4)}:{size}']

    def numbers(self, i):
        return [str(n) for n in (self.random.randrange(1, 5), 10 * i,
                                 self.random.randrange(10, 500))]

    def gavel(self, i):
        self.separator = '\t'
        workers, arrival, steps = self.numbers(i)
        return ['ResNet-18 (batch size 32)', 'python3 main.py', '--steps',
                '1', steps, arrival, workers]

    def csv(self, i, header, *row):
        self.separator = ','
        self.header = header.split(',')
        return [f'j{i}', *row]

    def tiresias(self, i):
        workers, arrival, duration = self.numbers(i)
        return self.csv(i, 'job_id,num_gpu,submit_time,iterations,model_name,'
                        'duration,interval', workers, arrival, '9',
                        self.random.choice(['vgg11', 'resnet50']), duration,
                        '1')

    def openb(self, i):
        workers, arrival, duration = self.numbers(i)
        return self.csv(i, 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,'
                        'creation_time,deletion_time', '8000', '16384',
                        workers, '1000', 'LS', arrival,
                        str(int(arrival) + int(duration)))

    def own(self, i):
        workers, arrival, iterations = self.numbers(i)
        return self.csv(i, 'job,workers,arrival,iterations,bytes,search,note',
                        workers, arrival, iterations, '1000000',
                        self.random.choice(['', 's1', 's2']), 'x')

    def plain(self):
        rows = ([self.header] if self.header else []) + self.rows
        return ''.join(self.separator.join(row) + '\n' for row in rows)

    def ten(self, row):
        """A line of Gavel with ten fields."""
        return [row[0], row[1], 'a/folder', row[2], '1', row[4], row[6],
                '1.000000', '-1.000000', row[5]]

    def shuffle(self, rows):
        """Other columns between those that are needed, in any order."""
        order = self.random.sample(range(len(rows[0])), len(rows[0]))
        unused = ('job_id', 'interval', 'name', 'qos', 'note')
        order = [i for i in order
                 if rows[0][i] not in unused or self.random.randrange(2)]
        if self.kind == 'tiresias' and self.random.randrange(2):
            order.remove(rows[0].index('iterations'))
        return [['more'] + [row[i] for i in order] for row in rows]

    def other(self, text):
        """Another way to write the text of a field."""
        way = self.random.randrange(4)
        if text.isdigit() and int(text) and way < 2:
            return f'{int(text):{self.random.choice(["e", "g", ".1f"])}}'
        if self.separator == ',':
            return {2: f'"{text}"', 3: f'  {text} '}.get(way, text)
        return text

    def written(self):
        rows = ([self.header] if self.header else []) + self.rows
        if self.kind == 'gavel':
            rows = [self.random.choice([row, self.ten(row)]) for row in rows]
        elif self.separator == ',':
            rows = self.shuffle(rows)
            at = next(i for i, name in enumerate(rows[0])
                      if name in ('num_gpu', 'workers'))
            for value in ('0', ''):     # Without workers: left out.
                row = list(rows[1])
                row[at] = value
                rows.insert(self.random.randrange(1, len(rows) + 1), row)
        end = self.random.choice(['\n', '\r\n'])
        lines = [self.separator.join(map(self.other, row)) + end
                 + self.random.choice(['', '', end, ' \t' + end])
                 for row in rows]
        return self.random.choice(['', '\ufeff', end]) + ''.join(lines)


def check_trace(folder, seed):
    """However a trace is written, the result is the same."""
    random = Random(seed)
    for kind in ('coflow', 'gavel', 'tiresias', 'openb', 'own'):
        trace = Trace(random, kind)
        name = os.path.join(folder, random.choice(['t', 't.csv', 't.trace']))
        results = []
        with case('traces', (kind, seed, trace.rows[0])):
            for text in (trace.plain(), trace.written()):
                data = text.encode()
                if results and random.randrange(2):
                    data = gzip.compress(data)
                with open(name, 'wb') as f:
                    f.write(data)
                result = sim(name, '--format', 'json', '--policy', 'plain',
                             '--rate', '1Gbit')
                check((kind, seed, text), result.stderr, '')
                out = json.loads(result.stdout or '{}')
                results.append((out.get('hosts'), out.get('stages')))
            check((kind, seed, text), results[1] == results[0], True)
            check((kind, seed, text), out.get('left_out'),
                  2 if trace.separator == ',' else 0)


def check_own_trace(folder):
    """A trace of your own is taken as it is."""
    trace = os.path.join(folder, 'own.csv')
    with open(trace, 'w', encoding='utf-8') as f:
        f.write('bytes,arrival,job,iterations,compute_s\n'
                '1.25e8,0,a,1e1,0.5\n1.25e8,100,b,20,0\n125,,c,1,0\n')

    def stages(*args):
        out = json.loads(sim(trace, '--policy', 'plain', '--format', 'json',
                             *args).stdout)
        return out['left_out'], [(s['cojob'], s['start'], round(s['end'], 6))
                                 for s in out['stages']]
    # 1 Gbit to and from a server, by 10 Gbit/s, after 0.5 s or none.
    check('own', stages(), (1, [('a', 0, 7), ('b', 100, 104)]))
    check('rate', stages('--rate', '1Gbit'),
          (1, [('a', 0, 25), ('b', 100, 140)]))
    table = sim(trace).stdout.splitlines()
    check('left out', table[1],
          'left out, without workers or times: 1')


def check_unknown_trace(folder):
    trace = os.path.join(folder, 'unknown')
    for data in (b'', b'foo,bar\n1,2\n', b'# a comment\n1 2\n',
                 b'Hello, world\n'):
        with open(trace, 'wb') as f:
            f.write(data)
        result = sim(trace)
        check(data, (result.returncode, result.stderr),
              (1, f'{trace}: no known format; expected JSON, '
               'coflow-benchmark\'s "PORTS COFLOWS", Gavel\'s 7 or 10 fields '
               'between tabs, or CSV with a header of Tiresias, openb, '
               '"runtime" or your own such as '
               '"arrival,job,iterations,bytes"\n'))
    with open(trace, 'wb') as f:
        f.write(gzip.compress(b'4 1\n' + b'1 0 1 0 1 1:1\n' * 500)[:-9])
    check('cut', (sim(trace).returncode, sim(trace).stderr.count('\n')),
          (1, 1))


def check_recording(folder):
    recording = os.path.join(folder, 'stages.json')
    with open(recording, 'w', encoding='utf-8') as f:
        json.dump({'stages': [{'cojob': 'a', 'rung': 1, 'began': 5,
                               'ended': 9, 'demand': {'x:tx': 2,
                                                      'y:rx': 2}}],
                   'bound_mean_s': 1, 'bound_kind': 'ports',
                   'gap_mean': 1, 'gap_worst': 1,
                   'decisions': 1}, f)
    out = json.loads(sim(recording, '--format', 'json').stdout)
    check('recording', [out['stages'][0]['cojob'],
                        round(out['policies'][0]['mean'], 6)], ['a/1', 2])


def check_seed():
    def stages(*args):
        out = sim('--format', 'json', '--policy', 'plain', *args)
        return json.loads(out.stdout)['stages']
    check('seed', stages('generate:1,cojobs=2', '--seed', '5'),
          stages('generate:5,cojobs=2'))


def check_seeds(folder):
    """One seed is the run without --seeds, whatever the processors."""
    work = ('generate:1,cojobs=3', '--policy', 'stage', '--policy', 'plain')
    csv = os.path.join(folder, 'stages.csv')
    result = sim(*work, '--seeds', '4-6', '--csv', csv, '--format', 'json')
    check('seeds', (result.returncode, result.stderr), (0, ''))
    out = json.loads(result.stdout)
    check('baseline', out['baseline'], 'plain')
    check('one seed each', [p['seed'] for p in out['placements']], [4, 5, 6])
    with open(csv, encoding='utf-8') as f:
        header, *rows = (line.rstrip('\n').split(',') for line in f)
    check('columns', header, ['seed', 'policy', 'cojob', 'rung', 'begin',
                              'end', 'seconds'])
    check('rows', [row[:2] for row in rows],
          [[str(seed), policy] for seed in (4, 5, 6)
           for policy in ('stage', 'plain') for _ in range(9)])
    one = json.loads(sim(*work, '--seed', '5', '--format', 'json').stdout)
    check('stages', sorted(row[1:6] for row in rows if row[0] == '5'),
          sorted([s['policy'], s['cojob'], str(s['rung']),
                  f'{s["start"]:.6f}', f'{s["end"]:.6f}']
                 for s in one['stages']))
    check('seconds', all(abs(float(row[6]) - float(row[5]) + float(row[4]))
                         < 2e-6 for row in rows), True)
    check('figures', [(p['mean_sct_s'], p['p95_sct_s'])
                      for p in out['placements'][1]['policies']],
          [(round(p['mean'], 6), round(p['p95'], 6))
           for p in one['policies']])
    ratios = [p['policies'][0]['mean_sct_s'] / p['policies'][1]['mean_sct_s']
              for p in out['placements']]
    check('ratio', abs(out['policies'][0]['vs_baseline']['mean_sct_s']['mean']
                       - sum(ratios) / 3) < 1e-5, True)
    alone = sim(*work, '--seeds', '4-6', '--format', 'json',
                preexec_fn=use_one_processor)
    check('one processor', alone.stdout, result.stdout)
    page = os.path.join(folder, 'seeds.html')
    table = sim(*work, '--seeds', '5-5', '--html', page).stdout.splitlines()
    with open(page, encoding='utf-8') as f:
        check('point', re.findall('<title>(seed .*?)</title>', f.read()),
              [f'seed 5: {ratios[1]:.3f}'])
    check('table', (table[0].startswith('searches finish their rounds '),
                    table[1].startswith('means of 1 seed, seconds; / plain')),
          (True, True))


def check_page(folder):
    page = os.path.join(folder, 'page.html')
    result = sim('generate:1,cojobs=4,hosts=4', '--html', page)
    check('page', (result.returncode, result.stderr), (0, ''))
    with open(page, encoding='utf-8') as f:
        text = f.read()
    data = json.loads(re.search(
        '<script type="application/json" id="data">(.*?)</script>', text,
        re.S)[1])
    check('pictures', re.findall(r'<div id="(\w+)"', text),
          ['bars', 'cdf', 'timeline', 'use'])
    check('policies', [p['name'] for p in data['policies']],
          ['plain', 'stage'])
    check('ports', sorted(data['policies'][0]['ports']),
          [f'h{h}:{d}' for h in range(4) for d in ('rx', 'tx')])
    check('searches', len(data['searches']), 2 * 4)
    titles = [line.split() for line in result.stdout.splitlines()
              if line.startswith('policy ')]
    table = text.partition('<table')[2].partition('</table>')[0]
    check('columns', re.findall('<th scope="col">(.*?)</th>', table),
          titles[0] + re.findall(r'mean \w+|GPU s|us p99|\w+',
                                 ' '.join(titles[1][1:])))
    check('about', f': stagecoach sim generate:1,cojobs=4,hosts=4 --html '
          f'{page}, on ' in text, True)


def check_mistakes(trace):
    for args, status, line in [
        ([], 2, 'stagecoach sim: WORKLOAD: required argument is missing'),
        ([trace, '--format', 'xml'], 2,
         'stagecoach sim: --format: "xml" is not one of "table", "json"'),
        ([trace, '--policy', 'none'], 1,
         'none: no such policy; expected a name of "stagecoach policy list" or a file '
         'such as "./stage.json"'),
        ([trace, '--levels', '0'], 2,
         'stagecoach sim: --levels: "0" is not an integer from 1 to 1000000'),
        ([trace, '--bound', 'milp'], 2,
         'stagecoach sim: --bound: "milp" is not one of "certificate", "lp"'),
        ([trace, '--policy', 'plain', '--html', '/nonexistent/x.html'], 1,
         '/nonexistent/x.html: No such file or directory'),
        ([trace, '--fabric', 'ring'], 1,
         '--fabric: "ring" is not one of "switch", '
         '"leaf-spine,leaf=N,over=X", "FILE.csv,over=X"'),
        ([trace, '--fabric', 'leaf-spine,over=0'], 1,
         '--fabric: over: "0" is not a number from 0.1 to 1000'),
        ([trace, '--seed', '1.5'], 2,
         'stagecoach sim: --seed: "1.5" is not an integer from 0 to '
         '9007199254740991'),
        (['generate:1', '--seeds', '9-1'], 2,
         'stagecoach sim: --seeds: "9-1" is not a range of seeds; expected FIRST-LAST '
         'such as "1-60" with at most 10000 seeds'),
        ([trace, '--seeds', '1-2'], 1,
         f'{trace}: nothing in it is random, --seeds requires '
         '"generate:SEED", a trace of jobs or a scenario with a seed'),
        (['generate:1', '--csv', 'x'], 2,
         'stagecoach sim: --csv requires --seeds'),
        (['generate:1', '--seeds', '1-2', '--seed', '1'], 2,
         'stagecoach sim: --seeds excludes --seed'),
        (['generate:1', '--seeds', '1-2', '--bound', 'lp'], 2,
         'stagecoach sim: --seeds has no bound and excludes --bound lp'),
        (['generate:1', '--seeds', '1-2', '--csv', '/nonexistent/x'], 1,
         '/nonexistent/x: No such file or directory'),
        (['generate:1,hosts=many'], 1,
         'generate: hosts: "many" is not an integer from 2 to 4096'),
        (['/nonexistent'], 1, '/nonexistent: No such file or directory'),
        (['lab/scenarios/bad/rate-0.json'], 1,
         'lab/scenarios/bad/rate-0.json: /rate: "0Mbit" is not a rate from '
         '"1kbit" to "10000Gbit", such as "50Mbit"'),
    ]:
        result = sim(*args)
        check(args, (result.returncode, result.stderr),
              (status, line + '\n'))
        check(args, result.stdout, '')      # Nothing is simulated before.


with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, 'trace.txt')
    with open(name, 'w') as f:
        f.write('2 2\n1 0 1 0 1 1:128\n2 0 1 0 1 1:128\n')
    for each in range(8):
        check_trace(folder, each)
    check_own_trace(folder)
    check_unknown_trace(folder)
    if sys.argv[2:] == ['cases']:
        sys.exit(bool(failures))
    check_json(name)
    check_levels(name)
    check_bound(name)
    check_fabric(name)
    check_topology(name, folder)
    check_jobs(folder)
    check_recording(folder)
    check_page(folder)
    check_seeds(folder)
    check_mistakes(name)
check_generated()
check_seed()
check_scenario('lab/scenarios/smoke.json')
check_seed_of_placements()
sys.exit(bool(failures))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""What `stagecoach policy show|diff|whatif|tune` print, and what they say
about mistakes."""

import json
import os
import subprocess
import sys
import tempfile

from case_lines import check, failures

env = dict(os.environ, STAGECOACH_RUNDIR='/nonexistent')


def policy(*args):
    return subprocess.run([sys.argv[1], 'policy', *args], text=True,
                          timeout=50, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env)


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    return path


def rows(result):
    return [line.split() for line in result.stdout.splitlines()]


def defaults(schema, place=''):
    """Yields the pointer and default of each member of the schema."""
    for name, rule in schema['properties'].items():
        if 'properties' in rule:
            yield from defaults(rule, f'{place}/{name}')
        elif rule.get('default') not in (None, {}):
            yield f'{place}/{name}', rule['default']


def check_show(least):
    """The defaults that the schema documents are those in force."""
    out = json.loads(policy('show', least, '--format', 'json').stdout)
    shown = {m['member']: m for m in out['members']}
    with open('policies/policy.schema.json', encoding='utf-8') as f:
        expected = dict(defaults(json.load(f)))
    for member, value in expected.items():
        check(member, (shown[member]['value'], shown[member]['origin']),
              (value, 'default'))
    check('members', set(shown), set(expected) | {'/name', '/order'})
    check('origin', shown['/order']['origin'], 'file')

    lines = rows(policy('show', 'stage'))
    check('headings', lines[0], ['member', 'origin', 'value'])
    for row in (['/name', 'file', '"stage"'],
                ['/early/theta', 'default', '0.95']):
        check(row[0], row in lines, True)


def check_diff(plain, heavy):
    check('no difference', rows(policy('diff', 'stage',
                                       'policies/stage.json'))[1:],
          [['no', 'difference']])
    check('order', rows(policy('diff', 'tcf', 'early')),
          [['member', 'tcf', 'early'], ['/order', '"tcf"', '"early"'],
           ['/early/theta', '0.95', '0.9']])

    check('members', rows(policy('diff', plain, heavy))[1:],
          [['/aging_slowdown', '4.5', '0'],
           ['/weights/cojobs/3', '-', '100']])


def check_whatif(plain, heavy, trace):
    args = ('whatif', '--trace', trace, '--policy', plain, '--policy', heavy)
    out = json.loads(policy(*args, '--format', 'json').stdout)
    a, b = out['policies']
    check('names', (a['name'], b['name']), ('plain', 'heavy'))
    check('a', [round(a[k], 3) for k in ('mean', 'p95', 'max', 'ratio')],
          [2.333, 4, 4, 1])
    check('b', [round(b[k], 3) for k in ('mean', 'p95', 'max', 'ratio')],
          [3, 4, 4, 1.286])
    check('stages', out['stages'], 3)
    check('gain', [(s['cojob'], s['rung'], round(s['a'], 3), round(s['b'], 3))
                   for s in out['gain']], [('3', 0, 4, 2)])
    check('lose', sorted((s['cojob'], round(s['b'] - s['a'], 3))
                         for s in out['lose']), [('1', 2), ('2', 2)])
    lines = rows(policy(*args))
    check('table', ['B', 'heavy', '3.000', '4.000', '4.000', '1.286'] in lines,
          True)
    check('row', ['3', '0', '4.000', '2.000', '-2.000'] in lines, True)


def check_tune(folder):
    trace = write(folder, 'tune.txt', '2 16\n' + ''.join(
        f'{2 * i} {100000 * i} 1 0 1 1:2560\n'
        f'{2 * i + 1} {100000 * i + 1000} 1 0 1 1:256\n' for i in range(8)))
    base = write(folder, 'old-first.json', json.dumps(
        {'name': 'old-first', 'order': 'stage', 'min_share': 0,
         'aging_s': 0.01, 'lease_ms': 5000}))
    tuned = os.path.join(folder, 'tuned.json')
    args = ('tune', '--trace', trace, '--policy', base, '--budget',
            '200')
    result = policy(*args, '--out', tuned)
    check('tune', (result.returncode, result.stderr), (0, ''))
    check('result', result.stdout.splitlines()[-1],
          'mean_sct: gain 41.5 % in training, 41.5 % held back: better')
    check('same seed', policy(*args).stdout, result.stdout)
    check('check', policy('check', tuned).stdout, f'{tuned}: ok\n')
    with open(tuned, encoding='utf-8') as f:
        written = json.load(f)
    check('written', (written['name'], written['order'], written['lease_ms'],
                      written['aging_s'] != 0.01),
          ('old-first-tuned', 'stage', 5000, True))
    replayed = json.loads(policy('whatif', '--trace', trace, '--policy', base,
                                 '--policy', tuned, '--format',
                                 'json').stdout)['policies']
    check('replayed', round(replayed[1]['ratio'], 3), 0.585)

    none = os.path.join(folder, 'none.json')
    result = policy('tune', '--trace', trace, '--policy', 'fair', '--budget',
                    '5', '--out', none)
    check('not better', (result.returncode, os.path.exists(none)), (1, False))
    check('nothing to gain', result.stdout.splitlines()[-1],
          'nothing that was tried is better than fair by more than 1 % on '
          'held-back workloads')


def check_seeds(sim):
    """The last 40 % of the seeds are held back, and only they."""
    work = 'generate:1,hosts=4,cojobs=3,jobs=2'
    args = ('tune', '--trace', work, '--trace', work + ',load=1', '--seeds',
            '3-7', '--policy', 'dclas', '--budget', '120', '--keep',
            '/dclas/queues')
    result = policy(*args)
    check('seeds', result.stderr, '')
    table = result.stdout.splitlines()
    check('parts', table[0].split('; ')[1],
          '6 workloads for training, 4 held back')
    check('kept', [row.split()[-1] for row in table
                   if row.startswith('/dclas/queues')][0] in ('kept', 'effect'),
          True)
    base = next(row.split() for row in table if row.startswith('dclas '))
    for column, seeds in (1, (3, 4, 5)), (4, (6, 7)):
        means = [sim(w, seed) for w in (work, work + ',load=1')
                 for seed in seeds]
        check(('mean of', seeds), abs(float(base[column])
                                      - sum(means) / len(means)) < 0.002, True)


def mean_by_levels(work, seed):
    rows_of = subprocess.run(
        [sys.argv[1], 'sim', work, '--seed', str(seed), '--policy', 'dclas',
         '--levels', '6', '--format', 'json'], text=True, timeout=50,
        stdout=subprocess.PIPE, env=env, check=True)
    return json.loads(rows_of.stdout)['policies'][0]['mean']


def check_mistakes(trace):
    more = 'see "stagecoach policy {0} --help"'
    for args, status, line in [
        (['show'], 2, 'stagecoach policy show: 0 policies are named, 1 is '
                      'needed, ' + more.format('show')),
        (['show', 'stage', 'fair'], 2, 'stagecoach policy show: "fair": '
                                       'unexpected policy; expected at most 1'),
        (['show', 'stage', '--format', 'xml'], 2,
         'stagecoach policy show: --format: "xml" is not one of "table", '
         '"json"'),
        (['diff', 'stage'], 2, 'stagecoach policy diff: 1 policy is named, 2 '
                               'are needed, ' + more.format('diff')),
        (['diff', 'stage', 'none'], 1,
         'none: no such policy; expected a name of "stagecoach policy list" or a file '
         'such as "./stage.json"'),
        (['whatif', '--policy', 'stage', '--policy', 'fair'], 2,
         'stagecoach policy whatif: --trace is missing; expected any input of '
         '"stagecoach sim"'),
        (['whatif', 'stage'], 2, 'stagecoach policy whatif: "stage": '
         'unexpected argument, there are only options'),
        (['tune', '--trace', '/nonexistent'], 1,
         '/nonexistent: No such file or directory'),
        (['tune', '--trace', trace, '--budget', '1h'], 2,
         'stagecoach policy tune: --budget: "1h" is not a budget; expected seconds '
         'such as "60s" or a number of simulations such as "200", at most '
         '1000000'),
        (['tune', '--trace', trace, '--objective', 'mean'], 2,
         'stagecoach policy tune: --objective: "mean" is not one of '
         '"mean_sct", "p95_sct", "max_slowdown", "balanced"'),
        (['tune', '--trace', trace, '--seeds', '3-3'], 2,
         'stagecoach policy tune: --seeds: 1 seed, at least 2 are required '
         'for training and validation'),
        (['tune', '--trace', trace, '--seeds', '1-9'], 1,
         f'{trace}: nothing in it is random, --seeds requires '
         '"generate:SEED", a trace of jobs or a scenario with a seed'),
        (['tune', '--trace', trace, '--policy', 'tcf', '--keep', '/x'], 1,
         '--keep: "/x" is not tuned; expected no member'),
        (['whatif', '--trace', trace, '--trace', trace], 2,
         'stagecoach policy whatif: --trace: "' + trace + '": unexpected '
         'trace; expected at most 1'),
        (['tune', '--trace', trace, '--seed', '-1'], 2,
         'stagecoach policy tune: --seed: "-1" is not an integer from 0 to '
         '9007199254740991'),
    ]:
        result = policy(*args)
        check(args, (result.returncode, result.stderr), (status, line + '\n'))


with tempfile.TemporaryDirectory() as temporary:
    # Floors are left out: hand-computed times are those of strict levels.
    files = (
        write(temporary, 'plain.json', json.dumps(
            {'name': 'plain', 'order': 'stage', 'min_share': 0})),
        write(temporary, 'heavy.json', json.dumps(
            {'name': 'heavy', 'order': 'stage', 'min_share': 0,
             'aging_slowdown': 0, 'weights': {'cojobs': {'3': 100}}})),
        write(temporary, 'trace.txt', '2 3\n1 0 1 0 1 1:128\n'
              '2 0 1 0 1 1:128\n3 0 1 0 1 1:256\n'))
    check_show('tests/policies/good/least.json')
    check_diff(*files[:2])
    check_whatif(*files)
    check_tune(temporary)
    check_seeds(mean_by_levels)
    check_mistakes(files[2])
sys.exit(bool(failures))

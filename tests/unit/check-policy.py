#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""What `stagecoach policy show|whatif` print, and what they say
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


def check_mistakes():
    for args, status, line in [
        (['show'], 2, 'stagecoach policy show: NAME|FILE: required '
         'argument is missing'),
        (['show', 'stage', 'fair'], 2, 'stagecoach policy show: "fair": '
                                       'unexpected argument'),
        (['show', 'stage', '--format', 'xml'], 2,
         'stagecoach policy show: --format: "xml" is not one of "table", '
         '"json"'),
        (['whatif', '--policy', 'stage'], 2, 'stagecoach policy whatif: '
         '--policy A --policy B are needed'),
        (['show', 'none'], 1,
         'none: no such policy; expected a name of "stagecoach policy list" '
         'or a file such as "./stage.json"'),
        (['whatif', '--policy', 'stage', '--policy', 'fair'], 2,
         'stagecoach policy whatif: --trace is missing; expected any input of '
         '"stagecoach sim"'),
        (['whatif', 'stage'], 2, 'stagecoach policy whatif: "stage": '
         'unexpected argument, there are only options'),
        (['whatif', '--trace', '/nonexistent', '--policy', 'stage',
          '--policy', 'fair'], 1, '/nonexistent: No such file or directory'),
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
    check_whatif(*files)
    check_mistakes()
sys.exit(bool(failures))

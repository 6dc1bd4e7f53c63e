#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""slurm_study.py COJOB TRIALS [SRUN-OPTION...] COMMAND...

A study of Optuna, of which each trial is a job of Slurm, three at a time:
srun --stagecoach=COJOB COMMAND --learning-rate X --iterations 30.  The command
prints "job 17", its number in Slurm, and "iteration 10 loss 1.23"; what is not
among the best third at iteration 10 ends there.
"""
import re
import subprocess
import sys

import optuna
from optuna_stagecoach import Stagecoach

RUNGS = (10, 30)
cojob, n_trials, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]


def objective(trial):
    rate = trial.suggest_float("learning_rate", 1e-3, 1, log=True)
    loss = None
    with subprocess.Popen(
            ["srun", "--stagecoach=" + cojob, *command, "--learning-rate",
             str(rate), "--iterations", str(RUNGS[-1])],
            stdout=subprocess.PIPE, text=True) as job:
        for line in job.stdout:
            if found := re.match(r"job (\d+)$", line):
                trial.set_user_attr("job", "slurm-" + found[1])
                pruner.announce(study)
                print(f"trial {trial.number} is slurm-{found[1]}", flush=True)
            elif found := re.match(r"iteration (\d+) loss (\S+)$", line):
                step, loss = int(found[1]), float(found[2])
                trial.report(loss, step)
                if trial.should_prune() and step < RUNGS[-1]:
                    job.terminate()     # srun ends the job with itself.
                    raise optuna.TrialPruned()
    if job.returncode or loss is None:
        raise RuntimeError("the job failed")
    return loss


optuna.logging.set_verbosity(optuna.logging.WARNING)
pruner = Stagecoach(
    optuna.pruners.SuccessiveHalvingPruner(RUNGS[0], 3), cojob, RUNGS[-1],
    name=lambda trial: trial.user_attrs.get("job"), n_trials=n_trials)
study = optuna.create_study(
    pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=1))
study.optimize(objective, n_trials, n_jobs=3, callbacks=[pruner.announce],
               catch=(RuntimeError,))
pruner.worker.shutdown()
print(f"best: learning rate {study.best_params['learning_rate']:.3g}, loss "
      f"{study.best_value:.3f}; {len(study.trials)} trials")

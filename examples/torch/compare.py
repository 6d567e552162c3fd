#!/usr/bin/env python3
"""compare.py TORCH_MODEL [RANKS [ROUNDS [WIDTH LAYERS BATCH STEPS]]]

Trains the model of model.cpp with data parallelism over rankmesh, and with torch's DistributedDataParallel over Gloo
(ddp.py), in turns. Prints the median times of a step, the median of the ratios of the rounds, and the last losses. The exit
status is 0 if the losses agree, and 77 without torch for Python (in Debian, python3-torch).

MPIRUN is how a job is started, without the number of ranks (default: `mpirun -n`).
"""
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys

HAS_GLOO = "import sys, torch.distributed as d; sys.exit(not (d.is_available() and d.is_gloo_available()))"


def python_with_torch():
    """The interpreter that runs this program, or that of the system; None if neither has torch with Gloo."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", HAS_GLOO], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return python
    return None


def step_of(ranks, *command):
    """Milliseconds per step, and the last loss."""
    launcher = shlex.split(os.environ.get("MPIRUN", "mpirun -n"))
    text = subprocess.run([*launcher, str(ranks), *command], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"([\d.]+) ms per step, loss ([\d.]+)", text)
    return float(found[1]), float(found[2])


def main():
    python = python_with_torch()
    if python is None:
        print("SKIP: torch for Python with Gloo is not installed (Debian: python3-torch)")
        return 77
    given, usual = sys.argv[2:], ["2", "5", "256", "4", "8", "30"]
    program = os.path.abspath(sys.argv[1])
    ranks, rounds, *sizes = given + usual[len(given):]
    own, other = [], []
    for _ in range(int(rounds)):
        own.append(step_of(ranks, program, f"dp={ranks}", *sizes, "time"))
        other.append(step_of(ranks, python, str(pathlib.Path(__file__).parent / "ddp.py"), *sizes))
    print(f"{'':26}{'ms per step':>12}{'last loss':>12}")
    for name, steps in (("rankmesh", own), ("DistributedDataParallel", other)):
        print(f"{name:26}{statistics.median(time for time, _ in steps):>12.2f}{steps[0][1]:>12.7f}")
    ratio = statistics.median(mine / theirs for (mine, _), (theirs, _) in zip(own, other))
    print(f"{'ratio':26}{ratio:>12.2f}")
    agrees = abs(own[0][1] - other[0][1]) <= 1e-4 * other[0][1]
    print("the losses agree" if agrees else "the losses DIFFER")
    return 0 if agrees else 1


sys.exit(main())

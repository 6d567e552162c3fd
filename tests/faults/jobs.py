"""Runs the cells of the fault matrix as MPI jobs (scripts/fault-matrix)."""
import concurrent.futures
import dataclasses
import glob
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import judge

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# As in containers. MPI libraries do not expect that, so they must not use shared memory, and Open MPI's launcher must not
# compare users, which have other numbers there.
APART = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c",
         'mount -t proc proc /proc && mount -t tmpfs shm /dev/shm && exec "$@"', "sh"]
WITHOUT_SHARED_MEMORY = {"OMPI_MCA_btl": "self,tcp", "PMIX_MCA_psec": "none", "MPIR_CVAR_NOLOCAL": "1"}
CELLS_PER_JOB = 30  # a cell that fails leaves memory and communicators behind


@dataclasses.dataclass(frozen=True)
class Cell:
    kind: str
    bytes: int
    ranks: int
    deadline: float  # 0: none


@dataclasses.dataclass
class Machine:
    """How to start the program."""
    program: str
    hosts: int = 1  # emulated hosts
    is_apart: bool = False  # each rank has a /proc and a /dev/shm of its own
    limit: float = 6.5  # seconds after which a cell hangs
    options: tuple = ()  # further options of the program
    workers: int = 0  # jobs at a time; 0: as many as the cores allow
    keep: bool = False  # print the output of each job

    def command(self, ranks, arguments):
        if self.hosts > 1:
            launch = [str(ROOT / "scripts/emulated-hosts"), "mpirun", str(self.hosts), str(ranks // self.hosts)]
        else:
            launch = [str(ROOT / "scripts/run-mpi"), str(ranks)]
        return launch + (APART if self.is_apart else []) + [self.program, *arguments, "--limit", str(self.limit), *self.options]


def kinds_of(program):
    """Returns the properties of all kinds, by their names, in their order."""
    output = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout
    kinds = {}
    for line in output.splitlines():
        name, expected, ranks, size, check = line.split()
        kinds[name] = {"expected": expected, "ranks": int(ranks), "one_size": size != "-", "check": check != "-"}
    return kinds


@dataclasses.dataclass
class Ended:
    """A job that has ended."""
    lines: dict  # by cell: the lines of the ranks
    status: int
    why: str  # what its output says about the end
    left: str  # what it left behind


def run_job(machine, arguments, ranks, seconds):
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        command = ["timeout", "-k", "2", f"{seconds:.0f}", *machine.command(ranks, arguments)]
        environment = dict(os.environ, RANKMESH_HOSTS_TIMEOUT=f"{seconds:.0f}")
        if machine.is_apart:
            environment |= WITHOUT_SHARED_MEMORY
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                env=environment).returncode
        output.seek(0)
        text = output.read()
    if machine.keep:
        print("$ " + " ".join(command) + "\n" + text, flush=True)
    lines = {}
    for found in re.finditer(r"CELL (\{.*\})", text):
        try:
            line = json.loads(found[1])
        except ValueError:
            continue  # two ranks wrote at once
        lines.setdefault((line["kind"], line["bytes"]), []).append(line)
    processes = [line["process"] for cell in lines.values() for line in cell] if machine.hosts == 1 else []
    return Ended(lines, status, why_ended(text, status), left_behind(set(processes), machine.program))


def why_ended(text, status):
    for sign, meaning in ((r"MPI_ERRORS_ARE_FATAL|An error occurred in MPI_\w+|MPI_ERR_\w+", "MPI ended the job"),
                          (r"Segmentation fault|signal 11", "a rank crashed"), (r"signal \d+", "a rank was killed")):
        found = re.search(sign, text)
        if found:
            return f"{meaning}: {found[0]}"
    return "the job did not end in time" if status in (124, 137) else f"the job ended with status {status}"


def left_behind(processes, program):
    """Returns the processes and files in /dev/shm that a job has left, after a second of patience."""
    name = os.path.basename(program)
    end = time.monotonic() + 1.0
    while True:
        left = [str(path) for process in processes for path in glob.glob(f"/dev/shm/rankmesh-{process}-*")]
        for process in processes:
            try:
                if name in pathlib.Path(f"/proc/{process}/cmdline").read_text():
                    left.append(f"process {process}")
            except OSError:
                pass
        if not left or time.monotonic() > end:
            return ", ".join(left)
        time.sleep(0.05)


def arguments_of(cell):
    return ["--deadline", str(cell.deadline)] if cell.deadline else []


def run_alone(machine, cell):
    """Runs one cell as a program of its own, and judges also how that program ends."""
    job = run_job(machine, [cell.kind, str(cell.bytes), *arguments_of(cell)], cell.ranks, machine.limit + 30)
    verdict = judge.judge(job.lines.get((cell.kind, cell.bytes), []), cell.ranks, cell.deadline, job.why)
    if verdict.is_right and (job.left or job.status in (124, 137) or "crashed" in job.why):
        return judge.Verdict("left", job.left or job.why, verdict.text, verdict.seconds)
    return verdict


def run_batch(machine, cells):
    """Runs cells in one job after the other. Whatever ends a job belongs to the cell that was running then."""
    verdicts = {}
    todo = list(cells)
    while todo:
        with tempfile.NamedTemporaryFile("w", suffix=".cells") as file:
            file.write("".join(f"{cell.kind} {cell.bytes}\n" for cell in todo))
            file.flush()
            job = run_job(machine, ["--cells", file.name, *arguments_of(todo[0])], todo[0].ranks,
                          20 + (machine.limit + 2) * len(todo))
        done = 0
        for cell in todo:
            lines = job.lines.get((cell.kind, cell.bytes), [])
            verdicts[cell] = judge.judge(lines, cell.ranks, cell.deadline, job.why)
            done += 1
            if len(lines) < cell.ranks or any(line["outcome"] == "hung" for line in lines):
                break
        todo = todo[done:]
    return verdicts


def chunks(cells, workers):
    """Returns the cells in lists for one job each: of one number of ranks and one deadline."""
    groups = {}
    for cell in cells:
        groups.setdefault((cell.ranks, cell.deadline), []).append(cell)
    for group in groups.values():
        jobs = max(1, min(len(group), workers), -(-len(group) // CELLS_PER_JOB))
        yield from (group[first::jobs] for first in range(jobs))


def run_cells(machine, cells, alone=False, retry=False):
    """Runs all cells, several jobs at a time, and returns their verdicts."""
    ranks = max((cell.ranks for cell in cells), default=1)
    workers = machine.workers or max(1, len(os.sched_getaffinity(0)) // ranks)
    verdicts = {}
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        if alone:
            for cell, verdict in zip(cells, pool.map(lambda cell: run_alone(machine, cell), cells)):
                verdicts[cell] = verdict
        else:
            for batch in pool.map(lambda chunk: run_batch(machine, chunk), list(chunks(cells, workers))):
                verdicts.update(batch)
    if retry:  # one after the other: beside other jobs a cell may be late
        for cell in [cell for cell in cells if not verdicts[cell].is_right]:
            verdicts[cell] = run_alone(machine, cell)
    return {cell: verdicts[cell] for cell in cells}

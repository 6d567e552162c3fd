"""ddp.py WIDTH LAYERS BATCH STEPS: the model of model.cpp with torch's DistributedDataParallel over Gloo.

    mpirun -n 2 python3 ddp.py 256 4 64 20

Prints the time of a step and the last loss as `torch_model MESH WIDTH LAYERS BATCH STEPS time` does. The random numbers
are the same, so the loss is, too.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def from_launcher(*names):
    """The value of the first variable that the launcher has set."""
    return int(next(os.environ[name] for name in names if name in os.environ))


def main():
    width, layers, batch, steps = (int(word) for word in sys.argv[1:5])
    rank = from_launcher("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
    ranks = from_launcher("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(1)
    model = nn.Sequential(*(Block(width) for _ in range(layers)))
    mine = slice(rank * batch // ranks, (rank + 1) * batch // ranks)
    inputs, targets = (torch.randn(batch, width)[mine] for _ in range(2))
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    whole = loss.detach().clone()
    dist.all_reduce(whole)
    if rank == 0:
        print(f"{1000 * statistics.median(times):.3f} ms per step, loss {whole.item() / ranks:.7f}")
    dist.destroy_process_group()


main()

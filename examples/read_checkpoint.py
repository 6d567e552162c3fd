#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""read_checkpoint.py FOLDER: prints the tensors of a checkpoint. Needs no package."""
import array
import json
import pathlib
import struct
import sys

TYPES = {"F32": "f", "F64": "d", "I32": "i", "I64": "q", "U8": "B"}  # those that the module `array` knows
folder = pathlib.Path(sys.argv[1])
files = json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]
for file in sorted(set(files.values())):
    data = (folder / file).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        values = array.array(TYPES.get(tensor["dtype"], "B"), data[begin:end])
        print(name, tensor["dtype"], tensor["shape"], "sum", sum(values))

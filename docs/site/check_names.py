#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_names.py WARNINGS: fails if Doxygen found a public name without a docstring, or anything else.

Each line of doxygen-bugs.txt is a number of Doxygen's list of bugs (or "-"), and a regular expression of the warnings that
are due to it. There are at most ten, and each must be needed.
"""
import pathlib
import re
import sys

bugs = []
for line in (pathlib.Path(__file__).parent / "doxygen-bugs.txt").read_text(encoding="utf-8").splitlines():
    if line and not line.startswith("#"):
        number, pattern = line.split(maxsplit=1)
        bugs.append((number, re.compile(pattern)))
found, used = {}, set()
for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
    match = re.match(r"(?:.*/)?(include/.*?):(\d+): (?:warning|error): (.*)", line)
    if not match:
        continue  # the second line of a warning
    bug = next((i for i, (_, pattern) in enumerate(bugs) if pattern.search(line)), None)
    if bug is not None:
        used.add(bug)
    else:  # derived classes repeat the warnings of their bases
        found.setdefault((match[1], int(match[2])), match[3])
for (file, number), text in sorted(found.items()):
    print(f"{file}:{number}: {text}")
for i, (_, pattern) in enumerate(bugs):
    if i not in used:
        print(f"doxygen-bugs.txt: '{pattern.pattern}' is no longer needed")
print(f"{len(found)} public names without a docstring, {len(used)} bugs of Doxygen")
sys.exit(1 if found or len(used) < len(bugs) or len(bugs) > 10 else 0)

# SPDX-License-Identifier: BSD-3-Clause
"""Links the names of rankmesh in the tables of pages: of those for people who come from another library (docs/from-*.md).

The first column of such a table has the names of the other library, or words. In the other columns, code such as `mesh["tp"].size()`
or `all_reduce(x, op)` is linked to the reference. A call of a function that the reference does not have is an error.
"""
import re

CODE = re.compile(r"(?<![\[`])`([^`]+)`(?![\]`])")
CALL = re.compile(r"[a-z_]\w*(::\w+)*(<\w+>)?\(")


class Names:
    """Finds the label of what a piece of code names."""

    def __init__(self, labels, members):
        """`labels`: by qualified name; `members`: of a class and its bases, their qualified names by name."""
        self.labels, self.members = labels, members

    def to(self, code):
        """The label of the first name of rankmesh in a piece of code, or None."""
        code = re.sub(r"^(rankmesh::|auto \w+ = )+", "", code.strip())
        group = re.match(r"(mesh\[[^]]*\]|comm|group|coordinator|tp)\.(\w+)", code)
        if group:
            return self.member("GroupCoordinator", group[2])
        mesh = re.match(r"mesh\.(\w+)", code)
        if mesh:
            return self.member("Mesh", mesh[1])
        if re.match(r"mesh\[", code):
            return self.member("Mesh", "operator[]")
        name = re.match(r"\.?((?:\w+::)*\w+)", code)
        return self.of_name(name[1], code) if name else None

    def of_name(self, name, code):
        scope, _, last = name.rpartition("::")
        if scope:
            return self.labels.get(name) or self.member(scope, last) or self.labels.get(scope)
        is_call = re.match(rf"{re.escape(name)}(<\w+>)?\(", code)
        places = [lambda: self.member("GroupCoordinator", name), lambda: self.labels.get(name),
                  lambda: self.labels.get(f"exchange::{name}"), lambda: self.member("Mesh", name),
                  *(lambda scope=scope: self.member(scope, name) for scope in ("Work", "OwningWork", "Index", "TimeoutError"))]
        # A word without brackets may be the name of a family, such as `tp`.
        if not is_call and not re.search(r"[A-Z_]", name) and name not in self.members["GroupCoordinator"]:
            places = [lambda: self.labels.get(name)]
        return next((label for place in places if (label := place())), None)

    def member(self, scope, name):
        return self.labels.get(self.members.get(scope, {}).get(name))


def link(text, names):
    """The text of a page with links in its tables, and the calls that the reference does not have."""
    missing = []

    def linked(match):
        label = names.to(match[1])
        if label is None and CALL.match(match[1]):
            missing.append(match[1])
        return f"[{match[0]}]({label})" if label else match[0]

    def row(line):
        first, *others = re.split(r"(?<!\\) \| ", line)
        # Links that the page has already stay as they are.
        cells = ["".join(piece if i % 2 else CODE.sub(linked, piece)
                         for i, piece in enumerate(re.split(r"(\[[^]]*(?:\[[^]]*\][^]]*)*\]\([^)]*\))", cell))) for cell in others]
        return " | ".join([first, *cells])

    lines = text.splitlines()
    body = False
    for i, line in enumerate(lines):
        if not line.startswith("|"):
            body = False
        elif re.match(r"\|[-|]+\|$", line):
            body = True
        elif body:
            lines[i] = row(line)
    return "\n".join(lines) + "\n", missing

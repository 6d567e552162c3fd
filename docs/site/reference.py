#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""reference.py XML PAGES: writes one Markdown page per public header, from Doxygen's XML, to PAGES/api.

A page has a heading per class, function and variable, so that the search of the site finds each name. Overloads share a
heading. PAGES/api/index.md lists the pages by layer. In the tables of PAGES/from-*.md and PAGES/programs.md, names are linked
to these pages.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

import tables
from markdown import Links, blocks_of, code_block, signature

LAYERS = {  # in the order of the site
    "": "Whole programs", "mesh": "Meshes", "group": "Operations of a group", "exchange": "Objects, tensors, stages, experts",
    "helpers": "Seeds, norms and checks of a training", "base": "Errors, buffers, types", "layout": "Layouts without MPI",
    "spec": "Mesh strings and files", "machine": "Machines", "place": "Where ranks stand",
    "transfer": "Where tensors lie, and how they move", "routes": "Choice of transports", "record": "The record of calls",
    "report": "Reports", "mpi": "MPI", "device": "Devices and NCCL",
    "transport": "Transports", "conformance": "Tests of a transport", "adapt": "Tensors of other libraries"}
CLASSES = ("class", "struct", "union")
# Headers that the public ones include, but whose names no program uses.
INTERNAL = ("wait/", "base/published_text.hpp", "device/device_batch.hpp", "layout/divider.hpp",
            "transport/shared_segment.hpp")


def is_public(element):
    return element.get("prot", "public") == "public" and "detail::" not in element.findtext("qualifiedname", "")


def compounds(folder):
    for entry in ElementTree.parse(folder / "index.xml").getroot():
        path = folder / f"{entry.get('refid')}.xml"
        if path.exists():
            yield from ElementTree.parse(path).getroot()


def short(name):
    return name.removeprefix("rankmesh::")


class Reference:
    def __init__(self, folder):
        self.files, self.namespaces, self.classes, self.concepts = [], [], {}, []
        for compound in compounds(folder):
            kind = compound.get("kind")
            name = compound.findtext("compoundname")
            if "detail" in name.split("::") or compound.get("prot") in ("private", "protected"):
                continue
            if kind != "namespace" and self.is_internal(compound):
                continue
            if kind == "file":
                self.files.append(compound)
            elif kind == "namespace":
                self.namespaces.append(compound)
            elif kind == "concept":
                self.concepts.append(compound)
            elif kind in CLASSES and name.startswith("rankmesh"):
                self.classes[compound.get("id")] = compound
        self.links = Links()
        for compound in [*self.classes.values(), *self.concepts]:
            self.links.add(compound.get("id"), self.page(compound), short(compound.findtext("compoundname")))
        for owner, member in self.members():
            self.links.add(member.get("id"), self.page(member), anchor_of(owner, member))

    def members(self):
        for owner in [*self.classes.values(), *self.namespaces, *self.files]:
            for member in owner.iter("memberdef"):
                if self.is_internal(member):
                    continue
                # Macros belong to files; those without a docstring serve the headers alone.
                if is_public(member) and (owner.get("kind") != "file" or member.get("kind") == "define" and
                                          "".join(member.find("detaileddescription").itertext()).strip()):
                    yield owner, member

    def is_nested(self, compound):
        scope = compound.findtext("compoundname").split("<")[0].rpartition("::")[0]
        return any(other.findtext("compoundname") == scope for other in self.classes.values())

    @classmethod
    def is_internal(cls, element):
        return element.find("location") is not None and cls.page(element).startswith(INTERNAL)

    @staticmethod
    def page(element):
        return element.find("location").get("file").removeprefix("include/").removeprefix("rankmesh/")

    def write(self, output):
        pages = {}
        for compound in self.files:
            if "detail" not in self.page(compound).split("/"):
                pages[self.page(compound)] = self.text(compound)
        for name, lines in pages.items():
            path = output / (name.removesuffix(".hpp") + ".md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        (output / "index.md").write_text("\n".join(self.index(pages)) + "\n", encoding="utf-8")
        return len(pages)

    def names(self):
        """What the tables of pages can name."""
        labels = {}
        for (_, name), label in self.links.labels.items():
            labels.setdefault(name, label)
        members = {}
        for compound in self.classes.values():
            members[short(compound.findtext("compoundname"))] = self.names_of(compound)
        return tables.Names(labels, members)

    def bases(self, compound):
        """The public bases that the reference has. Those of GroupCoordinator are templates: AllReduce<>."""
        for base in compound.findall("basecompoundref"):
            name = "rankmesh::" + base.text.split("<")[0].strip().removeprefix("rankmesh::")
            yield from (c for c in self.classes.values() if c.get("id") == base.get("refid") or c.findtext("compoundname") == name)

    def names_of(self, compound):
        """The qualified names of the members of a class and its bases, by name."""
        names = {member.findtext("name"): anchor_of(compound, member) for member in compound.iter("memberdef")
                 if is_public(member) and not is_special(compound, member)}
        for base in self.bases(compound):
            names |= self.names_of(base)
        return names

    def text(self, file):
        name = self.page(file)
        self.links.page = name
        path = f"rankmesh/{name}"
        lines = [f"# {name}", "", *code_block([f"#include <{path}>"])]
        for compound in sorted(self.classes.values(), key=line_of):
            if self.page(compound) == name:
                lines += self.of_class(compound)
        for concept in self.concepts:
            if self.page(concept) == name:
                title = short(concept.findtext("compoundname"))
                code = "".join(concept.find("initializer").itertext()).replace("rankmesh::", "")
                lines += self.heading(2, "concept " + title, title)
                lines += [*code_block(code.strip().splitlines()), *blocks_of(concept, self.links)]
        free = [(owner, member) for owner, member in self.members()
                if owner.get("kind") in ("namespace", "file") and self.page(member) == name]
        lines += self.of_members(free, 2)
        return lines if len(lines) > 6 else lines + self.includes(file)

    def includes(self, file):
        """What a header without declarations includes."""
        names = [i.text.removeprefix("rankmesh/") for i in file.findall("includes") if i.get("refid")]
        names = [n for n in names if not n.startswith(INTERNAL)]
        return ["Includes:", "", *(f"- [{n}]({self.links.relative(n.removesuffix('.hpp') + '.md')})" for n in names)] if names else []

    def of_class(self, compound):
        name = short(compound.findtext("compoundname"))
        lines = self.heading(2, f"{compound.get('kind')} {name}", name)
        declaration = f"{compound.get('kind')} {name}"
        bases = [short(base.findtext("compoundname")) for base in self.bases(compound)]
        if bases:
            declaration += " : " + ", ".join(f"public {base}" for base in bases)
        parameters = compound.find("templateparamlist")
        lines += code_block(signature(compound, declaration, parameters))
        lines += blocks_of(compound, self.links)
        lines += self.inherited(compound)
        own = [(compound, member) for member in compound.iter("memberdef") if is_public(member)]
        return lines + self.of_members(own, 3)

    def heading(self, level, title, name):
        title = re.sub(r"([<_*])", r"\\\1", title)
        return ["", f"({self.links.labels[self.links.page, name]})=", f"{'#' * level} {title}", ""]

    def inherited(self, compound):
        """The names that a class has from its public bases, with links, nearest base first."""
        lines = []
        for parent in self.bases(compound):
            links = {}
            for member in parent.iter("memberdef"):
                if is_public(member) and member.get("kind") == "function" and not is_special(parent, member):
                    links.setdefault(member.findtext("name"), self.links.to(member.get("id")))
            if links:
                title = f"[{short(parent.findtext('compoundname'))}]({self.links.to(parent.get('id'))})"
                lines += [f"From {title}: " + ", ".join(f"[`{n}`]({url})" for n, url in links.items()) + ".", ""]
            lines += self.inherited(parent)
        return lines

    def of_members(self, members, level):
        groups = {}
        for owner, member in sorted(members, key=lambda pair: line_of(pair[1])):
            if not is_special(owner, member) or blocks_of(member, self.links):
                groups.setdefault(anchor_of(owner, member), []).append((owner, member))
        lines = []
        for anchor, overloads in groups.items():
            name = overloads[0][1].findtext("name")
            if overloads[0][1].get("kind") == "enum":
                name = "enum " + name
            lines += self.heading(level, name, anchor)
            for _, member in overloads:
                lines += [*code_block(signature(member)), *blocks_of(member, self.links)]
                for value in member.findall("enumvalue"):
                    text = " ".join(" ".join(blocks_of(value, self.links)).split())
                    lines += [f"- `{value.findtext('name')}`: {text}"]
                lines += [""]
        return lines

    def index(self, pages):
        lines = ["# Reference", "", "All public headers, by layer. The search finds classes, functions and options by their names."]
        layers = {}
        for name in pages:
            layers.setdefault(name.rpartition("/")[0], []).append(name)
        for layer in sorted(layers, key=lambda layer: list(LAYERS).index(layer.split("/")[0])):
            title = LAYERS[layer.split("/")[0]] + (f" ({layer}/)" if layer else "")
            lines += ["", f"## {title}", "", "| header | declares |", "|---|---|"]
            for name in sorted(layers[layer]):
                self.links.page = "index.md"
                names = {short(c.findtext("compoundname")): c.get("id") for c in self.classes.values()
                         if self.page(c) == name and not self.is_nested(c)}
                for owner, member in self.members():
                    if owner.get("kind") in ("namespace", "file") and self.page(member) == name:
                        names.setdefault(member.findtext("name"), member.get("id"))
                listed = ", ".join(f"[`{n}`]({self.links.to(i)})" for n, i in names.items())
                lines += [f"| [{name}]({name.removesuffix('.hpp')}.md) | {listed} |"]
        files = "\n".join(name.removesuffix(".hpp") for name in sorted(pages))
        return lines + ["", "```{toctree}", ":hidden:", "", files, "```"]


def line_of(element):
    return int(element.find("location").get("line"))


def anchor_of(owner, member):
    scope = short(owner.findtext("compoundname"))
    return member.findtext("name") if scope == "rankmesh" or owner.get("kind") == "file" else f"{scope}::{member.findtext('name')}"


def is_special(owner, member):
    """Whether a member is a constructor, destructor, assignment or deleted: no name that a reader looks up."""
    name = member.findtext("name")
    last = re.sub(r"<.*", "", owner.findtext("compoundname")).split("::")[-1]
    return name.strip("~ ") == last or name == "operator=" or "=delete" in member.findtext("argsstring", "").replace(" ", "")


if __name__ == "__main__":
    reference, folder = Reference(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    print(f"{reference.write(folder / 'api')} headers in the reference")
    found = reference.names()
    unknown = []
    for path in [*sorted(folder.glob("from-*.md")), folder / "programs.md"]:
        linked, missing = tables.link(path.read_text(encoding="utf-8"), found)
        path.write_text(linked, encoding="utf-8")
        if path.name != "programs.md":  # which also names functions of other libraries
            unknown += [f"docs/{path.name}: the reference has no '{call}'" for call in missing]
    sys.exit("\n".join(unknown) or 0)

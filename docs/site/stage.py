#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""stage.py ROOT STAGE: collects the pages of the site in the folder STAGE.

The pages of docs/ keep their names, so their links to each other stay as they are. A source file that a page links gets a
page of its own under files/, and so do all files of a folder that a page links.
"""
import pathlib
import re
import shutil
import sys

ROOT, STAGE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
LINK = re.compile(r"(?<!`)(\]\()([^)\s]+)(\))")
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".c": "c", ".h": "c", ".f90": "fortran", ".toml": "toml", ".py": "python",
             ".build": "meson", ".md": "markdown", "": "bash"}
PICTURES = (".svg", ".png")
# Sphinx has a page "search" of its own.
TOP = {"README.md": "index", "docs/search.md": "layout-search", "CHANGELOG.md": "changelog", "CONTRIBUTING.md": "contributing"}


def has_page(header):
    """Whether the reference has a page of the header; the others are shown as files."""
    return "detail" not in header.parts and header.name != "near_misses.hpp" and "///" in header.read_text(encoding="utf-8")


def place(path):
    """The page of the site for a file or folder of the project, without its extension."""
    relative = path.relative_to(ROOT)
    if str(relative) in TOP:
        return TOP[str(relative)]
    if relative.parts[0] == "docs" and path.suffix == ".md":
        return "/".join(relative.parts[1:]).removesuffix(".md")
    if relative.parts[:2] == ("include", "rankmesh") and path.suffix == ".hpp" and has_page(path):
        return "api/" + "/".join(relative.parts[2:]).removesuffix(".hpp")
    return f"files/{relative}"


class Stage:
    def __init__(self):
        self.done, self.waiting = set(), []

    def relink(self, text, source, page):
        """The text of a page with the links of the project changed to those of the site."""
        up = "../" * page.count("/")

        def changed(match):
            target, _, fragment = match[2].partition("#")
            if not target or re.match(r"[a-z]+:", target) or not (source.parent / target).exists():
                return match[0]
            path = (source.parent / target).resolve()
            fragment = f"#{fragment}" if fragment else ""
            if path.suffix in PICTURES:
                (STAGE / "pictures").mkdir(exist_ok=True)
                shutil.copy(path, STAGE / "pictures")
                return f"{match[1]}{up}pictures/{path.name}{match[3]}"
            self.waiting.append(path)
            return f"{match[1]}{up}{place(path)}.md{fragment}{match[3]}"

        # Code has brackets that look like links.
        pieces = re.split(r"(^```.*?^```$|`[^`\n]+`)", text, flags=re.M | re.S)
        return "".join(piece if i % 2 else LINK.sub(changed, piece) for i, piece in enumerate(pieces))

    def write(self, page, text):
        path = STAGE / f"{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def add(self, path):
        page = place(path)
        if page in self.done or page.startswith("api/") or page == "index":
            return
        self.done.add(page)
        relative = path.relative_to(ROOT)
        if path.is_dir():
            files = sorted(f for f in path.rglob("*") if f.is_file() and f.name != "meson.build" and "__pycache__" not in f.parts)
            self.waiting += files
            listed = "\n".join(f"- [{f.relative_to(path)}](/{place(f)}.md)" for f in files)
            self.write(page, f"---\norphan: true\n---\n# {relative}/\n\n{listed}\n")
        elif path.suffix == ".md":
            orphan = "---\norphan: true\n---\n" if page.startswith("files/") else ""
            self.write(page, orphan + self.relink(path.read_text(encoding="utf-8"), path, page))
        else:
            language = LANGUAGES.get(path.suffix, "text")
            text = path.read_text(encoding="utf-8").rstrip()
            self.write(page, f"---\norphan: true\n---\n# {relative}\n\n``````{language}\n{text}\n``````\n")

    def readme_section(self, match):
        """A section of the README, for the first page."""
        text = self.relink((ROOT / "README.md").read_text(encoding="utf-8"), ROOT / "README.md", "index")
        start = text.index(f"## {match[1]}\n")
        return text[start:text.index("\n## ", start) + 1]

    def run(self):
        self.waiting = sorted((ROOT / "docs").glob("*.md")) + [ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", ROOT / "LICENSE"]
        self.write("index", re.sub(r"<!-- README: (.*) -->", self.readme_section, self.relink(
            (ROOT / "docs/site/index.md").read_text(encoding="utf-8"), ROOT / "docs/index.md", "index")))
        while self.waiting:
            self.add(self.waiting.pop())
        return len(self.done)


STAGE.mkdir(parents=True, exist_ok=True)
for name in ("conf.py", "style.css", "scorer.js"):
    shutil.copy(ROOT / "docs/site" / name, STAGE)
shutil.copytree(ROOT / "examples", STAGE / "raw", dirs_exist_ok=True)
print(f"{Stage().run()} pages and source files")

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_links.py SITE: fails if a page of the site links a page, a place on a page, or a picture that does not exist."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.places |= {attributes.get("id"), attributes.get("name")}
        if attributes.get("rel") in ("search", "index"):
            return
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]


site = pathlib.Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in site.rglob("*.html")}
dead, count = set(), 0
for path, page in pages.items():
    for link in page.links:
        target = urllib.parse.urlsplit(link)
        if target.scheme or target.netloc:
            continue
        count += 1
        aim = (path.parent / urllib.parse.unquote(target.path)).resolve() if target.path else path
        exists = aim.exists()
        if exists and target.fragment and aim in pages:
            exists = urllib.parse.unquote(target.fragment) in pages[aim].places
        if not exists:
            dead.add(f"{path.relative_to(site)}: {link} leads nowhere")
print("\n".join(sorted(dead)))
print(f"{count} links inside the site, {len(dead)} of them dead")
sys.exit(1 if dead else 0)

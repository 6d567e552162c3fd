# SPDX-License-Identifier: BSD-3-Clause
"""Markdown for the elements of Doxygen's XML: descriptions, signatures, and links between the pages of the reference."""
import posixpath
import re

WIDTH = 88  # columns of a signature on the site
MARKS = {"ndash": "-", "mdash": "-", "lsquo": "'", "rsquo": "'", "ldquo": '"', "rdquo": '"', "nbsp": " ", "sp": " "}
PAGE = re.compile(r"\bdocs/([a-z-]+)\.md\b")


class Links:
    """The labels of all names. `page` is the page that is being written."""

    def __init__(self):
        self.names = {}  # id -> (page, name)
        self.labels = {}  # (page, name) -> label
        self.page = ""

    def add(self, identity, page, name):
        self.names[identity] = (page, name)
        if (page, name) not in self.labels:
            label = "api-" + re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
            used = self.labels.values()
            # Names may differ in capitals and signs alone, and overloads may be on different pages.
            self.labels[page, name] = label if label not in used else next(
                numbered for number in range(2, 99) if (numbered := f"{label}-{number}") not in used)

    def to(self, identity):
        """The label to link for a name, or None if it has no page."""
        return self.labels.get(self.names.get(identity))

    def relative(self, page):
        return posixpath.relpath(page, posixpath.dirname(self.page) or ".")

    def prose(self, text):
        """Escapes plain text, and links the pages of the documentation that it names."""
        text = re.sub(r"([\\`*_\[\]<>#|$~{}])", r"\\\1", text)
        return PAGE.sub(lambda m: f"[{m[1]}]({self.relative('../' + m[1] + '.md')})", text)


def inline(element, links):
    """The content of an element as one line."""
    parts = [links.prose(element.text or "")]
    for child in element:
        parts += [of_inline(child, links), links.prose(child.tail or "")]
    return "".join(parts)


def of_inline(child, links):
    if child.tag == "ref":
        text, url = "".join(child.itertext()), links.to(child.get("refid"))
        return f"[{links.prose(text)}]({url})" if url else links.prose(text)
    if child.tag == "computeroutput":
        return f"`{''.join(MARKS.get(e.tag, '') + (e.text or '') + (e.tail or '' if e is not child else '') for e in child.iter())}`"
    if child.tag == "bold":
        return f"**{inline(child, links)}**"
    if child.tag == "emphasis":
        return f"*{inline(child, links)}*"
    if child.tag == "ulink":
        return f"[{inline(child, links)}]({child.get('url')})"
    if child.tag in MARKS:
        return MARKS[child.tag]
    if child.tag == "linebreak":
        return "\\\n"
    raise SystemExit(f"reference.py: no Markdown for <{child.tag}> in '{''.join(child.itertext())}'")


def indented(lines, first):
    return [(first if i == 0 else " " * len(first)) + line if line else "" for i, line in enumerate(lines)]


def blocks(element, links):
    """The paragraphs, lists and listings of an element, as lines."""
    lines, sentence = [], links.prose(element.text or "")

    def end_paragraph():
        nonlocal sentence
        if sentence.strip():
            lines.extend([" ".join(sentence.split()), ""])
        sentence = ""

    for child in element:
        maker = BLOCKS.get(child.tag)
        if maker:
            end_paragraph()
            lines += maker(child, links)
        elif child.tag == "ref" and not sentence.strip() and child.text.isalpha():
            sentence += links.prose(child.text)  # a verb such as "Blocks", which Doxygen takes for the class of this name
        else:
            sentence += of_inline(child, links)
        sentence += links.prose(child.tail or "")
    end_paragraph()
    return lines


def of_list(element, links):
    mark = "1. " if element.tag == "orderedlist" else "- "
    return [line for item in element for line in indented(blocks(item, links), mark)]


def of_listing(element, links):
    if element.tag == "verbatim":
        return ["```text", *element.text.strip("\n").splitlines(), "```", ""]
    lines = []
    for line in element.iter("codeline"):
        lines.append("".join((MARKS.get(e.tag, "") + (e.text or "") + (e.tail or "")) for e in line.iter() if e is not line).rstrip())
    return ["```cpp", *lines, "```", ""]


def of_parameters(element, links):
    word = {"exception": "Throws", "param": "Parameter", "templateparam": "Template parameter", "retval": "Returns"}
    lines = []
    for item in element.findall("parameteritem"):
        names = ", ".join(inline(name, links) if name.find("ref") is not None else f"`{name.text}`"
                          for name in item.iter("parametername"))
        text = " ".join(" ".join(blocks(item.find("parameterdescription"), links)).split())
        lines.append(f"- *{word[element.get('kind')]}* {names}{' ' if element.get('kind') == 'exception' else ': '}{text}")
    return lines + [""]


def of_section(element, links):
    word = {"return": "Returns", "note": "Note:", "see": "See", "pre": "Precondition:", "warning": "Warning:"}[element.get("kind")]
    return indented(blocks(element, links), f"- *{word}* ") + [""]


def of_table(element, links):
    rows = [[inline_of_entry(entry, links) for entry in row.findall("entry")] for row in element.findall("row")]
    return [f"| {' | '.join(rows[0])} |", "|---" * len(rows[0]) + "|", *(f"| {' | '.join(row)} |" for row in rows[1:]), ""]


def inline_of_entry(entry, links):
    return " ".join(" ".join(blocks(entry, links)).split())


BLOCKS = {"para": blocks, "itemizedlist": of_list, "orderedlist": of_list, "programlisting": of_listing, "verbatim": of_listing,
          "parameterlist": of_parameters, "simplesect": of_section, "table": of_table}


def blocks_of(element, links):
    """The docstring of a class or a member."""
    lines = []
    for part in ("briefdescription", "detaileddescription"):
        if element.find(part) is not None:
            lines += blocks(element.find(part), links)
    return lines


def code_block(lines):
    return ["```cpp", *lines, "```", ""]


def plain(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def parameter(element):
    text = plain(element.find("type"))
    if element.find("declname") is not None:
        text += " " + element.findtext("declname")
    if element.find("defval") is not None:
        text += " = " + plain(element.find("defval"))
    return text


def signature(element, declaration=None, parameters=None):
    """The declaration of a class or a member as lines of code."""
    lines = []
    parameters = element.find("templateparamlist") if parameters is None else parameters
    if parameters is not None:
        lines.append(f"template <{', '.join(parameter(p) for p in parameters)}>")
    if element.find("requiresclause") is not None:
        lines.append(f"  requires {plain(element.find('requiresclause'))}")
    return tidy(lines + wrapped(declaration or declaration_of(element)))


def declaration_of(element):
    kind, name, kind_of = element.get("kind"), element.findtext("name"), plain(element.find("type"))
    static = "static " if element.get("static") == "yes" else ""
    arguments = plain(element.find("argsstring"))
    value = plain(element.find("initializer"))
    if kind == "enum":
        return f"enum class {name}" + (f" : {kind_of}" if kind_of else "")
    if kind == "typedef":
        return f"using {name} = {kind_of}{arguments}"
    if kind == "define":
        return f"#define {name}"
    if kind in ("variable",) and len(value) > 60:
        value = ""
    return f"{static}{kind_of} {name}{arguments}{' ' + value if value else ''}".strip()


def wrapped(text):
    """One line per parameter if a declaration is too long for a line."""
    start, depth = text.find("(") + 1, 0
    if len(text) <= WIDTH or not start:
        return [text]
    pieces, piece = [], ""
    for position in range(start, len(text)):
        character = text[position]
        if character == ")" and depth == 0:
            return [text[:start], *(f"    {p.strip()}," for p in pieces), f"    {piece.strip()}{text[position:]}"]
        depth += {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            pieces, piece = [*pieces, piece], ""
        else:
            piece += character
    return [text]


def tidy(lines):
    """Removes what Doxygen adds: blanks inside angle brackets, missing blanks around '='."""
    lines = [re.sub(r"< (?=[\w:])", "<", line).replace(" >", ">").replace("rankmesh::", "") for line in lines]
    return [re.sub(r"(?<=[\w\])}>])=(?=[\w{:\"'(])", " = ", line) for line in lines]

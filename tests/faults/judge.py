"""Judges how the cells of the fault matrix ended (scripts/fault-matrix).

A rank's line is the JSON object that tests/faults/report.cpp prints. judge() returns a Verdict: its `word` is "right", or
says what was wrong.
"""
import dataclasses
import re

# From the worst to the best. The order decides where several words apply.
WORDS = {
    "killed": "ended by MPI, by a signal or without a line",
    "hung": "a rank did not return",
    "wrong": "a later call returned wrong data",
    "silent": "no rank noticed it",
    "partial": "a rank noticed nothing",
    "unnamed": "an error on every rank, which does not name both calls",
    "late": "the right error, too late",
    "left": "the right error, but something was left behind or the program did not end",
    "right": "as expected",
}
SLACK = 3.0  # seconds: the tests run beside others
GRACE = 0.5  # seconds after the deadline
WITHOUT_DEADLINE = 5.0
OWN_ERRORS = {"MismatchError", "TimeoutError", "ClosedError", "UsageError", "DataError", "Error"}

# "rank 5 (dp=0,tp=1): WORDS; ranks 0-4, 6-7: WORDS"; the words end before the next set of ranks.
SEGMENT = re.compile(
    r"\branks? (\d+(?:-\d+)?(?:,\s?\d+(?:-\d+)?)*)(?:\s?\([^)]*\))?:\s*"
    r"(.*?)(?=(?:;\s*|\n\s*|, and |$)(?:ranks? \d|$))", re.DOTALL)


@dataclasses.dataclass
class Verdict:
    word: str
    why: str = ""
    text: str = ""  # the error of a rank
    seconds: float = 0.0  # of the slowest rank

    @property
    def is_right(self):
        return self.word == "right"


def ranks_of(words):
    """Returns the ranks of a text like "0-4, 6-7"."""
    ranks = set()
    for part in words.split(","):
        first, _, last = part.strip().partition("-")
        ranks.update(range(int(first), int(last or first) + 1))
    return ranks


def segments(text):
    """Returns the calls that a MismatchError lists: pairs of a set of ranks and their words."""
    return [(ranks_of(match[1]), match[2].strip(" ;\n")) for match in SEGMENT.finditer(text)]


def has_all(text, words):
    return all(word in text for word in words)


def why_not_named(line, text, members):
    """Returns what is missing in the text of a MismatchError, or ""."""
    found = segments(text)
    if len(found) < 2:
        return "the text does not list the calls of two sets of ranks"
    if set().union(*(ranks for ranks, _ in found)) != members:
        return f"the text does not say what each of the ranks {sorted(members)} called"
    odd = next((words for ranks, words in found if line["odd_rank"] in ranks), "")
    others = " ".join(words for ranks, words in found if line["odd_rank"] not in ranks)
    if len(members) > 2 and found[0][0] != {line["odd_rank"]}:
        return "the text does not begin with the outlier"
    if not has_all(odd, line["odd"]):
        return f"the call of the outlier lacks {line['odd']}"
    if not has_all(others, line["good"]):
        return f"the call of the others lacks {line['good']}"
    if any(words == odd for ranks, words in found if line["odd_rank"] not in ranks):
        return "both calls read alike"
    return ""


def named(lines, members):
    """Returns why the members did not all get the same MismatchError with both calls, or ""."""
    for line in lines:
        if line["rank"] in members and line["outcome"] != "MismatchError":
            return f"rank {line['rank']} got {line['outcome']}: {line['text']}"
    texts = {line["text"] for line in lines if line["rank"] in members}
    if len(texts) != 1:
        return "the ranks got different texts"
    return why_not_named(lines[0], texts.pop(), members)


def told(lines):
    for line in lines:
        if not has_all(line["text"], line["odd"] + line["good"]):
            return f"the text of rank {line['rank']} lacks one of {line['odd'] + line['good']}: {line['text']}"
    return ""


def used_wrongly(lines):
    for line in lines:
        if line["rank"] == line["odd_rank"] and line["outcome"] != "UsageError":
            return f"rank {line['rank']} got {line['outcome']} instead of UsageError"
        if line["rank"] != line["odd_rank"] and not re.search(rf"\brank {line['odd_rank']}\b", line["text"]):
            return f"the text of rank {line['rank']} does not name rank {line['odd_rank']}"
    return ""


def why_unnamed(lines):
    """Returns what is wrong with the errors that all ranks got, or ""."""
    expected = lines[0]["expected"]
    for line in lines:
        if line["outcome"] not in OWN_ERRORS | {"ok"}:
            return f"rank {line['rank']} got {line['outcome']}"
    if expected == "told":
        return told(lines)
    if expected == "usage":
        return used_wrongly(lines)
    members = {0, lines[0]["odd_rank"]} if expected == "pair" else {line["rank"] for line in lines}
    return named(lines, members)


def judge_lines(lines, deadline):
    expected = lines[0]["expected"]
    hung = [line for line in lines if line["outcome"] == "hung"]
    if hung:
        return Verdict("hung", f"rank {hung[0]['rank']} in step '{hung[0]['at']}'")
    bad = [line for line in lines if line["wrong"]]
    is_silent = all(line["outcome"] == "ok" for line in lines)
    if bad and (expected != "at_close" or is_silent):  # a skipped call is found at the latest in close()
        return Verdict("wrong", f"rank {bad[0]['rank']} in step '{bad[0]['wrong']}'")
    ended_well = [line for line in lines if line["outcome"] == "ok"]
    if len(ended_well) == len(lines):
        return Verdict("right" if expected.startswith("works") else "silent")
    if ended_well:
        return Verdict("partial", f"rank {ended_well[0]['rank']} got no error")
    if expected == "works":
        return Verdict("unnamed", "there is no mistake in this cell")
    why = why_unnamed(lines)
    if why:
        return Verdict("unnamed", why)
    has_deadline = deadline and expected != "told"  # some of these wait for the timeout of the mesh
    limit = deadline + GRACE + SLACK if has_deadline else WITHOUT_DEADLINE
    slowest = max(line["seconds"] for line in lines)
    return Verdict("late", f"after {slowest:.1f} s") if slowest > limit else Verdict("right")


def judge(lines, ranks, deadline, why_missing="a rank printed no line"):
    """Judges a cell by the lines of its ranks. `why_missing` says how the job ended if a line is missing."""
    if len(lines) < ranks:
        at = [line for line in lines if line["outcome"] == "hung"]
        if at:
            verdict = Verdict("hung", f"rank {at[0]['rank']} in step '{at[0]['at']}'")
        else:
            verdict = Verdict("killed", why_missing)
    else:
        verdict = judge_lines(sorted(lines, key=lambda line: line["rank"]), deadline)
    if lines:
        errors = [line["text"] for line in lines if line["text"]]
        verdict.text = errors[0] if errors else ""
        verdict.seconds = max(line["seconds"] for line in lines)
    return verdict

"""Writes the table of docs/faults.md (scripts/fault-matrix --write)."""
import collections
import fnmatch
import re

BEGIN = "<!-- written by scripts/fault-matrix --write docs/faults.md -->\n"
END = "<!-- end of what scripts/fault-matrix writes -->\n"

# The rows: a title, and the kinds of mistakes that the row stands for.
ROWS = [
    ("another number of elements", ["count_*", "half_*"]),
    ("sizes on both sides of the border of two transports", ["border_*"]),
    ("other sizes of blocks (v-forms)", ["blocks_*", "own_block_*"]),
    ("a v-form where others use equal blocks", ["all_gather_v_all_gather"]),
    ("another element type", ["type_*"]),
    ("another reduction", ["max_*", "avg_*"]),
    ("a function of the program against a built-in reduction", ["function_*"]),
    ("a function of the program that is `Commutative` on one rank", ["commutative_*"]),
    ("a function of the program that throws, or that uses its mesh", ["throwing_*"]),
    ("too little memory for a call", ["memory_*"]),
    ("a wrong number of counts", ["counts_*"]),
    ("a rank comes after the others have given up", ["late_*"]),
    ("another root", ["root_*"]),
    ("another collective", ["all_reduce_*", "broadcast_reduce", "gather_scatter"]),
    ("a rank skips a call", ["skip_*"]),
    ("a rank makes one call more", ["extra_*"]),
    ("the operations of two groups in another order", ["order_cycle", "order_equal_*", "order_duplicate"]),
    ("one rank of a square in another order (no mistake)", ["order_one_rank"]),
    ("two meshes in another order", ["order_two_meshes", "order_close", "order_open"]),
    ("close() while others still call", ["early_close*"]),
    ("another call behind an asynchronous one", ["behind_async"]),
    ("`_async` on one rank, blocking on another", ["async_*"]),
    ("in place on one rank", ["in_place_*"]),
    ("along an axis on one rank", ["axis_*"]),
    ("symmetric memory on some ranks, or of other sizes", ["symmetric_*"]),
    ("a null span with elements", ["null_*"]),
    ("a span whose bytes overflow", ["huge_*"]),
    ("empty on one rank only", ["empty_*"]),
    ("a message of another type, length or tag", ["send_as_*", "send_too_*", "send_other_tag"]),
    ("a message that nobody receives", ["send_extra*"]),
    ("a receive that is cancelled (no mistake)", ["recv_cancelled"]),
    ("a message meets a collective", ["send_all_reduce", "recv_all_reduce"]),
    ("dynamic groups: other lists or names, or a rank does not come", ["new_group_*"]),
    ("dynamic groups: other calls, or closed early", ["group_*"]),
    ("other maps, orders or widths of experts", ["expert_*"]),
    ("objects with other roots or functions, or bytes that are no object", ["object_*"]),
    ("checkpoints with other tensors, options or folders", ["checkpoint_name", "checkpoint_o*", "checkpoint_n*",
                                                            "checkpoint_s*", "checkpoint_type", "checkpoint_f*",
                                                            "checkpoint_load"]),
    ("two jobs that save into one folder; a file of the user", ["checkpoint_t*", "checkpoint_latest"]),
    ("buckets with other buffers, orders or sizes", ["bucket_*"]),
    ("`Lockstep` with other options or steps", ["lockstep_*"]),
    ("`ControlQueue` with other options, or a message that is not written or not read", ["queue_*"]),
]


def rows_of(kinds):
    """Returns the kinds of each row. Every kind belongs to the first row that has a pattern for it."""
    rows = collections.OrderedDict((title, []) for title, _ in ROWS)
    for kind in kinds:
        title = next((title for title, patterns in ROWS if any(fnmatch.fnmatch(kind, p) for p in patterns)), None)
        if title is None:
            raise SystemExit(f"tests/faults/page.py has no row for the kind '{kind}'")
        rows[title].append(kind)
    return rows


def summary(verdicts, members, kinds):
    """Returns "yes", "it works", "in 3 of 4 cells", "no", "not compared" or "not tried"."""
    mine = [(cell, verdict) for cell, verdict in verdicts.items() if cell.kind in members]
    right = [verdict for _, verdict in mine if verdict.is_right]
    if not mine:
        return "not compared" if all(kinds[kind]["check"] for kind in members) else "not tried"
    if len(right) == len(mine):
        return "yes" if any(verdict.text for verdict in right) else "it works"
    return f"in {len(right)} of {len(mine)} cells" if right else "no"


def example(verdicts, kinds):
    """Returns the shortest right error of these kinds."""
    texts = [verdict.text for cell, verdict in verdicts.items() if cell.kind in kinds and verdict.is_right and verdict.text]
    if not texts:
        return ""
    lines = [line.strip() for line in min(texts, key=len).split("\n")]
    text = "; ".join(filter(None, lines)).replace(":; ", ": ").replace("|", "\\|")
    text = re.sub(r"/\S*/checkpoints-\d+", "/scratch", text)
    return f"`{text if len(text) <= 300 else text[:297] + '...'}`"


def table(kinds, by_default, with_check):
    lines = ["| mistake | by default | with `RANKMESH_CHECK=1` | how it reads |", "|---|---|---|---|"]
    for title, members in rows_of(kinds).items():
        shown = example(by_default, members) or example(with_check, members)
        found = [summary(verdicts, members, kinds) for verdicts in (by_default, with_check)]
        lines.append(f"| {title} | {found[0]} | {found[1]} | {shown} |")
    return "\n".join(lines) + "\n"


def write(path, kinds, by_default, with_check):
    text = path.read_text()
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        raise SystemExit(f"{path} has no place for the table: it needs the lines\n{BEGIN}{END}")
    path.write_text(before + BEGIN + table(kinds, by_default, with_check) + END + after)

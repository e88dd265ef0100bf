"""`onward show`, `tree` and `context`: what happened, how it branches, what the model sees of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import Point, check_options, common, examples, point_options, reading, session_argument
from onward.errors import Usage

if TYPE_CHECKING:
    from onward.context.projection import Projection
    from onward.reading import View
    from onward.store import Store

ROLE_STYLES = {"user": "bold green", "assistant": "bold cyan", "tool": "yellow", "system": "magenta"}


@click.command(
    short_help="Show what was said and done.",
    epilog=examples(
        "onward show @", "onward show 0192 --branch leaf-40", "onward show @ --info", "onward show @ --event 40"
    ),
)
@session_argument
@click.option("--info", is_flag=True, help="What the session is, counted, instead of what was said in it.")
@click.option("--event", metavar="SEQ", type=int, help="This event alone, whole, wherever it is.")
@click.option("--full", is_flag=True, help="For people: whole texts, and events that no model ever sees.")
@check_options
@point_options
@common
def show(
    store: Store,
    session: str,
    info: bool,
    event: int | None,
    full: bool,
    check: bool,
    root: Path | None,
    point: Point,
    as_json: bool,
) -> None:
    """Show what was said and done on a path, as it was said and done.

    Compaction hides nothing here: what was replaced for the model is shown and marked. With --check, what was looked at
    and what was concluded is marked with whether it still holds; files are looked at for that.
    """
    if check and (info or event is not None):
        raise Usage("--check goes with the transcript, not with --info or --event")
    if info:
        from onward.cli.commands.info import show_info

        show_info(store, session, point, as_json)
        return
    if event is not None:
        from onward.cli.commands.one_event import show_event

        show_event(store, session, event, point, as_json)
        return
    with reading(store, session) as opened:
        view = point.of(opened)
        entries = view.transcript()
        held = view.check(root).standing() if check else {}
        if as_json:
            import msgspec

            rows = msgspec.to_builtins(entries)
            if check:
                rows = [{**row, "holds": held.get(row["seq"])} for row in rows]
            output.document({"session": view.id, "branch": view.branch, "entries": rows})
            return
        labels = view.labels()
    from onward.evidence.words import standing

    for entry in entries:
        if entry.state == "log-only" and not full:
            continue
        marks = [f"#{entry.seq}", entry.role or entry.type, entry.tool, output.when(entry.time)]
        marks.append({"replaced": "(the model no longer sees this)", "log-only": "(only in the log)"}.get(entry.state))
        marks.append(f"[{labels[entry.seq]}]" if entry.seq in labels else None)
        status = held.get(entry.seq)
        marks.append(status and f"({standing(status, entry.type)})")
        output.say("  ".join(mark for mark in marks if mark), ROLE_STYLES.get(entry.role or "", "dim"))
        output.say(_indented(entry.text, None if full else 40), "dim" if entry.state != "current" else "")


def _indented(text: str, limit: int | None) -> str:
    lines = text.split("\n")
    rest = 0 if limit is None else len(lines) - limit
    if rest > 0:
        lines = [*lines[:limit], f"… {rest} more lines; --full shows them"]
    return "\n".join("    " + line for line in lines) + "\n"


@click.command(
    short_help="Show how a session branches.",
    epilog=examples("onward tree @", "onward tree @ --full", "onward tree @ --json"),
)
@session_argument
@click.option("--full", is_flag=True, help="For people: every node, not only those that tell where one is.")
@check_options
@point_options
@common
def tree(store: Store, session: str, full: bool, check: bool, root: Path | None, point: Point, as_json: bool) -> None:
    """Show how a session branches. --at shows the tree as it was; --branch and --node show one path.

    With --check, what was looked at and concluded on the path is marked with whether it still holds.
    """
    from onward.cli.branching import nodes_of, twigs

    with reading(store, session) as opened:
        view = point.of(opened)
        held = view.check(root).standing() if check else {}
        nodes = nodes_of(view, path_only=point.branch is not None or point.node is not None, held=held)
        leaves = view.state.branches.leaves
        branches: list[dict[str, Any]] = [
            {"name": name, "leaf": None if leaf < 0 else leaf, "turns": _turns(view, name)}
            for name, leaf in leaves.items()
        ]
        active = view.state.branches.active
    if as_json:
        rows = [node.document() | ({"holds": node.holds} if check else {}) for node in nodes]
        output.document({"session": view.id, "active": active, "branches": branches, "nodes": rows})
        return
    columns = (output.Column("branch", style="cyan"), output.Column("leaf"), output.Column("turns", number=True))
    output.table(
        columns,
        [(one["name"] + (" *" if one["name"] == active else ""), _seq(one["leaf"]), one["turns"]) for one in branches],
    )
    output.say()
    names: dict[int, list[str]] = {}
    for name, leaf in leaves.items():
        names.setdefault(leaf, []).append(f"{name} *" if name == active else name)
    output.tree(twigs(nodes, names, set(view.path), full=full))


def _seq(leaf: int | None) -> str:
    return "start" if leaf is None else f"#{leaf}"


def _turns(view: View, branch: str) -> int:
    """How many turns a branch has at a view's point of the log."""
    from onward.reading import View

    return View(view.log, view.state, branch, view.state.leaf(branch)).count_turns()


@click.command(
    short_help="Show what the model sees, and why.",
    epilog=examples("onward context @", "onward context @ --budget 20000", "onward context @ --as openai --json"),
)
@session_argument
@click.option("--budget", metavar="TOKENS", type=click.IntRange(min=1), help="Leave out what does not fit.")
@click.option(
    "--as",
    "shape",
    type=click.Choice(["plain", "openai", "anthropic"]),
    default="plain",
    show_default=True,
    help="Whose messages; the providers' are repaired into what they accept.",
)
@check_options
@point_options
@common
def context(
    store: Store,
    session: str,
    budget: int | None,
    shape: str,
    check: bool,
    root: Path | None,
    point: Point,
    as_json: bool,
) -> None:
    """Show the messages that a model would see now, and for every node where it went.

    What the model sees: the surface of the path. Nodes are listed by their numbers: what stands for another is seen in
    its place, wherever it is listed. Tokens are estimated, of the messages alone. With --check,
    one last message names the sources that are not as they were looked at, if there are any.
    """
    with reading(store, session) as opened:
        view = point.of(opened)
        projection = view.context(budget=budget, check=check, root=root)
        document = {
            "session": view.id,
            "branch": view.branch,
            "leaf": view.leaf,
            "tokens": projection.tokens,
            "surface": view.surface,
            **_messages(view, projection, shape),
            "manifest": [_row(row) for row in projection.manifest],
            "over": projection.over,
        }
    if as_json:
        output.document(document)
        return
    output.say(
        f"{output.counted(len(document['messages']), 'message')}, about {output.counted(projection.tokens, 'token')}, "
        f"from {output.counted(len(document['surface']), 'node')} on the surface of branch {view.branch}"
    )
    if projection.over:
        output.say("The budget is too small even for what must stay: the last question and the newest step.", "yellow")
    output.say()
    _print_manifest(document["manifest"])
    from onward.context.projection import BESIDE
    from onward.model.messages import text_of

    if projection.nodes[-1:] == [BESIDE]:
        output.say("\nbehind all of it, because of --check:", "bold")
        output.say(_indented(text_of(projection.messages[-1].blocks), None), "yellow")
    for repair in document["repairs"]:
        place = "" if repair["seq"] is None else f" (node {repair['seq']})"
        output.say(f"repaired{place}: {repair['kind']}: {repair['detail']}")


def _messages(view: View, projection: Projection, shape: str) -> dict[str, Any]:
    """`messages` and `repairs` in somebody's shape; Anthropic's system prompt stands apart."""
    import msgspec

    if shape == "openai":
        from onward.context.openai import to_openai

        messages, repairs = to_openai(projection.messages, nodes=projection.nodes, fetch=view.blob)
        return {"messages": messages, "repairs": msgspec.to_builtins(repairs)}
    if shape == "anthropic":
        from onward.context.anthropic import to_anthropic

        system, messages, repairs = to_anthropic(projection.messages, nodes=projection.nodes, fetch=view.blob)
        return {"system": system, "messages": messages, "repairs": msgspec.to_builtins(repairs)}
    plain = [{"blocks": [], **msgspec.to_builtins(message)} for message in projection.messages]
    return {"messages": plain, "repairs": []}


def _row(row: Any) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "type": row.type,
        "state": row.state,
        "by": row.by,
        "reason": row.reason,
        "tokens": row.tokens,
        "last": row.last,
        "nodes": row.nodes,
    }


def _print_manifest(rows: list[dict[str, Any]]) -> None:
    columns = (
        output.Column("nodes"),
        output.Column("type"),
        output.Column("state"),
        output.Column("tokens", number=True),
        output.Column("why", limit=70),
    )
    table = []
    for row in rows:
        where = f"#{row['seq']}" if row["seq"] == row["last"] else f"#{row['seq']}–{row['last']}"
        why = row["reason"] if row["by"] is None else f"{row['reason']} (#{row['by']})"
        table.append((where, row["type"] or f"{row['nodes']} nodes", row["state"], row["tokens"], why))
    output.table(columns, table)

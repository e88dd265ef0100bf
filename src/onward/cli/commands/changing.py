"""The commands that change a session: fork, branch, move, label, title, delete, and the purge of the trash."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onward.cli import output
from onward.cli.options import Point, common, examples, point_options, reading, session_argument, writing
from onward.errors import Refused, Usage

if TYPE_CHECKING:
    from onward.store import Store


@click.command(
    short_help="Begin a session that goes on from another.",
    epilog=examples("onward fork @", "onward fork 0192 --node 40", "onward fork @ --detach --cwd ~/code/new-place"),
)
@session_argument
@click.option("--detach", is_flag=True, help="Copy the events instead of referring to them.")
@click.option(
    "--cwd",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory that it works in; default: the one of SESSION.",
)
@point_options
@common
def fork(store: Store, session: str, detach: bool, cwd: Path | None, point: Point, as_json: bool) -> None:
    """Begin a session that goes on from another, which stays as it is.

    It inherits the events up to the last completed turn; --at and --node choose another point. With --cwd it goes on in
    another directory: where a session was imported from another machine, or its directory was moved or removed.
    """
    with (
        reading(store, session) as parent,
        parent.fork(at=point.at, node=point.node, branch=point.branch, detach=detach, cwd=cwd) as child,
    ):
        at = _cut(child.header.lineage, child.header.parent)
        answer = {"session": child.id, "parent": parent.id, "at": at, "inherited": at + 1}
        leaf = None if point.at is not None or point.node is not None else point.of(parent).leaf
    if as_json:
        output.document(answer)
    else:
        output.say(f"{child.id} goes on from {parent.id} after event {at}")
        if leaf is not None and leaf > at:
            output.hint(f"the turn behind it was not completed and is left out; --node {leaf} takes it too")


def _cut(lineage: object, parent: object) -> int:
    """The last event that a fork took over, -1 for none."""
    from onward.model.event import Cut

    if isinstance(parent, Cut):
        return parent.seq
    assert isinstance(lineage, dict)
    return int(lineage["forked_from"]["seq"])


@click.command(
    short_help="Name a place to go on from.",
    epilog=examples("onward branch @ try-two", "onward branch @ earlier --node 40"),
)
@session_argument
@click.argument("name")
@click.option("--node", metavar="SEQ", type=int, help="Where it ends; default: where the active branch ends.")
@common
def branch(store: Store, session: str, name: str, node: int | None, as_json: bool) -> None:
    """Create a branch. It becomes the active one when something is written on it, or with `onward move`."""
    with writing(store, session) as opened:
        leaf = opened.create_branch(name, node=node)
        answer = {"session": opened.id, "branch": name, "leaf": leaf}
    if as_json:
        output.document(answer)
    else:
        output.say(f"branch {name} ends at {_place(leaf)}")


@click.command(
    short_help="Move a branch to another node and make it the active one.",
    epilog=examples("onward move @ main 40", "onward move @ main start", "onward move @ main 40 --summary"),
)
@session_argument
@click.argument("branch")
@click.argument("seq", metavar="SEQ")
@click.option("--summary", is_flag=True, help="Put a summary of what is left behind at SEQ, picked without a model.")
@common
def move(store: Store, session: str, branch: str, seq: str, summary: bool, as_json: bool) -> None:
    """Move a branch to the node SEQ (`start` = before the first one) and make it the active one.

    Nothing is lost: the nodes behind SEQ stay in the log, and a move back shows them again. With `--summary` the model
    is told there what was done on the path that is left; the branch then ends in that summary. Where nothing is left
    behind, nothing is written.
    """
    node = None if seq == "start" else _number(seq)
    with writing(store, session) as opened:
        if summary:
            node = opened.summarise_branch(node, branch=branch).seq
        else:
            opened.move(branch, node)
        answer = {"session": opened.id, "branch": branch, "leaf": opened.leaf, **({"summary": node} if summary else {})}
    if as_json:
        output.document(answer)
    else:
        told = ", a summary of what was left behind," if summary else ""
        output.say(f"branch {branch} ends at {_place(node)}{told} and is active")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Usage(f"SEQ is the number of a node, or `start`, not {text!r}") from None


def _place(node: int | None) -> str:
    return "the start" if node is None else f"node {node}"


@click.command(
    short_help="Bookmark a node.",
    epilog=examples("onward label @ 40 'before the rewrite'", "onward label @ 40 ''"),
)
@session_argument
@click.argument("seq", metavar="SEQ", type=int)
@click.argument("text")
@common
def label(store: Store, session: str, seq: int, text: str, as_json: bool) -> None:
    """Bookmark the node SEQ with TEXT; an empty TEXT takes the bookmark away."""
    with writing(store, session) as opened:
        opened.label(seq, text)
        answer = {"session": opened.id, "seq": seq, "label": text}
    if as_json:
        output.document(answer)
    else:
        output.say(f"node {seq}: {text}" if text else f"node {seq} has no label any more")


@click.command(short_help="Give a session a title.", epilog=examples("onward title @ 'Port the theme selector'"))
@session_argument
@click.argument("text")
@common
def title(store: Store, session: str, text: str, as_json: bool) -> None:
    """Give a session a title; an empty TEXT takes it away."""
    with writing(store, session) as opened:
        opened.set_title(text)
        answer = {"session": opened.id, "title": opened.title or ""}
    if as_json:
        output.document(answer)
    else:
        output.say(answer["title"] or "no title any more")


@click.command(short_help="Move a session to the trash.", epilog=examples("onward delete 0192f0"))
@session_argument
@common
def delete(store: Store, session: str, as_json: bool) -> None:
    """Move a session to the trash. Forks of it go on working; only `onward purge` erases."""
    id_ = store.find(session)
    path = store.delete(id_)
    if as_json:
        output.document({"session": id_, "trash": None if path is None else output.printable(path)})
    else:
        output.say(f"{id_} is in the trash: {path}")


@click.command(short_help="Erase what is in the trash.", epilog=examples("onward purge --yes"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def purge(store: Store, yes: bool, as_json: bool) -> None:
    """Erase the sessions in the trash for good, but for those that a fork still needs."""
    if not yes:
        try:
            agreed = click.confirm("Erase the sessions in the trash for good?", err=True)
        except click.Abort:
            sys.stderr.write("\n")
            if sys.stdin.isatty():
                raise
            raise Usage("nobody answers whether to erase", hint="`--yes` erases without a question") from None
        if not agreed:
            raise Refused("nothing was erased")
    erased = store.purge()
    if as_json:
        output.document({"purged": erased})
    else:
        output.say(f"{len(erased)} erased")

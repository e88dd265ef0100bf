"""What commands share: the store, the session that is meant, the point of the log that is looked at."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from onward.errors import Usage

if TYPE_CHECKING:
    from onward.reading import View
    from onward.session import Session
    from onward.store import Store

F = TypeVar("F", bound=Callable[..., Any])


class Given:
    """What was said to all commands. `home` = the directory of `--home`, None where it was not given."""

    __slots__ = ("home",)

    def __init__(self) -> None:
        self.home: Path | None = None

    def store(self) -> Store:
        """The store of `$ONWARD_TENANT` and `$ONWARD_USER`, to be closed by the caller."""
        from onward.store import Store

        tenant, user = os.environ.get("ONWARD_TENANT"), os.environ.get("ONWARD_USER")
        return Store(self.home, tenant=tenant or "local", user=user or None)


class Point(NamedTuple):
    """`--branch`, `--at` and `--node`."""

    branch: str | None
    at: int | None
    node: int | None

    def of(self, session: Session) -> View:
        """The view of a session that they ask for. Raises NotFound."""
        return session.view(self.branch, at=self.at, node=self.node)

    @property
    def given(self) -> bool:
        """Whether any of them was given."""
        return self != Point(None, None, None)


def check_text(name: str, value: object) -> None:
    """Refuse a text whose bytes are no UTF-8: no log could hold it, and no name is like that. Raises Usage."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Usage(f"{name} is no text: its bytes are not UTF-8") from None


def _set_home(ctx: click.Context, _: click.Parameter, value: Path | None) -> None:
    if value is not None:
        ctx.ensure_object(Given).home = value


def examples(*lines: str) -> str:
    """The epilog of a command: lines that can be typed as they stand."""
    return "\n".join(["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)])


def home_option(function: F) -> F:
    """`--home DIR`, before or behind the command's name."""
    return click.option(
        "--home",
        metavar="DIR",
        type=click.Path(path_type=Path, readable=False),
        expose_value=False,
        is_eager=True,
        callback=_set_home,
        help="Where the sessions lie.",
    )(function)


def json_option(function: F) -> F:
    """`--json`, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(function)


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--json` and `--home`; the function gets a `Store` as its first argument, which is closed when it returns.

    Texts whose bytes are no UTF-8 are refused; paths may have any bytes.
    """

    @functools.wraps(function)
    def with_store(*args: Any, **kwargs: Any) -> Any:
        context = click.get_current_context()
        given = context.find_object(Given)
        assert given is not None
        for parameter in context.command.params:
            check_text(parameter.human_readable_name, context.params.get(parameter.name or ""))
        with given.store() as store:
            return function(store, *args, **kwargs)

    return home_option(json_option(with_store))


def session_argument(function: F) -> F:
    """SESSION, as the argument `session`."""
    return click.argument("session", metavar="SESSION")(function)


def point_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--branch`, `--at` and `--node`, as the argument `point`."""

    @functools.wraps(function)
    def with_point(*args: Any, branch: str | None, at: int | None, node: int | None, **kwargs: Any) -> Any:
        return function(*args, point=Point(branch, at, node), **kwargs)

    for option in (
        click.option("--node", metavar="SEQ", type=int, help="The path that ends at this node."),
        click.option("--at", metavar="SEQ", type=int, help="The log as it was after this event."),
        click.option("--branch", metavar="NAME", help="A branch; default: the active one."),
    ):
        with_point = option(with_point)
    return with_point


def check_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--check` and `--root`, as the arguments `check` and `root`."""

    @functools.wraps(function)
    def with_check(*args: Any, check: bool, root: Path | None, **kwargs: Any) -> Any:
        if root is not None and not check:
            raise Usage("--root goes with --check")
        return function(*args, check=check, root=root, **kwargs)

    for option in (
        click.option(
            "--root",
            metavar="DIR",
            type=click.Path(path_type=Path, readable=False),
            help="With --check: the directory that stands for the session's own now.",
        ),
        click.option("--check", is_flag=True, help="Look whether what was looked at still holds, and say so."),
    ):
        with_check = option(with_check)
    return with_check


def reading(store: Store, session: str) -> Session:
    """Open the session that a person means, to read."""
    return store.open(store.find(session), write=False)


def writing(store: Store, session: str) -> Session:
    """Open the session that a person means, to write."""
    return store.open(store.find(session))


def working(store: Store, session: str, point: Point) -> Session:
    """Open the session that a person means, to go on with it on a branch, or on a new one from a point of the log."""
    opened = writing(store, session)
    try:
        if point.at is not None or point.node is not None:
            view = point.of(opened)
            name = _free(f"from-{'start' if view.leaf is None else view.leaf}", opened)
            opened.create_branch(name, node=view.leaf)
            opened.move(name, view.leaf)
        elif point.branch is not None:
            opened.move(point.branch, point.of(opened).leaf)
    except BaseException:
        opened.close()
        raise
    return opened


def _free(name: str, session: Session) -> str:
    taken = session.branches()
    number = 1
    while (free := name if number == 1 else f"{name}-{number}") in taken:
        number += 1
    return free

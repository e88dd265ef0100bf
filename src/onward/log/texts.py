"""The texts of sessions, to search in: bounded documents in the catalogue, with an index of their words (FTS5).

A document holds the texts of some events that follow each other, about `DOCUMENT` characters, compressed. Its id is
made of its session's number and its place, so that the index of words alone says which session a hit is of. Where the
SQLite at hand has no FTS5, documents are read instead: slower, the same answers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from onward.log import links
from onward.log.database import Database
from onward.log.terms import Finder, Term, finder, first, indexed, snippet
from onward.model.event import Header

if TYPE_CHECKING:
    import sqlite3

DOCUMENT = 16_384
"""Characters from which on a document is full."""

PORTION = 128
"""Documents that one transaction adds, so that other processes get their turn."""

MATCHES = 3
"""Places of a session that an answer shows, at the most."""

_ORDINAL_BITS = 20
_Pieces = list[tuple[int, str]]
_decode = msgspec.json.Decoder(_Pieces).decode

SCHEMA = (
    """CREATE TABLE texts (
        "number" INTEGER PRIMARY KEY AUTOINCREMENT, "session" TEXT NOT NULL UNIQUE, "created" INTEGER NOT NULL,
        "next_seq" INTEGER NOT NULL, "hash" BLOB NOT NULL, "documents" INTEGER NOT NULL, "words" INTEGER NOT NULL
    )""",
    """CREATE TABLE document ("id" INTEGER PRIMARY KEY, "pieces" BLOB NOT NULL)""",
)
_WORDS = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS words"
    """ USING fts5(text, content='', columnsize=0, tokenize="unicode61 remove_diacritics 2")"""
)


class Match(NamedTuple):
    """A place where something was found: the event's seq, and a line of the text around it."""

    seq: int
    snippet: str


class Reached(NamedTuple):
    """How far a session's texts are taken in.

    Attributes:
        number: the session's in this database; never given again.
        created: of the session, in Unix milliseconds: another session may have had the id.
        next_seq: the first event that is not taken in.
        hash: of the line before it.
        documents: how many there are.
        words: whether their words are in the index.
    """

    number: int
    created: int
    next_seq: int
    hash: bytes
    documents: int
    words: bool


class Portion(NamedTuple):
    """Texts of events that follow each other, (seq, text), how far that comes (as in `Reached`), and their links."""

    pieces: _Pieces
    next_seq: int
    hash: bytes
    noted: links.Noted


class Texts:
    """The texts of a catalogue's sessions. Like the catalogue, no method raises for the state of the file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reached(self, session: str) -> Reached | None:
        """How far a session's texts are taken in; None when they have to be taken in from the start."""

        def work(connection: sqlite3.Connection) -> Reached | None:
            found = _reached(connection, session)
            # Texts that were taken in where there is no FTS5 are taken in again where there is.
            return found if found is not None and (found.words or not has_words(connection)) else None

        return self._database.run(work, write=False)

    def add(self, header: Header, portion: Portion, known: Reached | None) -> Reached | None:
        """Take in a portion of a session's texts, and of what it says of other sessions.

        Args:
            header: the session's.
            known: how far the session was taken in as the caller knows it; None = begin anew.

        Returns:
            How far it is now; None when somebody else was at it, or the database cannot be written.
        """

        def work(connection: sqlite3.Connection) -> Reached | None:
            return _add(connection, header, portion, known)

        return self._database.run(work, write=True)

    # --- searching ----------------------------------------------------------------------------------------------

    def holding(self, term: Term, sessions: Sequence[str] | None = None) -> dict[str, int]:
        """The sessions that hold a term in their texts, each with the id of the first document that does.

        Args:
            sessions: the only ones that are of interest; None = all. Only a limit to the work.
        """

        def work(connection: sqlite3.Connection) -> dict[str, int]:
            numbers = _numbers(connection)
            found: list[tuple[int, int]] = []
            read = dict.fromkeys(numbers if sessions is None else [name for name in sessions if name in numbers])
            if term.query is not None and _table(connection):
                found = connection.execute(
                    f"SELECT rowid >> {_ORDINAL_BITS} AS number, min(rowid) FROM words WHERE words MATCH ? GROUP BY 1",
                    (term.query,),
                ).fetchall()
                read = {name: None for name in read if not numbers[name].words}
            named = {reached.number: name for name, reached in numbers.items()}
            out = {named[number]: id_ for number, id_ in found if number in named}
            find = finder(term)
            for name in read:
                for id_, pieces in _documents(connection, numbers[name].number):
                    if any(find(text) for _, text in pieces):
                        out[name] = id_
                        break
            return out

        return self._database.run(work, write=False) or {}

    def together(self, terms: Sequence[Term]) -> dict[str, int]:
        """The sessions that hold all these terms in one document, each with that document's id; by the index alone."""
        queries = [term.query for term in terms if term.query is not None]
        if len(queries) < 2:
            return {}

        def work(connection: sqlite3.Connection) -> dict[str, int]:
            if not _table(connection):
                return {}
            named = {reached.number: name for name, reached in _numbers(connection).items()}
            found = connection.execute(
                f"SELECT rowid >> {_ORDINAL_BITS} AS number, min(rowid) FROM words WHERE words MATCH ? GROUP BY 1",
                (" AND ".join(queries),),
            )
            return {named[number]: id_ for number, id_ in found if number in named}

        return self._database.run(work, write=False) or {}

    def matches(self, terms: Sequence[Term], documents: dict[str, list[int]]) -> dict[str, list[Match]]:
        """Where in these documents the terms are: at most `MATCHES` places a session, in the order of the log.

        Args:
            documents: session -> ids of documents to look into.
        """
        finders = [finder(term) for term in terms]

        def work(connection: sqlite3.Connection) -> dict[str, list[Match]]:
            return {
                name: _matches(finders, (piece for id_ in sorted(set(ids)) for piece in _document(connection, id_)))
                for name, ids in documents.items()
            }

        return self._database.run(work, write=False) or {}


def forget(connection: sqlite3.Connection, session: str) -> None:
    """Take a session's texts and links out, inside the caller's transaction."""
    links.forget(connection, session)
    known = _reached(connection, session)
    if known is None:
        return
    first_id = known.number << _ORDINAL_BITS
    for id_, pieces in list(_documents(connection, known.number)):
        _take_out(connection, known, id_, pieces)
    connection.execute("DELETE FROM document WHERE id BETWEEN ? AND ?", (first_id, first_id + (1 << _ORDINAL_BITS) - 1))
    connection.execute("DELETE FROM texts WHERE session = ?", (session,))


def forget_all(connection: sqlite3.Connection) -> None:
    """Take everything out, inside the caller's transaction."""
    connection.execute("DELETE FROM texts")
    connection.execute("DELETE FROM document")
    links.forget_all(connection)
    if has_words(connection) and _table(connection):
        connection.execute("INSERT INTO words(words) VALUES('delete-all')")


def tidy(connection: sqlite3.Connection) -> None:
    """Rewrite the index of words, so that no word of a text that was taken out is left in it."""
    if has_words(connection) and _table(connection):
        connection.execute("INSERT INTO words(words) VALUES('optimize')")


def has_words(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite can index words: nearly every one that comes with Python has FTS5."""
    return bool(connection.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


# --- documents --------------------------------------------------------------------------------------------------


def _add(connection: sqlite3.Connection, header: Header, portion: Portion, known: Reached | None) -> Reached | None:
    session = header.id
    now = _reached(connection, session)
    if known is None:
        forget(connection, session)
        now = _begin(connection, session, header.created)
        links.begin(connection, header)
    elif now != known:
        return None
    assert now is not None
    pieces, count = list(portion.pieces), now.documents
    last = _document(connection, _id(now.number, count - 1)) if count and pieces else []
    if last and sum(len(text) for _, text in last) < DOCUMENT:
        # The last document has room: it is written again, so that many small saves make no more rows than one.
        count -= 1
        _take_out(connection, now, _id(now.number, count), last)
        pieces = [*last, *pieces]
    for document in _cut(pieces):
        _put(connection, now, _id(now.number, count), document)
        count += 1
    now = now._replace(next_seq=portion.next_seq, hash=portion.hash, documents=count)
    connection.execute(
        "UPDATE texts SET next_seq = ?, hash = ?, documents = ? WHERE number = ?",
        (now.next_seq, now.hash, count, now.number),
    )
    links.add(connection, session, portion.noted)
    return now


def _begin(connection: sqlite3.Connection, session: str, created: int) -> Reached:
    words = has_words(connection)
    if words:
        connection.execute(_WORDS)
    at = connection.execute(
        "INSERT INTO texts (session, created, next_seq, hash, documents, words) VALUES (?, ?, 0, x'', 0, ?)",
        (session, created, words),
    )
    return Reached(at.lastrowid or 0, created, 0, b"", 0, words)


def _cut(pieces: _Pieces) -> Iterator[_Pieces]:
    """Pieces as documents, each full but for the last one."""
    document: _Pieces = []
    size = 0
    for piece in pieces:
        document.append(piece)
        size += len(piece[1])
        if size >= DOCUMENT:
            yield document
            document, size = [], 0
    if document:
        yield document


def _put(connection: sqlite3.Connection, known: Reached, id_: int, pieces: _Pieces) -> None:
    raw = zlib.compress(msgspec.json.encode(pieces), 1)
    connection.execute("INSERT OR REPLACE INTO document VALUES (?, ?)", (id_, raw))
    if known.words:
        connection.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (id_, _as_indexed(pieces)))


def _take_out(connection: sqlite3.Connection, known: Reached, id_: int, pieces: _Pieces) -> None:
    if known.words and has_words(connection):
        # The index keeps no texts: to take one out it must be told again what it was.
        connection.execute("INSERT INTO words(words, rowid, text) VALUES ('delete', ?, ?)", (id_, _as_indexed(pieces)))


def _as_indexed(pieces: _Pieces) -> str:
    # A character that is a word by itself, between two events, keeps a phrase from reaching across.
    return "\n\ue000\n".join(indexed(text) for _, text in pieces).replace("\0", " ")


def _matches(finders: Sequence[Finder], pieces: Iterable[tuple[int, str]]) -> list[Match]:
    """The pieces that hold most of the terms, in order of their seqs."""
    found: list[tuple[int, int, Match]] = []
    for seq, text in pieces:
        spans = [span for find in finders if (span := find(text)) is not None]
        at = first(spans)
        if at is not None:
            found.append((-len(spans), seq, Match(seq, snippet(text, at))))
    found.sort(key=lambda one: one[:2])
    return sorted(match for _, _, match in found[:MATCHES])


def _id(number: int, ordinal: int) -> int:
    return (number << _ORDINAL_BITS) + ordinal


def _reached(connection: sqlite3.Connection, session: str) -> Reached | None:
    found = connection.execute(
        "SELECT number, created, next_seq, hash, documents, words FROM texts WHERE session = ?", (session,)
    ).fetchone()
    return None if found is None else Reached._make((*found[:5], bool(found[5])))


def _numbers(connection: sqlite3.Connection) -> dict[str, Reached]:
    found = connection.execute("SELECT session, number, created, next_seq, hash, documents, words FROM texts")
    return {session: Reached._make((*rest, bool(words))) for session, *rest, words in found}


def _table(connection: sqlite3.Connection) -> bool:
    """Whether there is an index of words that can be asked."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone()
    return found is not None and has_words(connection)


def _document(connection: sqlite3.Connection, id_: int) -> _Pieces:
    found = connection.execute("SELECT pieces FROM document WHERE id = ?", (id_,)).fetchone()
    return _unpacked(found[0]) if found is not None else []


def _documents(connection: sqlite3.Connection, number: int) -> Iterator[tuple[int, _Pieces]]:
    found = connection.execute(
        "SELECT id, pieces FROM document WHERE id BETWEEN ? AND ? ORDER BY id",
        (_id(number, 0), _id(number, (1 << _ORDINAL_BITS) - 1)),
    )
    for id_, pieces in found:
        yield id_, _unpacked(pieces)


def _unpacked(raw: bytes) -> _Pieces:
    return _decode(zlib.decompress(raw))

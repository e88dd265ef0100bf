"""Redacted exports: nothing that was planted comes out, in no format, from no place; and what comes out imports."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import message, shared
from command_line import document, harness_file, onward, pi_file
from onward import Store
from onward.formats.exporting import Exported, export, export_native
from onward.formats.html import to_html
from onward.formats.importing import import_file
from onward.formats.known import FORMATS, format_named
from onward.formats.markdown import to_markdown
from onward.formats.redacting import UNREADABLE, RedactedView
from onward.model.event import APPEND, Draft
from onward.session import Session
from pages import PNG, Page
from test_redaction import ANTHROPIC, AWS, AWS_SECRET, GITHUB, JWT, KEY, OPENAI, RANDOM, SLACK, chunk

HOLDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "github": (f"see {GITHUB} there", (GITHUB,)),
    "anthropic": (ANTHROPIC, (ANTHROPIC,)),
    "openai": (f"({OPENAI})", (OPENAI,)),
    "aws": (f"{AWS} and {AWS_SECRET}", (AWS, AWS_SECRET)),
    "slack": (SLACK, (SLACK,)),
    "jwt": (JWT, (JWT, JWT.split(".")[2])),
    "key": (KEY, tuple(KEY.split("\n")[1:3])),
    "bearer": ("Authorization: Bearer zebra-crossing-seven", ("zebra-crossing-seven",)),
    "url": ("postgres://app:violet-moose@db/x", ("violet-moose",)),
    "password": ("password=battery-staple-9", ("battery-staple-9",)),
    "random": (f"it is {RANDOM}", (RANDOM,)),
    "home": ("/home/annabelle/src and C:\\Users\\annabelle\\x", ("annabelle",)),
    "email": ("ask annabelle.smith@example.org", ("annabelle.smith",)),
    "private": ("a <private>purple cucumber</private> b", ("purple cucumber",)),
}
"""Kind -> a text with it, and what must not come out."""

PLANTED = [secret for _, secrets in HOLDERS.values() for secret in secrets]
MARKED = PNG[:33] + chunk(b"tEXt", b"Comment\0annabelle") + PNG[33:]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home", sync="never", user="annabelle") as made:
        yield made


def planted(session: Session) -> None:
    """Plant every kind in every place of a session."""
    picture = session.put_blob(MARKED)
    for name, (text, _) in HOLDERS.items():
        asked = session.append(
            Draft(
                type="user/message",
                data={"message": message("user", text), "source": "user", "meta": {text: [text]}},
                surface=APPEND,
                key=text[:400],
            )
        )[0]
        session.set_title(text)
        session.label(asked.seq, text)
        session.note(text, about=asked.seq, title=text)
        said = message("assistant", text)
        said["blocks"] += [
            {"type": "reasoning", "text": text, "meta": {"signature": b64encode(text.encode() * 9).decode()}},
            {
                "type": "tool_call",
                "call_id": f"c-{name}",
                "name": "write",
                "arguments": {"path": text, text: {"deep": [text]}},
            },
            {"type": "tool_call", "call_id": f"d-{name}", "name": "write", "arguments": json.dumps({"command": text})},
            {"type": "image", "sha256": picture, "media_type": "image/png", "name": text},
            {"type": "image", "url": f"https://example.org/{text}"},
            {"type": "file", "url": f"https://example.org/{text}", "name": text},
            {"type": "context", "uri": text, "abstract": text},
            {"type": "other", "kind": "odd", "data": {text: text}},
        ]
        session.append(
            Draft(
                type="assistant/message",
                data={"message": said, "model": {"provider": text, "name": text}, "error": {"message": text}},
                surface=APPEND,
            ),
            Draft(
                type="tool/result",
                data={
                    "call_id": f"c-{name}",
                    "name": "write",
                    "content": [{"type": "text", "text": "x" * 20_000 + " " + text}],
                },
                surface=APPEND,
            ),
            Draft(
                type="tool/result",
                data={"call_id": f"d-{name}", "is_error": True, "content": [{"type": "text", "text": text}]},
                surface=APPEND,
            ),
            Draft(type="custom", data={"kind": "state", "data": {text: [text]}}),
            Draft(type="custom/message", data={"message": message("user", text), "kind": "notice"}, surface=APPEND),
            Draft(type="model/selected", data={"model": {"provider": text, "name": text}}, about=asked.seq),
            Draft(type="todo", data={"items": [{"text": text}]}, about=asked.seq),
            Draft(type="mine.fact", data={text: text}, fact=True),
            Draft(
                type="assistant/partial",
                data={"blocks": [{"type": "text", "text": text[: len(text) // 2 + 5]}]},
                about=asked.seq,
            ),
        )
        session.edit(asked.seq, None, key=f"edit {name}")
        session.create_branch("".join(char for char in text[:150] if char.isprintable()))
    session.append(
        Draft(
            type="compaction/summary", data={"summary": "\n".join(text for text, _ in HOLDERS.values())}, surface=APPEND
        )
    )


def redacted(session: Session, format_: str) -> Exported:
    if format_ == "markdown":
        return to_markdown(RedactedView(session.view()))
    if format_ == "html":
        return to_html(RedactedView(session.view()))
    if format_ == "onward":
        return export_native(RedactedView(session.view()))
    return export(session, session.view(), format_named(format_), redact=True)


def plain(session: Session, format_: str) -> bytes:
    """The same export with everything in it."""
    if format_ in ("markdown", "html", "onward"):
        return {"markdown": to_markdown, "html": to_html, "onward": export_native}[format_](session.view()).data
    return export(session, session.view(), format_named(format_)).data


def decoded(data: bytes) -> str:
    """The text of an export, once more with every escape of JSON resolved, however deep."""
    text = data.decode()
    return text + text.replace("\\\\", "\\").replace("\\n", "\n").replace("\\u003c", "<") + text.replace("\\", "")


ALL = ["markdown", "html", "onward", *(format_.name for format_ in FORMATS)]


@pytest.mark.parametrize("format_", ALL)
def test_nothing_that_was_planted_comes_out(store: Store, format_: str):
    with store.create(cwd="/home/annabelle/src") as session:
        planted(session)
        exported = redacted(session, format_)
        whole = decoded(plain(session, format_))
        assert [secret for secret in PLANTED if secret not in whole] == []
        text = decoded(exported.data) + repr(exported.loss) + repr(exported.redactions)
        assert [secret for secret in PLANTED if secret in text] == []
        assert b64encode(b"annabelle").decode()[:-2] not in text
        assert "[secret-1]" in text and "[email-1]" in text and "~" in text


@pytest.mark.parametrize("format_", ["pi", "dsh", "claude-code", "codex"])
def test_a_redacted_export_imports_and_is_the_same_session_but_for_what_was_taken_out(
    store: Store, tmp_path: Path, format_: str
):
    with store.create(cwd="/home/annabelle/src") as session:
        planted(session)
        whole = plain(session, format_)
        exported = redacted(session, format_)
    assert exported.lines == whole.count(b"\n")
    contexts = []
    for name, data in (("plain", whole), ("redacted", exported.data)):
        file = tmp_path / f"{name}.jsonl"
        file.write_bytes(data)
        with store.open(import_file(store, file, FORMATS).session, write=False) as again:
            context = again.context()
            contexts.append([(said.role, [type(block) for block in said.blocks]) for said in context.messages])
    assert contexts[0] == contexts[1]


SOURCES = [("pi", pi_file), ("dsh", harness_file)]


@pytest.mark.parametrize(("format_", "made"), SOURCES)
def test_an_untouched_source_is_redacted_line_by_line(store: Store, tmp_path: Path, format_: str, made: Any):
    file = made(tmp_path)
    lines = file.read_bytes().splitlines()
    with store.open(import_file(store, file, FORMATS).session, write=False) as session:
        exported = export(session, session.view(), format_named(format_), redact=True)
    new = exported.data.splitlines()
    assert len(new) == len(lines) == exported.lines
    assert [json.loads(line).keys() for line in new] == [json.loads(line).keys() for line in lines]


def test_a_secret_in_the_source_of_an_import_is_gone_and_told_by_its_seq(store: Store, tmp_path: Path):
    file = pi_file(tmp_path)
    rows = [json.loads(line) for line in file.read_bytes().splitlines()]
    at = next(at for at, row in enumerate(rows) if row.get("message", {}).get("role") == "user")
    rows[at]["message"]["content"] = [
        {"type": "text", "text": f"use {GITHUB}"},
        {"type": "image", "mimeType": "image/png", "data": b64encode(MARKED).decode()},
    ]
    rows[0]["cwd"] = "/home/annabelle/src"
    file.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + b'{"torn": "' + GITHUB.encode())
    with store.open(import_file(store, file, FORMATS).session, write=False) as session:
        exported = export(session, session.view(), format_named("pi"), redact=True)
    assert GITHUB.encode() not in exported.data and b"annabelle" not in exported.data
    assert exported.data.endswith(UNREADABLE + b"\n")
    new = [json.loads(line) for line in exported.data.splitlines()[:-1]]
    assert new[0]["cwd"] == "~/src"
    assert new[at]["message"]["content"][0]["text"] == "use [secret-1]"
    assert new[at]["message"]["content"][1]["data"] == b64encode(PNG).decode()
    by_kind = {one.kind: one for one in exported.redactions}
    assert (by_kind["github-token"].count, by_kind["github-token"].different, by_kind["github-token"].seqs) == (
        1,
        1,
        [at - 1],
    )
    assert {"home", "picture-metadata", "unreadable"} <= by_kind.keys()
    assert GITHUB not in repr(exported.redactions)


def test_the_page_of_a_redacted_view_has_the_picture_without_its_metadata(store: Store):
    with store.create() as session:
        planted(session)
        images = Page(redacted(session, "html").data.decode()).data["images"]
        assert [data for _, data in images.values()] == [b64encode(PNG).decode()]


def test_a_redacted_log_of_our_own_is_chained_and_opens(store: Store, tmp_path: Path):
    from onward.model.event import decode_event, decode_header, sealed

    with store.create() as session:
        planted(session)
        lines = redacted(session, "onward").data.splitlines()
    digest = sealed(lines[0], b"")
    assert decode_header(lines[0]).user == "[user-1]"
    for line in lines[1:]:
        assert digest is not None
        digest = sealed(line, digest)
        decode_event(line)
    assert digest is not None


def test_the_command_says_what_it_took_out_and_never_the_thing(tmp_path: Path):
    home = tmp_path / "home"
    with Store(home, sync="never") as store, store.create() as session:
        session.user(f"use {GITHUB} and bob@example.org")
        name = session.id
    got = document(home, "export", name, "--to", "pi", "--redact", "--output", tmp_path / "out.jsonl")
    assert {one["kind"]: one["count"] for one in got["redactions"]}.items() >= {"github-token": 1, "email": 1}.items()
    assert GITHUB.encode() not in (tmp_path / "out.jsonl").read_bytes()
    for format_ in ALL:
        answer = onward(home, "export", name, "--to", format_, "--redact")
        assert answer.code == 0 and GITHUB not in answer.out + answer.err
        assert "taken out: github-token" in answer.err and "look the export through" in answer.err
    assert document(home, "export", name, "--to", "pi", "--output", tmp_path / "out2.jsonl")["redactions"] == []


REAL = [
    ("pi", "large-session.jsonl"),
    ("claude-code", "full-session.jsonl"),
    ("codex", "redacted-many-shapes.jsonl"),
    ("codex", "rollout-2025-09-25T15-12-14.jsonl"),
]


@pytest.mark.parametrize(("format_", "name"), REAL, ids=[f"{format_}-{name}" for format_, name in REAL])
def test_a_real_session_redacted_imports_to_as_many_events(store: Store, tmp_path: Path, format_: str, name: str):
    first = import_file(store, shared("sessions", format_, name), FORMATS).session
    with store.open(first, write=False) as session:
        exported = export(session, session.view(), format_named(format_), redact=True)
        events, messages = session.next_seq, len(session.context().messages)
    file = tmp_path / "again.jsonl"
    file.write_bytes(exported.data)
    with store.open(import_file(store, file, FORMATS).session, write=False) as again:
        assert (again.next_seq, len(again.context().messages)) == (events, messages)

"""HTML pages in tests: taken apart, opened in a real browser where there is one, and hostile sessions to fill them."""

from __future__ import annotations

import json
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builders import assistant, message, result, summary, user
from onward.formats.html import to_html
from onward.model.event import APPEND, Draft, view
from onward.reading import View
from onward.session import Session

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fccf50cf000004880181"
    "6f62d21f0000000049454e44ae426082"
)

ATTACKS = (
    "</script><script>document.documentElement.setAttribute('data-owned', 1)</script>",
    "<!--<script>document.documentElement.setAttribute('data-owned', 2)</script>",
    "<img src=x onerror=\"document.documentElement.setAttribute('data-owned', 3)\">",
    "<svg onload=\"document.documentElement.setAttribute('data-owned', 4)\"></svg>",
    "[click](javascript:document.documentElement.setAttribute('data-owned',5))",
    "[click](JaVaScRiPt:alert(1)) [d](data:text/html,<script>alert(1)</script>) [v](vbscript:x) [f](file:///etc/passwd)",
    "![shown](CANARY/picture.png) <link rel=stylesheet href='CANARY/style.css'> <iframe src='CANARY/frame'></iframe>",
    "</style><style>body{background:url(CANARY/background)}</style>",
    "]]></title></textarea></noscript><base href='CANARY/'><meta http-equiv=refresh content='0;url=CANARY/refresh'>",
    "$data $script ${policy} {{constructor.constructor('alert(1)')()}}",
    "__proto__ constructor \u202egnirts\u202c \u2066x\u2069 \u2028 \u2029 \x00 \x1b[31mred\x1b]0;title\x07 \x7f \x9b1m",
    "x" * 200_000,
    "[" * 20_000 + "`" * 20_001 + "*" * 20_003 + "| - " * 5_000,
    "> " * 500 + "deep\n" + "\n".join(" " * depth + "- item" for depth in range(300)),
    "```\n" * 2_001 + "~~~\n" + "# x\n" * 2_000,
    "\ufeff\U0001f468\u200d\U0001f469\u200d\U0001f467 \u0627\u0644\u0639\u0631\u0628\u064a\u0629",
)


class Page(HTMLParser):
    """A page taken apart.

    Attributes:
        tags: (name, attributes) of each start tag.
        scripts: what each script element holds, by the element's type ("" for code).
        text: what stands outside scripts and styles.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.styles: list[str] = []
        self.text = ""
        self._inside: tuple[str, str] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        self._inside = (tag, found.get("type") or "") if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.text += data
        elif self._inside[0] == "style":
            self.styles.append(data)
        else:
            self.scripts[self._inside[1]] = self.scripts.get(self._inside[1], "") + data

    @property
    def data(self) -> Any:
        """The JSON that the page holds."""
        return json.loads(self.scripts["application/json"])

    @property
    def policy(self) -> str:
        """Its content security policy."""
        (found,) = (
            attrs["content"] for tag, attrs in self.tags if attrs.get("http-equiv") == "Content-Security-Policy"
        )
        assert found is not None
        return found

    def ids(self) -> list[int]:
        """The seqs of the nodes that have a place of their own in the page."""
        names = [attrs.get("id") or "" for _, attrs in self.tags]
        return [int(name[1:]) for name in names if name[:1] == "n" and name[1:].isdigit()]


def page_of(view: View) -> Page:
    """The page of a session, taken apart."""
    return Page(to_html(view).data.decode())


class Opened(NamedTuple):
    """What a browser made of a page: its document afterwards, and every line of its console."""

    page: Page
    console: list[str]


def chromium() -> str:
    """The browser; the test is skipped where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium is installed (on Debian: apt-get install chromium)")


def opened(file: Path, folder: Path, hash_: str = "", *flags: str) -> Opened:
    """Open a page in headless Chromium and let its timers run for ten virtual seconds."""
    done = subprocess.run(
        [
            chromium(),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
            *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr"),
            *(f"--user-data-dir={folder}", "--virtual-time-budget=10000", *flags, "--dump-dom"),
            file.as_uri() + hash_,
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    console = [line for line in done.stderr.decode(errors="replace").splitlines() if ":CONSOLE" in line]
    return Opened(Page(done.stdout.decode(errors="replace")), console)


def hostile(session: Session, canary: str = "http://127.0.0.1:9") -> None:
    """Fill a session with every attack in every place that a page shows."""
    attacks = [attack.replace("CANARY", canary) for attack in ATTACKS]
    picture, svg = session.put_blob(PNG), session.put_blob(b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>")
    session.set_title(attacks[0] + attacks[10])
    for at, attack in enumerate(attacks):
        asked = session.append(user(attack), user(attack.replace(" ", "\n")))[0]
        session.label(asked.seq, attack)
        session.note(attack, about=asked.seq)
        call = {"type": "tool_call", "call_id": f"c{at}", "name": attack[:200], "arguments": {attack[:400]: attack}}
        edit = {
            "type": "tool_call",
            "call_id": f"e{at}",
            "name": "edit",
            "arguments": {"path": attack[:300], "old_string": attack, "new_string": f"@@ -1 +1 @@\n+{attack}"},
        }
        pictures = [
            {"type": "image", "sha256": picture, "media_type": "image/png"},
            {"type": "image", "sha256": svg, "media_type": "image/png"},
            {"type": "image", "url": f"{canary}/{at}.png", "media_type": attack[:100]},
            {"type": "file", "url": "javascript:alert(1)", "name": attack[:100]},
        ]
        said = message("assistant", attack)
        said["blocks"] += [{"type": "reasoning", "text": attack}, call, edit, *pictures]
        said["blocks"] += [{"type": "other", "kind": attack[:100], "data": [attack]}]
        model = {"provider": attack[:90], "name": attack[:90]}
        session.append(
            Draft(type="assistant/message", data={"message": said, "model": model}, surface=APPEND),
            result(f"c{at}", f"--- a\n+++ b\n@@ -1 +1 @@\n+{attack}"),
            result(f"e{at}", attack),
            Draft(type="custom", data={"kind": attack[:100], "data": {attack[:100]: attack}}),
        )
        session.create_branch(f"b{at} " + "".join(char for char in attack[:60] if char.isprintable()))
    deep: Any = "x"
    for _ in range(150):
        deep = {"</script>": [deep]} if isinstance(deep, str) else [deep]
    session.append(assistant("nested", ("deep", "nest")), Draft(type="custom", data={"kind": "deep", "data": deep}))


def a_bit_of_everything(session: Session) -> dict[str, int]:
    """Fill a session with what a page shows in ways of its own; the seqs of some of it."""
    picture = session.put_blob(PNG)
    ask = session.append(user("Change **the** colour, see [there](https://example.org/a)"))[0].seq
    said = message(
        "assistant", "Here is a list:\n\n- one\n- `two`\n\n```py\nprint('hello')\n```\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    said["blocks"] += [
        {"type": "reasoning", "text": "I think of needles"},
        {
            "type": "tool_call",
            "call_id": "1",
            "name": "edit",
            "arguments": {"path": "a.py", "oldText": "red", "newText": "blue"},
        },
        {"type": "tool_call", "call_id": "2", "name": "bash", "arguments": {"command": "git diff"}},
    ]
    usage = {"input": 1200, "output": 34, "cache_read": 5000, "cost": 0.0123}
    model = {"provider": "p", "name": "model-1"}
    reply = session.append(
        Draft(type="assistant/message", data={"message": said, "model": model, "usage": usage}, surface=APPEND),
        result("1", "done"),
        Draft(
            type="tool/result",
            data={
                "call_id": "2",
                "content": [
                    {"type": "text", "text": "--- a\n+++ b\n@@ -1 +1 @@\n-red\n+blue"},
                    {"type": "image", "sha256": picture, "media_type": "image/png"},
                ],
            },
            surface=APPEND,
        ),
    )
    more = session.append(user("and now?"), assistant("It is blue."))
    session.label(reply[0].seq, "the change")
    session.note("worth a look", about=reply[0].seq)
    short = session.append(summary("The colour was changed.", view("self", more[1].seq), [(ask, more[0].seq)]))[0].seq
    session.append(user("Thanks"), assistant("You are welcome"))
    session.append(user("Another way, please", parent=ask), assistant("A second branch"))
    session.create_branch("other")
    session.move("main", short + 2)
    return {
        "ask": ask,
        "reply": reply[0].seq,
        "more": more[0].seq,
        "kept": more[1].seq,
        "summary": short,
        "last": short + 2,
    }

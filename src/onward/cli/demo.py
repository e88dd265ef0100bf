"""`make demo`: other agents' sessions in, looked at from all sides, and out again. Needs no network.

Shows every command that it runs, so that it can be run again by hand.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from onward.cli.app import run
from onward.cli.demo_data import CODE, harness_session, pi_session
from onward.store import Store

REAL_HARNESS = 3


def main() -> int:
    """Run the demonstration in the folder that is named, else in a new temporary one. Returns the exit code."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(mkdtemp(prefix="onward-demo-"))
    return Demo(folder).run()


class Demo:
    """One run. What a former run left in the folder goes first; it never leaves the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.code = 0

    def run(self) -> int:
        """Show everything. Returns 0 when all of it worked."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        pi, harness = self.folder / "pi-session.jsonl", self.folder / "harness-session.jsonl"
        pi.write_bytes(pi_session())
        harness.write_bytes(harness_session())

        self.heading("Two sessions of other agents come in")
        self.onward("import", pi, harness)
        self.onward("sessions", "--all")
        first = self.session_of(pi)

        self.heading("The log as a tree: the branch that was left is still there")
        self.onward("tree", first)

        self.heading("What the model sees, and where everything else went")
        self.onward("context", first)
        self.heading(
            "The same for a provider: what was interrupted in a tool call is repaired, and the repair is listed"
        )
        self.onward("context", self.session_of(harness), "--as", "openai", only="repaired")

        self.heading("A fork goes on from the middle; the session that it comes from stays as it is")
        self.onward("fork", first, "--node", self.labelled(first))
        self.onward("sessions", "--all")

        self.heading("Does it still hold? Somebody has changed the file that the agent changed")
        shop = self.folder / "shop"
        work = shop / "shop" / "checkout.py"
        work.parent.mkdir(parents=True, exist_ok=True)
        work.write_text(CODE.replace("set(", "sorted("))
        self.onward("status", first, "--root", shop)

        self.heading("Every line of every log is checked")
        self.onward("fsck", "--all")

        self.heading("Out again: not a byte is different")
        self.compare(first, "pi", pi)
        self.compare(self.session_of(harness), "dsh", harness)
        self.real_sessions()
        self.heading(f"All of it is in {self.folder}; try the commands above on it")
        return self.code

    def real_sessions(self) -> None:
        """The same with real sessions, on a machine that has some for tests."""
        root = Path(os.environ.get("ONWARD_SHARED", Path(__file__).resolve().parents[4] / "shared" / "data"))
        large = root / "sessions" / "pi" / "large-session.jsonl"
        some = sorted((root / "sessions" / "dsh" / "v3").glob("*.jsonl"))[:REAL_HARNESS]
        if not large.exists():
            return
        self.heading("Real sessions")
        self.onward("import", large, *some)
        self.onward("usage", self.session_of(large), "--by", "model")
        self.compare(self.session_of(large), "pi", large)
        for file in some:
            self.compare(self.session_of(file), "dsh", file)

    # --- running commands ---------------------------------------------------------------------------------------

    def heading(self, text: str) -> None:
        """Say what comes next."""
        print(f"\n=== {text}\n", flush=True)  # noqa: T201

    def onward(self, *words: object, only: str | None = None) -> None:
        """Show a command, run it, and remember if it fails. `only` = show the lines that begin so."""
        args = ["--home", str(self.home), *map(str, words)]
        pipe = "" if only is None else f" | grep ^{only}"
        print(f"$ onward {shlex.join(args)}{pipe}", flush=True)  # noqa: T201
        code = run(args) if only is None else self.filtered(args, only)
        self.code = self.code or code

    def filtered(self, args: list[str], only: str) -> int:
        """Run a command and show the lines of its answer that begin with `only`."""
        from contextlib import redirect_stdout
        from io import StringIO

        answer = StringIO()
        with redirect_stdout(answer):
            code = run(args)
        for line in answer.getvalue().splitlines():
            if line.startswith(only):
                print(line)  # noqa: T201
        return code

    def compare(self, session: str, format_: str, source: Path) -> None:
        """Export a session that nothing was done to, and compare it with the file that it comes from."""
        again = self.folder / f"again-{source.name}"
        self.onward("export", session, "--to", format_, "--output", again)
        if again.read_bytes() == source.read_bytes():
            digest = sha256(again.read_bytes()).hexdigest()
            print(f"the same {again.stat().st_size:,} bytes (sha256 {digest[:16]}…)", flush=True)  # noqa: T201
        else:
            print(f"DIFFERENT from {source}", flush=True)  # noqa: T201
            self.code = self.code or 1

    def session_of(self, source: Path) -> str:
        """The session that a file was imported as."""
        with Store(self.home) as store:
            return next(row.session for row in store.sessions() if row.source == str(source.resolve()))

    def labelled(self, session: str) -> int:
        """The node that bears a label."""
        with Store(self.home) as store, store.open(session, write=False) as opened:
            return next(iter(opened.labels()))


if __name__ == "__main__":
    sys.exit(main())

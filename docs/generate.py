"""Write the pages that follow from the code; with --check, only say whether they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from onward.cli.app import COMMANDS, onward
from onward.model.vocabulary import TABLE, Kind

HERE = Path(__file__).parent
KINDS = {Kind.NODE: "Nodes", Kind.NODE_FACT: "Facts of a node", Kind.SESSION_FACT: "Facts of the session"}

DOCUMENTS = {
    "run": '{"session","turn","reason","text","usage","run","detail","unknown":[{"call_id","tool","seq"}]}',
    "import": '{"imported":[{"path","session","format","version","events","messages","branches","new",'
    '"warnings":[{"line","message"}]}],"failed":[{"path","error","code","hint"}]}',
    "sessions": '{"sessions":[{"session","title","project","cwd","path","created","updated","turns","messages",'
    '"tokens","cost","status","origin","parent","prompt","agent","user","repo","source","spawned","expires","events",'
    '"matches":[{"seq","snippet"}]}]}',
    "show": '{"session","branch","entries":[{"seq","type","role","time","text","tool","state"}]}',
    "tree": '{"session","active","branches":[{"name","leaf","turns"}],'
    '"nodes":[{"seq","parent","type","label","preview"}]}',
    "context": '{"session","branch","leaf","tokens","surface":[seq…],"messages":[…],"repairs":[{"kind","index",'
    '"detail","seq"}],"manifest":[{"seq","type","state","by","reason","tokens","last","nodes"}],"over"}',
    "why": '{"session","query","stage","verdict","explanation","events":[{"seq","branch","type","preview","session",'
    '"stage"}],"fix","branch","total","match","message","request":{"seq","contained"},"restore"}',
    "status": '{"session","counts":{"fresh","stale","moved","missing","superseded","unverifiable"},"observations":[{'
    '"subject","status","method","covered","not_covered","seq","then","now","path","action","note","diff","at","line",'
    '"by","partly":[seq…],"call_id","derived"}],"conclusions":[{"seq","text","status","because":[seq…],"kind",'
    '"sources":[seq…],"cites","checked","not_checked","lines":[{"section","text","status","because"}]}],'
    '"branch","root","notes","branches":[{"branch","counts","observations","conclusions","root","notes"}]}',
    "calls": '{"session","branch","calls":[{"seq","call_id","tool","effect","state","attempts","result","block",'
    '"owner","key","arguments_digest","started":[seq…],"approval":{"seq","outcome","by","reason","expires"},"is_error","how",'
    '"code","late":[seq…],"open","reconciled":{"seq","outcome","by","evidence"},"conflict"}]}',
    "tool-result": '{"call_id","seq","content","offset","returned","total","has_more","next_offset","sha256",'
    '"matches":[{"offset","start","content"}]}',
    "fork": '{"session","parent","at","inherited"}',
    "branch": '{"session","branch","leaf"}',
    "move": '{"session","branch","leaf"}',
    "label": '{"session","seq","label"}',
    "title": '{"session","title"}',
    "resume": '{"session","state","reasons":[{"code","text","expected","found"}],"closed":[seq…],'
    '"calls":[{"call_id","tool","effect","decision","text","seq","started","arguments","evidence"}],"stale":[{"path",'
    '"status","what","seqs","diff"}],"next",'
    '"branch","run","resumes","checkpoint","turn","step","prompt","left":{branch:[reason…]}}',
    "queue": '{"session","input","state"}',
    "compact": '{"session","tier","before","after","replaced":[seq…],"cut","summary",'
    '"lost":[{"kind","value","seq","reattached"}],"branch","policy","window","assumed","saved","cache_cost",'
    '"results":[{"seq","call_id","to","before","after"}],"turn_start","split","summarised":{"messages","of_the_turn"},'
    '"how","read_files":[…],"modified_files":[…],"declined":{"why","reason"},"dry_run","start","nodes":[seq…]}',
    "delete": '{"session","trash"}',
    "purge": '{"purged":[session…]}',
    "export": '{"session","format","path","lines","loss":[{"seq","what"}],'
    '"redactions":[{"kind","count","different","seqs"}]}',
    "usage": '{"total":{"requests","input","output","cache_read","cache_write","reasoning","cost","cache_share",'
    '"cost_estimated","unpriced"},"rows":[…]}',
    "fsck": '{"ok","checked","problems":[{"session","kind","line","seq","offset","message"}],"salvaged"}',
    "reindex": '{"sessions","events"}',
    "migrate": '{"session","from","to","path"}',
}
"""Command -> its `--json` document."""

NOTES = {
    "status": "`status` of an observation is one of `counts`; `note` says why, `diff` how (or null), `at` and `line` "
    "where it is now, `by` which observation superseded it, `partly` which superseded a part. `status` of a conclusion "
    "is the worst of what it rests on, or `lead`; `kind` is summary, note or reply; `because` are the observations of "
    "that status, `sources` all that it rests on, `cites` whether it says so itself; `lines` are those lines of a "
    "summary that do not simply hold. `branches` only with `--all-branches`: what was looked at on each other branch "
    "alone. `root` is the directory that was looked into, or null.",
    "tree": "With `--check` a node also has `holds`, as in `show`.",
    "move": "With `--summary` also `summary`, the seq of the branch/summary.",
    "sessions": "`status` is active, paused, ended or expired; `expires` when (Unix milliseconds) or null. "
    "`prompt` is the beginning of what was asked first, as one line, or null. `matches` only "
    "with `--search`, for the first 200 sessions: up to three places in the text, none where only the title, "
    "the folder or the id fits.",
    "import": "`messages` are those of the active branch's context; `new` counts the records that this run added. "
    "The exit code is that of the first file that failed.",
    "show": "`state` is current, replaced or log-only. With `--event`: one entry, with all of its `data`. With "
    "`--check` an entry also has `holds`: the standing of what was looked at or concluded there, or null. With "
    "`--info`: the row of `sessions`, "
    "with counts, usage, file, `spawned_by` (`{session, seq, depth}`: the call that started this session as a "
    "sub-agent, or null), `spawns` (the sub-agents' sessions that this one started, oldest first) and `queued` "
    "(`{input, target, time, text}` of each input that waits).",
    "resume": "`state` is ready (nothing had to be closed), repaired, blocked or locked; the last two exit with 5. "
    "`closed` has the seqs of what ended the open turns, of a dry run those that it would get. `decision` is what the "
    "decision table says of a call before anything was closed. `resumes` is the turn/start that the next turn of `run` "
    "goes on with. `left` names other branches whose run is blocked. `stale` lists the sources "
    "that are not as they were looked at.",
    "queue": "`input` is the id of the input, `state` queued or cancelled.",
    "context": "`surface` lists the nodes in order. A plain message is `{role, blocks}`; `repairs` is empty for "
    "`plain`. For `anthropic` the system prompt stands apart, in `system`. A row of the manifest is of the `nodes` "
    "neighbours from `seq` to `last` that share their fate: included, replaced, omitted or dropped. With `--check` the "
    "last message names what has changed, if anything; it is in no row.",
    "why": "`stage` is stored (not in the log at all), branch, compaction, budget, never-seen, memory, source or "
    "visible; it is about the first of `events`, then comes what took its place, then others, 20 at the most of "
    "`total`. An event of another session says whose in `session`. `fix` shows the text again and changes nothing, "
    "`restore` puts it before the model again; each is null where there is no such command, and `explanation` says "
    "why. `source`: the model sees it, and it is out of date. `message` is the index in the context; `request` the "
    "newest recorded request, and whether it had the text.",
    "compact": "`tier` is pointers, placeholders, summary, or none (then `declined` says why, and the command is "
    "content). `before` and `after` are tokens, `cache_cost` those that the next request cannot take from the cache; "
    "`replaced` are the nodes that leave the surface, `nodes` what stands for them; `cut` is the first node that is "
    "kept behind a summary. With `--undo`, `replaced` is what leaves again, and there are `restored`, `undone` (the "
    "compaction) and `seq`.",
    "calls": "`seq` is that of the message that asks for it, and `block` the index in it; `attempts` counts the "
    "tool/calls (none in the logs of programs that do not log them), `result` is the seq of the answer, `owner` the "
    "session whose file has the line that asks. `open`: it may have had an effect that nobody knows of.",
    "tool-result": "All positions are in code points; `sha256` is of the whole text. `matches` is null without "
    "`--search`; with it `content` and `offset` are of the first place, and `next_offset` is where to search on.",
    "export": "`--json` needs `--output`; without it, stdout is the export itself.",
    "usage": "A row has the figures of the total, and what it is about: session; day; provider and model; session and "
    "turn; operation. Of an attempt: session, `seq`, `time`, `turn`, operation, provider, model, `stop`, `error`. Of a "
    "compaction: session, `seq`, `how`, `before`, `after`, `saved`, `since`, `saved_in_all`, `uncached`; the figures "
    "are those of the request for its summary. [What they mean](tokens.md#what-it-cost).",
    "fsck": "`salvaged` is null without `--salvage`, else a list of `{session, source, events, unverified, lost, left, "
    "changes}`. Kinds of problems that are no damage: torn, index, lock, leftover.",
}


def vocabulary() -> str:
    lines = [
        "# Vocabulary",
        "",
        "Generated from `onward.model.vocabulary` by `make docs`. S = may be on the surface.",
        "",
    ]
    for kind, title in KINDS.items():
        lines += [f"## {title}", "", "| type | S | data | meaning |", "|---|---|---|---|"]
        for row in TABLE:
            if row.kind is kind:
                fields = ", ".join(f"`{f}`" for f in row.data.__struct_fields__ if f != "meta") or "—"
                lines.append(f"| `{row.name}` | {'S' if row.surface else ''} | {fields} | {row.summary} |")
        lines.append("")
    return "\n".join(lines)


def command_line() -> str:
    """A section a command, as click describes it, with its document."""
    root = click.Context(onward, info_name="onward")
    lines = [
        "# The command line",
        "",
        "Generated by `make docs`.",
        "",
        *_text(onward),
        "",
        "SESSION is an id, the beginning of one that no other has, or `@` for the newest session of this project.",
        "`--home` and `--json` go with every command; keys of documents are stable: more may be added, none removed.",
        "An error is one sentence on stderr, with a hint where there is one.",
        "",
    ]
    for name in COMMANDS:
        command = onward.get_command(root, name)
        assert command is not None
        ctx = click.Context(command, info_name=name, parent=root)
        usage = " ".join(command.collect_usage_pieces(ctx))
        lines += [f"## {name}", "", f"`onward {name} {usage}`", "", *_text(command), ""]
        options = [param for param in command.params if isinstance(param, click.Option)]
        rows = [record for option in options if (record := option.get_help_record(ctx)) is not None]
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| `{_cell(left)}` | {_cell(right)} |" for left, right in rows]
        lines += ["", f"JSON: `{DOCUMENTS[name]}`", ""]
        if name in NOTES:
            lines += [NOTES[name], ""]
        examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
        lines += ["```text", *examples, "```", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(command: click.Command) -> list[str]:
    paragraphs = (command.help or "").replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).splitlines()


PAGES = {"vocabulary.md": vocabulary, "cli.md": command_line}


def main() -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = HERE / name, make()
        if not path.exists() or path.read_text("utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"out of date: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Asking a server whether a page is still what it was: by its validators, else by the body's digest.

Only when somebody wants that. No cookies, no credentials, no proxies; redirects to HTTP and HTTPS alone; nothing of a
private network is asked unless the recorded address was there itself; and no server is listened to for longer than
`SECONDS`.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import SplitResult, urljoin, urlsplit

from onward.evidence.judging import Judged
from onward.evidence.observation import Response

SECONDS = 10.0
"""For one page, redirects included; looking up a name takes as long as the system lets it."""

REDIRECTS = 5

LATE = "none came in time"

LARGEST = 8 << 20
"""Bytes of a body that are hashed: 8 MiB."""


class _No(Exception):
    """It could not be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    etag: str | None
    last_modified: str | None
    location: str | None
    sha256: str | None
    too_large: bool = False


@dataclass(frozen=True, slots=True)
class _Question:
    """What a server is asked with: headers that make the answer short when nothing changed; whether to hash a body."""

    headers: dict[str, str]
    hashes: bool


def ask(url: str, thens: Sequence[Response], deadline: Deadline) -> list[Judged]:
    """What became of a page, asked once.

    Args:
        url: as recorded.
        thens: what its server said, each time that it was looked at; at least one.
        deadline: entered already; ends the answer when its time is up.

    Returns:
        One for each of `thens`.
    """
    question = _question(thens)
    try:
        answer = _ask(url, question, deadline)
    except _No as why:
        return [Judged("unverifiable", "not asked", str(why))] * len(thens)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return [Judged("unverifiable", "no answer", LATE if deadline.over else _why(error))] * len(thens)
    return [_judge(then, answer, conditional=bool(question.headers)) for then in thens]


def _why(error: Exception) -> str:
    """`Connection refused`, not where in Python it came from."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _question(thens: Sequence[Response]) -> _Question:
    """With a validator only where all have the same: an answer to it says nothing of the others."""
    hashes = any(then.sha256 is not None for then in thens)
    etags = {then.etag for then in thens}
    if len(etags) == 1 and (etag := thens[0].etag) is not None and _sendable(etag):
        return _Question({"If-None-Match": etag}, hashes)
    dates = {then.last_modified for then in thens}
    if etags == {None} and len(dates) == 1 and (date := thens[0].last_modified) is not None and _sendable(date):
        return _Question({"If-Modified-Since": date}, hashes)
    return _Question({}, hashes)


def _judge(then: Response, now: _Answer, *, conditional: bool) -> Judged:
    said = f"HTTP {now.status}"
    if now.status == 304 and conditional:
        return Judged("fresh", "the server says that it is the same")
    if now.status in (404, 410):
        return Judged("fresh", said) if then.status == now.status else Judged("missing", said)
    if not 200 <= now.status < 300:
        return Judged("unverifiable", said, "the server gave no page")
    if then.etag is not None and now.etag is not None:
        same = _weak(then.etag) == _weak(now.etag)
        return Judged("fresh" if same else "stale", f"ETag {now.etag[:60]}")
    if then.sha256 is not None and now.sha256 is not None:
        return Judged("fresh" if then.sha256 == now.sha256 else "stale", f"sha256 {now.sha256[:12]}")
    if then.last_modified is not None and now.last_modified is not None:
        same = then.last_modified == now.last_modified
        return Judged("fresh" if same else "stale", f"last modified {now.last_modified[:60]}")
    if then.sha256 is not None and now.too_large:
        return Judged("unverifiable", said, f"the page is larger than {LARGEST >> 20} MiB: too large to be hashed")
    return Judged("unverifiable", said, "neither then nor now did the server say by what to compare it")


def _weak(etag: str) -> str:
    """Validators are compared weakly (RFC 9110, 8.8.3.2): what counts is the page, not its bytes."""
    return etag.strip().removeprefix("W/")


def _ask(url: str, question: _Question, deadline: Deadline) -> _Answer:
    private = False
    first = True
    for _ in range(REDIRECTS + 1):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _No("only http and https are asked" if first else "it leads to something that is no http or https")
        address = _address(parts)
        if first:
            private = not address.is_global
        elif not address.is_global and not private:
            raise _No("it leads into a private network")
        answer = _get(parts, str(address), question, deadline)
        deadline.left()  # what was cut off looks like the end of an answer
        if answer.status not in (301, 302, 303, 307, 308) or answer.location is None:
            return answer
        url, first = urljoin(url, answer.location), False
    raise _No(f"it leads on more than {REDIRECTS} times")


class Deadline:
    """Ends whatever a socket waits for when the time is up: a server that drips bytes never runs into a timeout."""

    def __init__(self, seconds: float) -> None:
        self._sockets: list[socket.socket] = []
        self._over = False
        self._guard = threading.Lock()
        self._until = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def watch(self, connection: socket.socket) -> None:
        """End this one too. Raises TimeoutError when the time is up already."""
        with self._guard:
            if self._over:
                raise TimeoutError
            self._sockets.append(connection)

    @property
    def over(self) -> bool:
        """Whether the time is up: a socket that was ended for it fails as if the server had."""
        with self._guard:
            return self._over or time.monotonic() >= self._until

    def left(self) -> float:
        """Seconds until it ends. Raises TimeoutError when the time is up."""
        left = self._until - time.monotonic()
        if self.over or left <= 0:
            raise TimeoutError
        return left

    def end(self) -> None:
        """The time is up: now."""
        with self._guard:
            self._over = True
            for connection in self._sockets:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # it is closed


def _address(parts: SplitResult) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that will be asked: looked up once, so that what was checked is what is connected to."""
    host = parts.hostname or ""
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError) as error:
        raise _No(f"{host} has no address: {error}") from None
    addresses = [ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found]
    inner = [each for each in addresses if not each.is_global]
    return inner[0] if inner else addresses[0]


def _get(parts: SplitResult, address: str, question: _Question, deadline: Deadline) -> _Answer:
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if any(ord(char) < 33 or ord(char) > 126 for char in path):
        raise _No("its path is not one that is sent")
    connected = socket.create_connection((address, port), timeout=deadline.left())
    try:
        deadline.watch(connected)
        if parts.scheme == "https":
            connected = ssl.create_default_context().wrap_socket(connected, server_hostname=host)
            deadline.watch(connected)
        connection = http.client.HTTPConnection(host, port)
        connection.sock = connected
        headers = {"User-Agent": "onward", "Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close"}
        connection.request("GET", path, headers=headers | question.headers)
        response = connection.getresponse()
        wanted = question.hashes and 200 <= response.status < 300
        digest = _body(response) if wanted else None
        return _Answer(
            response.status,
            response.getheader("ETag"),
            response.getheader("Last-Modified"),
            response.getheader("Location"),
            digest,
            wanted and digest is None,
        )
    finally:
        connected.close()


def _sendable(value: str) -> bool:
    return value.isascii() and value.isprintable() and len(value) < 1_000


def _body(response: http.client.HTTPResponse) -> str | None:
    """The digest of a body; None where it is too large. Raises HTTPException where it ends early."""
    if response.length is not None and response.length > LARGEST:
        return None
    whole, left = sha256(), LARGEST + 1
    while left > 0 and (part := response.read(min(left, 1 << 16))):
        whole.update(part)
        left -= len(part)
    if left > 0 and response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return whole.hexdigest() if left > 0 else None

"""Pages: asked of a real server on the loopback, and only when somebody wants that."""

from __future__ import annotations

import ipaddress
import signal
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from onward.evidence import urls
from onward.evidence.checking import check
from onward.evidence.judging import Judged
from onward.evidence.observation import Observation, Response, Subject
from onward.evidence.pages import check_pages
from onward.evidence.scope import Scope

BODY = b"<p>hello</p>"
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
asked: list[tuple[str, dict[str, str]]] = []
hold = threading.Event()


class Crowd:
    """Lets requests go on only in pairs, and knows how many there were at a time."""

    def __init__(self) -> None:
        self.pair = threading.Barrier(2, timeout=10)
        self.guard = threading.Lock()
        self.now = self.most = 0

    def __call__(self) -> None:
        with self.guard:
            self.now += 1
            self.most = max(self.most, self.now)
        self.pair.wait()
        with self.guard:
            self.now -= 1


crowd = Crowd()


class Handler(BaseHTTPRequestHandler):
    """A server with a page for each thing that servers do."""

    def do_GET(self) -> None:
        asked.append((self.path, dict(self.headers)))
        match self.path:
            case "/etag":
                same = self.headers.get("If-None-Match") == '"new"'
                self._send(304 if same else 200, ETag='"new"')
            case "/date":
                self._send(304 if self.headers.get("If-Modified-Since") == DATE else 200, **{"Last-Modified": DATE})
            case "/plain":
                self._send(200)
            case "/always":
                self._send(304)
            case path if path.startswith("/gone"):
                self._send(410)
            case "/broken":
                self._send(503)
            case "/short":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + BODY)
            case "/on":
                self._send(302, Location="/etag")
            case "/round":
                self._send(302, Location="/round")
            case "/file":
                self._send(302, Location="file:///etc/passwd")
            case "/large":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (urls.LARGEST + 1) + BODY)
            case "/endless":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(urls.LARGEST + 1))
            case path if path.startswith("/crowd"):
                crowd()
                self._send(200, ETag='"new"')
            case path if path.startswith("/hold"):
                hold.wait(10)
            case path if path.startswith("/interrupt"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                hold.wait(10)
            case "/slow":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                for _ in range(100):
                    time.sleep(0.02)
                    self.wfile.write(b"X: y\r\n")

    def _send(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        body = BODY if status == 200 else b""
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """Says nothing of clients that went away."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def judged(url: str, then: Response) -> Judged:
    answers, note = check_pages([(0, url, then)])
    assert note is None
    return answers[0]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


CASES: tuple[tuple[str, Response, str], ...] = (
    ("/etag", Response(200, '"new"'), "fresh"),
    ("/etag", Response(200, 'W/"new"'), "fresh"),
    ("/etag", Response(200, '"old"'), "stale"),
    ("/date", Response(200, last_modified=DATE), "fresh"),
    ("/date", Response(200, last_modified="Wed, 31 Dec 2025 00:00:00 GMT"), "stale"),
    ("/plain", Response(200, sha256=sha256(BODY).hexdigest()), "fresh"),
    ("/plain", Response(200, sha256="0" * 64), "stale"),
    ("/plain", Response(200), "unverifiable"),
    ("/always", Response(200, '"old"'), "fresh"),
    ("/always", Response(200, sha256="0" * 64), "unverifiable"),  # nobody asked whether it is the same
    ("/short", Response(200, sha256=sha256(BODY).hexdigest()), "unverifiable"),
    ("/gone", Response(200, '"old"'), "missing"),
    ("/gone", Response(410), "fresh"),
    ("/broken", Response(200, '"old"'), "unverifiable"),
    ("/on", Response(200, '"new"'), "fresh"),
    ("/round", Response(200, '"new"'), "unverifiable"),
    ("/file", Response(200, '"new"'), "unverifiable"),
    ("/a b", Response(200, '"new"'), "unverifiable"),
)


@pytest.mark.parametrize(("path", "then", "status"), CASES)
def test_a_page_holds_as_its_server_says(server: str, path: str, then: Response, status: str) -> None:
    assert judged(server + path, then).status == status


def test_no_server_is_asked_unless_somebody_wants_it(server: str, tmp_path: Any) -> None:
    asked.clear()
    where = Scope(str(tmp_path), str(tmp_path), str(tmp_path))
    seen = Observation(0, Subject("url", f"{server}/etag"), "looked", "fetch", Response(200, '"new"'))
    (finding,) = check([seen], where).findings
    assert (finding.status, asked) == ("unverifiable", [])
    (finding,) = check([seen], where, check_urls=True).findings
    assert (finding.status, len(asked)) == ("fresh", 1)


def test_credentials_of_a_recorded_address_are_not_sent(server: str) -> None:
    asked.clear()
    judged(server.replace("//", "//ann:secret@") + "/etag", Response(200, '"new"'))
    ((_, headers),) = asked
    assert "secret" not in str(headers) and "Authorization" not in headers and "Cookie" not in headers


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "x", "http://[", "http://127.0.0.1:x/"]
)
def test_what_is_no_page_is_not_asked_for(url: str) -> None:
    assert judged(url, Response(200)).status == "unverifiable"


def test_a_public_page_does_not_lead_into_a_private_network(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = server.rpartition(":")[2]
    real, connect = urls._address, urls.socket.create_connection
    public = ipaddress.ip_address("8.8.8.8")
    monkeypatch.setattr(urls, "_address", lambda parts: public if parts.hostname == "example.org" else real(parts))
    monkeypatch.setattr(
        urls.socket, "create_connection", lambda address, timeout: connect(("127.0.0.1", address[1]), timeout)
    )
    monkeypatch.setattr(Handler, "do_GET", lambda self: self._send(302, Location=f"http://127.0.0.1:{port}/etag"))
    found = judged(f"http://example.org:{port}/x", Response(200, '"new"'))
    assert (found.status, found.note) == ("unverifiable", "it leads into a private network")


def test_a_server_that_drips_is_given_up(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "SECONDS", 0.2)
    found = judged(f"{server}/slow", Response(200, '"new"'))
    assert (found.status, found.now, found.note) == ("unverifiable", "no answer", "none came in time")


@pytest.mark.parametrize("path", ["/large", "/endless"])
def test_of_a_page_too_large_to_hash_that_is_said(server: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urls, "LARGEST", 1 << 20)
    found = judged(server + path, Response(200, sha256="0" * 64))
    assert (found.status, found.note) == ("unverifiable", "the page is larger than 1 MiB: too large to be hashed")


# --- the pages of a session ---------------------------------------------------------------------------------------


def test_a_page_is_asked_for_once_and_judged_by_what_each_look_saw(server: str) -> None:
    asked.clear()
    digest = Response(200, sha256=sha256(BODY).hexdigest())
    seen = [Response(200, '"old"'), Response(200, '"new"'), digest]
    answers, note = check_pages([(7 + at, f"{server}/etag#part-{at}", then) for at, then in enumerate(seen)])
    assert ({at: one.status for at, one in answers.items()}, note) == ({7: "stale", 8: "fresh", 9: "fresh"}, None)
    ((_, headers),) = asked
    assert "If-None-Match" not in headers  # what one of them knew says nothing of the others


@pytest.mark.parametrize("bounds", [{"at_once": 2, "per_host": 9}, {"at_once": 9, "per_host": 2}])
def test_several_pages_are_asked_for_at_a_time_few_of_one_host(server: str, bounds: dict[str, int]) -> None:
    crowd.most = 0
    answers, _ = check_pages([(at, f"{server}/crowd/{at}", Response(200, '"new"')) for at in range(6)], **bounds)
    assert ({one.status for one in answers.values()}, crowd.most) == ({"fresh"}, 2)


def test_beyond_a_number_of_pages_those_looked_at_first_are_left_out_and_counted(server: str) -> None:
    asked.clear()
    answers, note = check_pages([(at, f"{server}/gone?{at}", Response(410)) for at in range(5)], most=2)
    assert sorted(path for path, _ in asked) == ["/gone?3", "/gone?4"]
    assert [answers[at].now for at in range(5)] == ["not asked"] * 3 + ["HTTP 410"] * 2
    assert note == "3 pages beyond the 2 looked at last were not asked for"


def test_when_the_time_is_up_the_pages_left_are_counted(server: str) -> None:
    hold.clear()
    answers, note = check_pages([(at, f"{server}/hold/{at}", Response(200)) for at in range(5)], seconds=0.2)
    hold.set()
    assert [answers[at].now for at in range(5)] == ["not asked"] * 3 + ["no answer"] * 2
    assert note == "3 pages could not be asked for within 0.2 seconds"


def test_an_interrupt_ends_it_and_what_was_asked_is_not_waited_for(server: str) -> None:
    hold.clear()
    asked.clear()
    with pytest.raises(KeyboardInterrupt):
        check_pages([(at, f"{server}/interrupt/{at}", Response(200)) for at in range(5)], per_host=1)
    for thread in threading.enumerate():
        if thread.name == "onward-page":
            thread.join(5)
            assert not thread.is_alive()
    hold.set()
    assert len(asked) == 1

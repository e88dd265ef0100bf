"""Pages: asked of a real server on the loopback, and only when somebody wants that."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from onward.evidence import urls
from onward.evidence.checking import check
from onward.evidence.observation import Observation, Response, Subject
from onward.evidence.scope import Scope
from onward.evidence.urls import check_url

BODY = b"<p>hello</p>"
DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
asked: list[tuple[str, dict[str, str]]] = []


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
            case "/gone":
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
    assert check_url(server + path, then).status == status


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
    check_url(server.replace("//", "//ann:secret@") + "/etag", Response(200, '"new"'))
    ((_, headers),) = asked
    assert "secret" not in str(headers) and "Authorization" not in headers and "Cookie" not in headers


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://", "x", "http://[", "http://127.0.0.1:x/"]
)
def test_what_is_no_page_is_not_asked_for(url: str) -> None:
    assert check_url(url, Response(200)).status == "unverifiable"


def test_a_public_page_does_not_lead_into_a_private_network(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = server.rpartition(":")[2]
    real, connect = urls._address, urls.socket.create_connection
    public = ipaddress.ip_address("8.8.8.8")
    monkeypatch.setattr(urls, "_address", lambda parts: public if parts.hostname == "example.org" else real(parts))
    monkeypatch.setattr(
        urls.socket, "create_connection", lambda address, timeout: connect(("127.0.0.1", address[1]), timeout)
    )
    monkeypatch.setattr(Handler, "do_GET", lambda self: self._send(302, Location=f"http://127.0.0.1:{port}/etag"))
    judged = check_url(f"http://example.org:{port}/x", Response(200, '"new"'))
    assert (judged.status, judged.note) == ("unverifiable", "it leads into a private network")


def test_a_server_that_drips_is_given_up(server: str) -> None:
    judged = check_url(f"{server}/slow", Response(200, '"new"'), seconds=0.2)
    assert (judged.status, judged.now) == ("unverifiable", "no answer")

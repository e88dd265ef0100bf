"""What is taken out of text and JSON, what is left alone, and that the same thing always gets the same placeholder."""

from __future__ import annotations

import zlib
from base64 import b64encode
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.redaction.detectors import installed
from onward.redaction.pictures import bare
from onward.redaction.redactor import Redactor
from pages import PNG

# Pieces are joined at run time, so that no scanner takes this file for a leak.
GITHUB = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
ANTHROPIC = "sk-" + "ant-api03-" + "Ab3dEf6hIj9lMn2pQr5tUv8x-Yz1_Cd4fGh7j"
OPENAI = "sk-" + "proj-" + "q9W8e7R6t5Y4u3I2o1P0aSdFgHjKlZxC"
AWS = "AK" + "IAQ3EGZTRW5KLM7NPX"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCY3xAmPl3K3y"
SLACK = "xox" + "b-123456789012-abcdefGHIJKLmnop"
JWT = "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
KEY = (
    "-----BEGIN OPENSSH PRIVATE"
    + " KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz\n-----END OPENSSH PRIVATE"
    + " KEY-----"
)
RANDOM = "Zk3vQ9xT1bL7mW5nR2yC8pD4sF6gH0jK"

SECRETS: list[tuple[str, str]] = [
    (f"use {GITHUB} now", GITHUB),
    ("github_" + "pat_11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz", "11ABCDEFG0123456789"),
    (f"key={ANTHROPIC}", ANTHROPIC),
    (f"({OPENAI})", OPENAI),
    (f"id {AWS}.", AWS),
    (f"aws_secret_access_key = {AWS_SECRET}", AWS_SECRET),
    (f"it is {AWS_SECRET} here", AWS_SECRET),
    (SLACK, SLACK),
    ("https://hooks.slack.com/services/T00000000/B00000000/abcdefghijkl", "abcdefghijkl"),
    ("AI" + "zaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "SyA1b2C3d4E5f6"),
    ("sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyjWDarjtT1zdp7dc"),
    ("gl" + "pat-abcdEFGH1234ijklMNOP", "abcdEFGH1234ijklMNOP"),
    ("npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "a1B2c3D4e5F6g7H8i9J0"),
    (JWT, "dozjgNryP4J3jVmNHl0w5N"),
    (f"before\n{KEY}\nafter", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"),
    (KEY.replace("\n", "\\n"), "AAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz"),
    (KEY[:80], "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"),
    ("Authorization: Bearer abcdef-ghijkl", "abcdef-ghijkl"),
    ("curl -H 'authorization: token zyxwvuts'", "zyxwvuts"),
    ("Bearer 0123456789abcdef", "0123456789abcdef"),
    ("Set-Cookie: session=verysecretvalue; Path=/", "verysecretvalue"),
    ("postgres://app:s3cr3t-word@db.example.org:5432/x", "s3cr3t-word"),
    ("https://user:p@ss@host/path", "p@ss"),
    ("password=hunter2", "hunter2"),
    ("PASSWORD=correcthorse", "correcthorse"),
    ("password=correcthorse", "correcthorse"),
    ("DB_PASSWORD: 'correct horse'".replace(" horse", "horse"), "correcthorse"),
    ('{"api_key": "abcdefgh"}', "abcdefgh"),
    ('{\\"client_secret\\": \\"q1w2e3r4t5\\"}', "q1w2e3r4t5"),
    ("export GITHUB_TOKEN=abc123def456", "abc123def456"),
    ("mysql --password hunter22", "hunter22"),
    ("login --token=abc-123-xyz", "abc-123-xyz"),
    ("curl -u alice:wonderland1 http://x", "wonderland1"),
    ("pin_passcode: 4711", "4711"),
    ("GET /x?sig=AbCdEfGh12345678&a=1", "AbCdEfGh12345678"),
    (f"nothing says what {RANDOM} is", RANDOM),
    ("Mail bob.smith+x@mail.example.co.uk!", "bob.smith"),
    ("in /home/alice/project", "alice"),
    ("in /Users/alice.b/project", "alice"),
    ("C:\\Users\\Alice Smith\\x and c:/Users/alice/y", "Alice Smith"),
    ('"C:\\\\Users\\\\alice\\\\x"', "alice"),
    ("/mnt/c/Users/alice/x", "alice"),
    ("file:///home/alice/x", "alice"),
    (".claude/projects/-home-alice-project/x.jsonl", "alice"),
    ("a <private>my salary</private> b", "salary"),
    ("a <PRIVATE>one <private>two</private> three</private> b", "three"),
    ("a <private>never closed", "never closed"),
]

HARMLESS = [
    "the token: string is required",
    "password = getPassword()",
    "const token = await login(user);",
    "api_key=os.environ['API_KEY']",
    "token=token, secret=self.secret",
    "max_tokens: 4096, tokens=12345, token_count: 17",
    'password: "string"',
    "Please enter your password: then press return",
    "GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }} and PASSWORD=$PASSWORD and --token <token>",
    "commit 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
    "id 123e4567-e89b-12d3-a456-426614174000 and toolu_01A09q90qw90lq917835lq9",
    "src/components/UserProfileCard/index.test.tsx",
    "/usr/lib/python3.11/site-packages/requests/adapters.py",
    "git@github.com:onward/onward.git and pip install package@1.2.3",
    "https://example.org/home/page and /usr/home",
    "GET https://example.org:8080/path@1",
    "rollout-2025-09-25T15-12-14-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl",
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "privateKeyPath and PRIVATE KEY in a sentence",
    "the-quick-brown-fox-jumps-over-the-lazy-dog-2024-11-30",
]


def taken(text: Any) -> Any:
    redactor = Redactor(installed())
    redactor.learn(text)
    return redactor.value(text)


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[secret for _, secret in SECRETS])
def test_a_secret_is_taken_out_of_text(text: str, secret: str):
    assert secret in text
    assert secret not in taken(text)


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[secret for _, secret in SECRETS])
def test_our_own_rules_find_it_without_other_detectors(text: str, secret: str):
    redactor = Redactor()
    redactor.learn(text)
    assert secret not in redactor.text(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_is_left_alone(text: str):
    assert taken(text) == text


@pytest.mark.parametrize("text", [text for text, _ in SECRETS], ids=[secret for _, secret in SECRETS])
def test_what_was_redacted_once_stays_as_it_is(text: str):
    once = taken(text)
    assert taken(once) == once


def test_what_stands_around_a_secret_stays():
    assert taken(f"use {GITHUB} now") == "use [secret-1] now"
    assert taken("postgres://app:s3cr3t-word@db/x") == "postgres://app:[secret-1]@db/x"
    assert taken("in /home/alice/project") == "in ~/project"
    assert taken("C:\\Users\\Alice Smith\\x") == "~\\x"
    assert taken("a <private>x <private>y</private></private> b") == "a [private-1] b"


def test_the_same_secret_gets_the_same_placeholder_and_another_another():
    redactor = Redactor()
    assert redactor.text(f"{GITHUB} {AWS} {GITHUB}") == "[secret-1] [secret-2] [secret-1]"
    assert redactor.value({"a": [AWS]}) == {"a": ["[secret-2]"]}
    assert redactor.text("a@b.org c@d.org a@b.org") == "[email-1] [email-2] [email-1]"


def test_a_password_that_its_place_tells_is_taken_out_wherever_else_it_stands():
    value = [
        "it worked with swordfish!",
        {"swordfish": "x"},
        "password=swordfish",
        "<private>the plan</private>",
        "the plan",
    ]
    assert taken(value) == [
        "it worked with [secret-1]!",
        {"[secret-1]": "x"},
        "password=[secret-1]",
        "[private-1]",
        "[private-2]",
    ]


def test_a_value_is_secret_because_of_the_name_of_its_field():
    value = {
        "password": "correcthorse",
        "apiKey": "abcdefgh",
        "x-api-key": "q-q-q-q",
        "headers": {"Authorization": "abcdefg"},
        "env": [{"name": "DB_PASSWORD", "value": "batterystaple"}],
        "secrets": 3,
        "token": "string",
        "tokens": "many",
    }
    out = taken(value)
    for secret in ("correcthorse", "abcdefgh", "q-q-q-q", "abcdefg", "batterystaple"):
        assert secret not in str(out)
    assert (out["secrets"], out["token"], out["tokens"], out["env"][0]["name"]) == (3, "string", "many", "DB_PASSWORD")


def test_keys_that_become_the_same_stay_apart():
    assert taken({"/home/a/x": 1, "/home/b/x": 2}) == {"~/x": 1, "~/x'": 2}


def test_pieces_of_streams_lose_their_words_because_a_secret_may_lie_over_two():
    value = [
        {"type": "text-delta", "index": 0, "text": GITHUB[:8]},
        {"type": "text-chunks", "data": {"dt": [1], "texts": [GITHUB[:8], GITHUB[8:]]}},
    ]
    assert taken(value) == [
        {"type": "text-delta", "index": 0, "text": ""},
        {"type": "text-chunks", "data": {"dt": [1], "texts": ["", ""]}},
    ]


def test_signatures_and_documents_that_nobody_can_look_through_are_left_out():
    sealed = b64encode(Random(1).randbytes(400)).decode()
    out = taken(
        {
            "signature": sealed,
            "encrypted_content": sealed,
            "data": sealed,
            "url": f"data:application/pdf;base64,{sealed}",
        }
    )
    assert out == {"signature": "", "encrypted_content": "", "data": "", "url": "data:application/pdf;base64,"}
    assert taken({"signature": "def f(a, b)"}) == {"signature": "def f(a, b)"}


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


SECRET = b"made by alice"
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0%s\xff\xda\x00\x04ab\x12\x34\xff\xd9"
GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff%s\x2c\0\0\0\0\1\0\1\0\0\2\2\x44\1\0\x3b"
WEBP_BODY = (
    b"WEBPVP8X" + (10).to_bytes(4, "little") + bytes([8]) + bytes(9) + b"VP8L" + (2).to_bytes(4, "little") + b"ab%s"
)
PICTURES = {
    "png": (PNG[:33] + chunk(b"tEXt", b"Author\0" + SECRET) + PNG[33:], PNG),
    "jpeg comment": (JPEG % (b"\xff\xfe" + (len(SECRET) + 2).to_bytes(2, "big") + SECRET), JPEG % b""),
    "jpeg exif": (JPEG % (b"\xff\xe1" + (len(SECRET) + 2).to_bytes(2, "big") + SECRET), JPEG % b""),
    "gif": (GIF % (b"\x21\xfe" + bytes([len(SECRET)]) + SECRET + b"\0"), GIF % b""),
    "webp": (
        b"RIFF\0\0\0\0" + WEBP_BODY % (b"EXIF" + len(SECRET).to_bytes(4, "little") + SECRET + b"\0"),
        b"RIFF" + len(WEBP_BODY % b"").to_bytes(4, "little") + (WEBP_BODY % b"").replace(b"\x08" + bytes(9), bytes(10)),
    ),
}


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_loses_its_metadata_and_nothing_else(kind: str):
    marked, plain = PICTURES[kind]
    assert SECRET in marked and bare(marked) == plain == bare(plain)
    encoded = b64encode(marked + bytes(0)).decode()
    if len(encoded) >= 60:
        assert taken({"data": encoded, "mimeType": "image/png"})["data"] == b64encode(plain).decode()


@given(st.sampled_from([marked for marked, _ in PICTURES.values()]), st.data())
def test_a_broken_picture_is_no_picture_or_ends(marked: bytes, data: st.DataObject):
    cut = data.draw(st.integers(0, len(marked)))
    at = data.draw(st.integers(0, len(marked) - 1))
    bare(marked[:cut])
    bare(marked[:at] + bytes([data.draw(st.integers(0, 255))]) + marked[at + 1 :])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.sampled_from([text for text, _ in SECRETS]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(item) for item in value.values()]
    return [shape(item) for item in value] if isinstance(value, list) else type(value)


@given(JSON)
def test_the_structure_of_json_stays(value: Any):
    assert shape(taken(value)) == shape(value)


@pytest.mark.parametrize(
    "text",
    [
        "password" * 20_000,
        "a" * 300_000,
        "a.b@" * 50_000,
        "://:" * 50_000,
        "<private>" * 20_000,
        "token = " * 30_000,
        "-----BEGIN PRIVATE KEY-----" * 3_000,
        "eyJ" * 60_000,
        "/home/" * 40_000,
        "aA1" * 80_000,
    ],
)
def test_no_text_takes_long(text: str):
    import time

    start = time.process_time()
    Redactor(None).text(text)
    assert time.process_time() - start < 5

"""What is looked for in text: one table of patterns. A pattern's first group is what is taken out, else all of it.

The token shapes are those that their issuers publish. `hints` are lower-case strings of which a text must hold one
before the pattern is tried, because a session is long and most patterns are rare.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """A kind of secret and how it looks."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...]


_BEFORE, _AFTER = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"

PLACEHOLDER = re.compile(r"\[(?:secret|private|email|user|host)-\d+\]")

_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|secret|token(?!s|i[sz]|_?count|_?limit|_?usage)|api[_.-]?key|access[_.-]?key(?![_.-]?id)"
    r"|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|account[_.-]?key|credentials?|authkey|auth[_.-]?key)"
)
_QUOTES = r"""["'\\`]{0,6}"""

SENSITIVE_NAME = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase|code)|pwd|secret|token|(?:api|access|private|signing|encryption|account|auth)[_.\s-]?key"
    r"|authorization|credentials?|cookie)(?:[_.-]?(?:value|hash|text|base64|b64|raw|\d+))?$"
)
"""Names of settings, headers and arguments whose value is a secret."""

ASSIGNED = re.compile(
    rf"(?i)(?P<name>{_NAME}[\w.-]{{0,24}})(?P<sign>{_QUOTES}\s{{0,4}}(?::=|=>|[:=])\s{{0,4}}|\s{{1,2}}(?=[^\s=:]))"
    rf"(?P<quote>{_QUOTES})(?P<value>[^\s\"'`\\,;&<>(){{}}|]{{4,400}})(?P<after>[(]?)"
)
"""A name of a secret, a sign, a value; a blank as the sign counts for options of commands only."""

STEMS = re.compile("pass|pwd|secret|token|api|access|private|signing|encryption|account|credential|auth")
"""How the names in `ASSIGNED` begin, in lower case: looking for these first is ten times as fast."""

RULES = (
    Rule(
        "aws-key",
        re.compile(rf"{_BEFORE}(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{{16}}{_AFTER}"),
        ("akia", "asia", "abia", "acca", "aroa", "aida"),
    ),
    Rule(
        "github-token",
        re.compile(rf"{_BEFORE}(?:gh[pousr]_[A-Za-z0-9]{{30,255}}|github_pat_[A-Za-z0-9_]{{22,255}})"),
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    Rule(
        "gitlab-token",
        re.compile(rf"{_BEFORE}gl(?:pat|dt|ft|soat|rt|cbt|ptt)-[A-Za-z0-9_-]{{20,300}}"),
        ("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-"),
    ),
    Rule(
        "model-provider-key",
        re.compile(
            rf"{_BEFORE}(?:sk-(?=[A-Za-z_-]{{0,80}}\d)[A-Za-z0-9_-]{{20,400}}|gsk_[A-Za-z0-9]{{30,100}}|xai-[A-Za-z0-9]{{40,120}}|hf_[A-Za-z0-9]{{30,60}}|r8_[A-Za-z0-9]{{30,60}}|pplx-[A-Za-z0-9]{{30,80}})"
        ),
        ("sk-", "gsk_", "xai-", "hf_", "r8_", "pplx-"),
    ),
    Rule(
        "slack-token",
        re.compile(
            rf"{_BEFORE}(?:xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{{10,250}}|xapp-[A-Za-z0-9-]{{10,250}})|hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9_/]{{10,200}})"
        ),
        ("xox", "xapp-", "hooks.slack.com"),
    ),
    Rule(
        "google-key",
        re.compile(
            rf"{_BEFORE}(?:AIza[A-Za-z0-9_-]{{35}}|ya29\.[A-Za-z0-9_-]{{20,500}}|GOCSPX-[A-Za-z0-9_-]{{20,60}})"
        ),
        ("aiza", "ya29.", "gocspx-"),
    ),
    Rule(
        "stripe-key",
        re.compile(rf"{_BEFORE}(?:[rsp]k_(?:live|test)_[A-Za-z0-9]{{16,250}}|whsec_[A-Za-z0-9+/=]{{20,100}})"),
        ("k_live_", "k_test_", "whsec_"),
    ),
    Rule(
        "package-token",
        re.compile(
            rf"{_BEFORE}(?:npm_[A-Za-z0-9]{{36}}|pypi-[A-Za-z0-9_-]{{50,400}}|dckr_pat_[A-Za-z0-9_-]{{20,60}}|rubygems_[a-f0-9]{{40,60}})"
        ),
        ("npm_", "pypi-", "dckr_pat_", "rubygems_"),
    ),
    Rule(
        "service-token",
        re.compile(
            rf"{_BEFORE}(?:SG\.[A-Za-z0-9_-]{{16,40}}\.[A-Za-z0-9_-]{{16,60}}|do[opr]_v1_[a-f0-9]{{64}}|dapi[a-f0-9]{{32}}|shp(?:at|ss|pa|ca)_[A-Fa-f0-9]{{32}}|lin_api_[A-Za-z0-9]{{32,60}}|ntn_[A-Za-z0-9]{{40,60}}|sntry[su]_[A-Za-z0-9+/=_-]{{30,300}}|AGE-SECRET-KEY-1[A-Z0-9]{{50,70}}|hvs\.[A-Za-z0-9_-]{{24,200}})"
        ),
        ("sg.", "_v1_", "dapi", "shp", "lin_api_", "ntn_", "sntry", "age-secret", "hvs."),
    ),
    Rule(
        "jwt",
        re.compile(rf"{_BEFORE}eyJ[A-Za-z0-9_=-]{{8,4000}}\.[A-Za-z0-9_=-]{{8,8000}}(?:\.[A-Za-z0-9_=-]{{0,4000}})?"),
        ("eyj",),
    ),
    Rule(
        "authorization",
        re.compile(
            rf"""(?i)\b(?:proxy-)?authorization{_QUOTES}\s{{0,4}}[:=]\s{{0,4}}{_QUOTES}(?:(?:bearer|basic|token|digest|apikey|negotiate)\s{{1,4}})?([^\s"'\\,;]{{6,8000}})"""
        ),
        ("authorization",),
    ),
    Rule(
        "authorization",
        re.compile(r"(?i)\b(?:bearer|basic)\s{1,4}((?=[A-Za-z._~+/=-]{0,200}\d)[A-Za-z0-9._~+/=-]{12,8000})"),
        ("bearer", "basic"),
    ),
    Rule(
        "cookie",
        re.compile(rf"""(?i)\b(?:set-)?cookie{_QUOTES}\s{{0,4}}:\s{{0,4}}{_QUOTES}([^"'\r\n\\]{{6,8000}})"""),
        ("cookie",),
    ),
    Rule("password-in-url", re.compile(r"""(?<=://)[^\s/:@"'<>]{0,256}:([^\s/"'<>]{1,256})@"""), ("://",)),
    Rule(
        "password", re.compile(r"""(?:^|\s)(?:-u|--user)[ =]["']?[^\s:"']{1,100}:([^\s"']{4,200})"""), ("-u", "--user")
    ),
    Rule(
        "key-in-url",
        re.compile(
            r"(?i)[?&](?:key|sig|signature|code|auth|x-amz-signature|x-amz-credential|x-amz-security-token)=([^&\s\"'<>#\\]{8,4000})"
        ),
        ("?", "&"),
    ),
)
"""Secrets that can be told by their shape or by what stands before them."""

CONTEXTUAL = frozenset({"authorization", "cookie", "password-in-url", "key-in-url", "password", "private"})
"""Kinds that only what stands around them tells: once found, they are looked for by their own text everywhere."""

KEY_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:[\s\S]{0,20000}?-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\:,.-]{0,20000})"
)
"""A private key, and one whose end was cut off."""

EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?!git@)[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)

HOMES = (
    re.compile(
        r"(?:(?<![\w.~-])(?:/var|/export|/usr|/mnt/[a-z]|/[a-z]|/cygdrive/[a-z])?)/(?:home|Users)/(?!Shared\b)"
        r"[^\s/\\:;,\"'`<>|()\[\]{}*?$&%]{1,64}"
    ),
    re.compile(
        r"(?<![A-Za-z])[A-Za-z]:(?:\\{1,4}|/)(?i:Users|Documents and Settings)(?:\\{1,4}|/)"
        r"(?:[^\\/:*?\"<>|\r\n]{1,64}(?=[\\/])|[^\s\\/:*?\"'<>|,;]{1,64})"
    ),
    re.compile(r"(?<![\w.-])-(?:home|Users)-[A-Za-z0-9_.]{1,64}(?=-|/|\b)"),
)
"""Home directories: of Unix, of Windows, and as some agents write them into the names of folders."""

HOME_NAMES = re.compile(r"(?i)(?:home|users|settings)[\\/-]+(?:runner|user|username|you|me|name|\$\w+|\.\.\.|~)$")
"""Homes that are nobody's."""

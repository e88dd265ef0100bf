"""The detectors of detect-secrets, where it is installed (`onward[redact]`), beside our own rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec

Detector = Callable[[str], Iterable[tuple[str, str]]]
"""Gives (kind, secret) for each secret in a text."""

_PLUGINS = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
"""Module and class of each plugin that looks for tokens by their shape. Those that guess from words are our own."""


def installed() -> Detector | None:
    """A detector made of all of them; None where the package is not installed."""
    if find_spec("detect_secrets") is None:
        return None
    from importlib import import_module

    plugins = [getattr(import_module(f"detect_secrets.plugins.{name}"), kind)() for name, kind in _PLUGINS.items()]

    def detect(text: str) -> Iterable[tuple[str, str]]:
        for plugin in plugins:
            for secret in plugin.analyze_string(text):
                if secret:
                    yield plugin.secret_type.lower().replace(" ", "-"), secret

    return detect

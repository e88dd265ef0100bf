"""The command line: words in; a document for programs or text for people out. Only this package prints."""


def main() -> int:
    """The console script `onward`. Returns the exit code."""
    from onward.cli.app import console

    return console()


__all__ = ["main"]

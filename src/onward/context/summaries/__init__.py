"""Summaries that can be checked: what is to be stood for goes in, a text that cites its events comes out. No I/O.

`extract.extract` picks, `asking.summarise` asks a model, `supplied.checked` looks at one that was handed in.
Only `asking` waits, for a model that the caller hands in. Nothing here decides what is summarised, or writes to a log.
"""

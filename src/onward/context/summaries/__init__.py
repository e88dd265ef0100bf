"""Summaries that can be checked: what is to be stood for goes in, a text that cites its events comes out. No I/O.

Only `asking` waits, for a model that the caller hands in. Nothing here decides what is summarised, or writes to a log.
"""

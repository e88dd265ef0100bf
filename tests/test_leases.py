"""The contract of leases, put to both implementations."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from lease_contract import LeaseContract, ProcessContract, SharedClock
from onward.log.memory_leases import MemoryLeases, Shelf
from onward.log.sqlite_leases import SqliteLeases


class MemoryBench:
    def __init__(self) -> None:
        self.now = SharedClock()
        self.shelf = Shelf(clock=self.now)

    def open(self) -> MemoryLeases:
        return MemoryLeases(self.shelf)

    def wait(self, seconds: float) -> None:
        self.now.move(seconds)

    def set_back(self, seconds: float) -> None:
        self.now.move(-seconds)

    def put(self, writer: dict[str, Any], value: int) -> None:
        writer["values"] = [*writer.get("values", []), value]

    def values(self) -> list[int]:
        return list(self.shelf.data.get("values", []))


class SqliteBench:
    def __init__(self, path: Path, journal: str) -> None:
        self.now = SharedClock()
        self.path = path
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute("CREATE TABLE value (number INTEGER)")
        connection.close()

    def open(self) -> SqliteLeases:
        return SqliteLeases(self.path, clock=self.now)

    def wait(self, seconds: float) -> None:
        self.now.move(seconds)

    def set_back(self, seconds: float) -> None:
        self.now.move(-seconds)

    def put(self, writer: sqlite3.Connection, value: int) -> None:
        writer.execute("INSERT INTO value VALUES (?)", (value,))

    def values(self) -> list[int]:
        connection = sqlite3.connect(self.path)
        try:
            return [row[0] for row in connection.execute("SELECT number FROM value ORDER BY rowid")]
        finally:
            connection.close()


class TestMemoryLeases(LeaseContract):
    @pytest.fixture
    def bench(self) -> MemoryBench:
        return MemoryBench()


@pytest.mark.slow
class TestSqliteLeases(ProcessContract):
    @pytest.fixture(params=["DELETE", "WAL"])
    def bench(self, tmp_path: Path, request: pytest.FixtureRequest) -> SqliteBench:
        return SqliteBench(tmp_path / "app.db", request.param)

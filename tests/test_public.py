"""What `import onward` offers: every name that it promises, and nothing loaded before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import onward


@pytest.mark.parametrize("name", onward.__all__)
def test_every_public_name_is_there_and_is_the_one_of_its_module(name: str):
    found = getattr(onward, name)
    assert getattr(found, "__name__", name) in (name, f"onward.{name}")


def test_a_name_that_is_not_there_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="no attribute 'Sesion'"):
        _ = onward.Sesion  # type: ignore[attr-defined]


def test_importing_onward_loads_nothing_else_and_errors_are_there_at_once():
    code = (
        "import sys, onward; assert 'msgspec' not in sys.modules and 'onward.store' not in sys.modules;"
        "assert issubclass(onward.errors.NotFound, onward.OnwardError)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_session_can_be_imported_with_the_public_names_alone(tmp_path):
    from onward.cli.demo_data import pi_session

    (tmp_path / "pi.jsonl").write_bytes(pi_session("/w"))
    with onward.Store(tmp_path / "home") as store:
        done = onward.import_file(store, tmp_path / "pi.jsonl")
        with store.open(done.session, write=False) as session:
            assert isinstance(session, onward.View) and len(session.context().messages) == done.messages

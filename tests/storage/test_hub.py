"""Whether the hub answers is known in two seconds, and its clients are told."""

import socket
import time

import pytest
from huggingface_hub import constants, is_offline_mode

from smmd_bench.storage.data_files import _ask_hub, with_hub
from tests.cli.hub import hub

__all__ = ["hub"]


@pytest.fixture
def at(monkeypatch):
    """Puts the hub at an address, as it is without HF_HUB_OFFLINE."""

    def put(address):
        _ask_hub.cache_clear()
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "ENDPOINT", address)

    return put


def test_a_hub_that_answers_is_used_and_asked_for_it_once(hub, at):
    at(hub.address)
    for _ in range(2):
        with with_hub() as why:
            assert why is None
            assert not is_offline_mode()
    assert len(hub.asked) == 1


def test_one_that_is_silent_is_left_alone_after_two_seconds(at):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        at(address)
        then = time.monotonic()
        with with_hub() as why:
            assert time.monotonic() - then < 10
            assert why.startswith(f"{address}: ")
            assert is_offline_mode()
        assert not is_offline_mode()


def test_who_wants_no_hub_is_not_asked_for_one(hub, at, monkeypatch):
    at(hub.address)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with with_hub() as why:
        assert why.startswith("HF_HUB_OFFLINE is set")
    assert hub.asked == []

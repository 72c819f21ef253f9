"""`smmd-bench prepare` with checkpoints: of a folder, and of a small hub on this machine."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from .conftest import call

TINY = Path(str(files("smmd_bench.models") / "builtin" / "tiny"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"
README = b"---\nlicense: mit\nlanguage: en\n---\n# A model\n"


class Hub(ThreadingHTTPServer):
    """What `snapshot_download` and `hf_hub_download` ask of a hub, for one owner's repositories."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        weights = {f.name: f.read_bytes() for f in TINY.iterdir() if f.suffix != ".yaml"}
        whole = {**weights, "README.md": README, "pytorch_model.bin": b"a pickle"}
        pickled = {k: v for k, v in whole.items() if not k.endswith(".safetensors")}
        self.repositories = {"someone/whole": whole, "someone/pickled": pickled}
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].strip("/")
        self.server.asked.append(path)
        for name, content in self.server.repositories.items():
            api, file = f"api/models/{name}", path.rpartition("/")[2]
            if path in (api, f"{api}/revision/main", f"{api}/revision/{COMMIT}"):
                siblings = [{"rfilename": file} for file in content]
                self._json({"id": name, "sha": COMMIT, "siblings": siblings, "private": False})
            elif path.startswith(f"{api}/tree/"):
                self._json(
                    [
                        {"type": "file", "path": file, "size": len(data), "oid": _digest(data)}
                        for file, data in content.items()
                    ]
                )
            elif path.startswith(f"{name}/resolve/") and file in content:
                headers = {"ETag": f'"{_digest(content[file])}"', "X-Repo-Commit": COMMIT}
                self._send(200, content[file], headers)
            else:
                continue
            return
        self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _json(self, content: Any) -> None:
        self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def _digest(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@pytest.fixture
def hub():
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def online(hub: Hub, home: Path) -> dict[str, str]:
    """The variables that point the hub's client at a server of this machine."""
    return {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "0",
        "HF_TOKEN": "",
        "NO_PROXY": "127.0.0.1",
    }


def test_a_checkpoint_is_fetched_once_and_never_its_pickle(hub, tmp_path):
    environment = online(hub, tmp_path)
    first = call("prepare", "arithmetic", "--model", "someone/whole", **environment)
    assert first.returncode == 0, first.stderr
    assert "arithmetic: nothing to fetch" in first.stdout
    said, folder = first.stdout.splitlines()[1:]
    assert said == "someone/whole: 1,108,608 weights in 1 safetensors file, 4.2 MiB, mit"
    there = {path.name for path in Path(folder.strip()).iterdir()}
    assert "model.safetensors" in there
    assert "pytorch_model.bin" not in there
    assert not any("pytorch_model" in path for path in hub.asked)

    hub.asked.clear()
    again = call("prepare", "--model", "someone/whole", **environment)
    assert again.stdout.splitlines() == [said, folder]
    assert not any("resolve" in path and "safetensors" in path for path in hub.asked)

    offline = call("prepare", "--model", "someone/whole", "-q", HF_HOME=str(tmp_path))
    assert (offline.returncode, offline.stdout) == (0, f"{folder.strip()}\n")


def test_a_plan_fetches_no_weights(hub, tmp_path):
    plan = ("train-eval", "--task", "arithmetic", "--losses", "ce", "--model", "someone/whole")
    sizes = ("--train-examples", "8", "--test-examples", "4", "--out", tmp_path / "run")
    out = call(*plan, *sizes, "--dry-run", **online(hub, tmp_path / "home"))
    assert out.returncode == 0, out.stderr
    assert "to do: train, decode, measure" in out.stdout
    assert not list((tmp_path / "home").rglob("*.safetensors"))
    assert any(path.endswith("model.safetensors") for path in hub.asked)  # its header
    whole = call("prepare", "--model", "someone/whole", "-q", **online(hub, tmp_path / "home"))
    assert whole.returncode == 0, whole.stderr
    assert list((tmp_path / "home").rglob("*.safetensors"))


def test_a_repository_of_pickles_is_refused(hub, tmp_path):
    out = call("prepare", "--model", "someone/pickled", "-q", **online(hub, tmp_path))
    assert out.returncode == 2
    (line,) = out.stderr.splitlines()
    assert line.startswith("Error: The model 'someone/pickled' has no *.safetensors on the hub")
    assert not any("pytorch_model" in path for path in hub.asked)


def test_a_local_checkpoint_and_a_built_in_one(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for file in TINY.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "README.md").write_bytes(README)
    out = call("prepare", "--model", folder, "--model", "builtin/tiny")
    assert out.returncode == 0, out.stderr
    mine, place, built_in, _ = out.stdout.splitlines()
    assert mine.endswith("1,108,608 weights in 1 safetensors file, 4.2 MiB, mit")
    assert place == f"  {folder}"
    assert built_in.endswith("Apache-2.0, part of smmd-bench")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Nothing to prepare"),
        (["--model", "./nowhere"], "does not exist"),
        (["--model", "someone/whole"], "cannot be fetched from the hub"),
        (["--model", "someone/whole"], "give a local folder"),
        (["arithmatic"], "did you mean arithmetic"),
    ],
)
def test_mistakes_are_one_sentence(arguments, words, tmp_path):
    out = call("prepare", *arguments, HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1")
    assert (out.returncode, out.stdout) == (2, "")
    (line,) = out.stderr.splitlines()
    assert words in line

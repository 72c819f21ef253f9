"""A small hub on this machine."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

TINY = Path(str(files("smmd_bench.models") / "builtin/tiny"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"
README = b"---\nlicense: mit\nlanguage: en\n---\n# A model\n"


class Hub(ThreadingHTTPServer):
    """What `snapshot_download` and `hf_hub_download` ask of a hub, for one owner's repositories."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        contents = {f.name: f.read_bytes() for f in TINY.iterdir()}
        del contents["card.yaml"]
        contents |= {"README.md": README, "pytorch_model.bin": b"a pickle"}
        self.repositories = {"someone/whole": contents}
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_port}"


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
                self._json(
                    {"id": name, "sha": COMMIT, "siblings": siblings, "private": False}
                )
            elif path.startswith(f"{api}/tree/"):
                self._json(
                    [
                        {
                            "type": "file",
                            "path": file,
                            "size": len(data),
                            "oid": _digest(data),
                        }
                        for file, data in content.items()
                    ]
                )
            elif path.startswith(f"{name}/resolve/") and file in content:
                headers = {
                    "ETag": f'"{_digest(content[file])}"',
                    "X-Repo-Commit": COMMIT,
                }
                self._send(200, content[file], headers)
            else:
                continue
            return
        self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    def _json(self, content: Any) -> None:
        self._send(
            200, json.dumps(content).encode(), {"Content-Type": "application/json"}
        )

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

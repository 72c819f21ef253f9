"""A CUDA build of torchvision on a CPU-only torch; a matching one, or none, is left alone."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(code, *options):
    """What a fresh Python prints, in which warnings are errors and no .pth file is read."""
    site = [p for p in sys.path if p.endswith("site-packages")]
    start = f"import sys; sys.path[:0] = {[str(Path.cwd()), *site]!r}\n"
    done = subprocess.run(
        [sys.executable, "-S", "-W", "error", *options, "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_processors_of_transformers_import_after_smmd_bench():
    pytest.importorskip("torchvision")
    code = """
    import smmd_bench
    assert not {"torch", "torchvision", "transformers"} & set(sys.modules)
    import torchvision, torch
    from torchvision.transforms.v2 import functional
    from transformers import MllamaProcessor, PixtralProcessor, Qwen2_5_VLProcessor
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor
    image = torch.zeros(3, 8, 8, dtype=torch.uint8)
    print(tuple(functional.resize(image, [4, 4]).shape), torchvision.__spec__.name)
    """
    assert run(code) == "(3, 4, 4) torchvision"


@pytest.fixture
def fake(tmp_path):
    """A package that is called torchvision and says whether its operators have a schema."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text(
        "import torch\nfound = hasattr(torch.ops.torchvision, 'nms')\n"
    )
    return tmp_path


def seen(folder, before=""):
    return run(
        f"""
        sys.path.insert(0, {str(folder)!r})
        import torch
        {before}
        import smmd_bench, smmd_bench.encoding.torchvision_schemas as watch
        watch.install()
        assert sum(type(f).__name__ == "_Finder" for f in sys.meta_path) == 1
        import torchvision
        print(torchvision.found)
        """
    )


def test_schemas_are_defined_where_the_binary_cannot_load(fake):
    (fake / "torchvision" / "_C.so").write_bytes(b"no library")
    assert seen(fake, "torch.version.cuda = None") == "True"


def test_nothing_is_done_where_torch_has_cuda(fake):
    (fake / "torchvision" / "_C.so").write_bytes(b"no library")
    assert seen(fake, "torch.version.cuda = '13.0'") == "False"


def test_nothing_is_done_where_the_binary_loads(fake):
    (fake / "torchvision" / "_C.so").write_bytes(b"a library that loads")
    loads = "torch.ops.load_library = lambda path: None; torch.version.cuda = None"
    assert seen(fake, loads) == "False"


def test_without_torchvision_its_import_fails_as_ever():
    code = """
    import smmd_bench, importlib.util
    sys.path[:] = [p for p in sys.path if not p.endswith("site-packages")]
    print(importlib.util.find_spec("torchvision"))
    """
    assert run(code) == "None"

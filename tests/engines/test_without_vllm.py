"""Commands without vLLM."""

from importlib.metadata import PackageNotFoundError

from tests.conftest import expect_user_error
from tests.in_process import call


def test_without_vllm_a_plan_says_what_transformers_costs_and_waits_to_be_asked(
    tmp_path, monkeypatch
):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("smmd_bench.plugins.engines.vllm.version", version)
    plan = "train-eval --task arithmetic --losses ce --test-examples 4 --dry-run"
    with expect_user_error(
        "not installed: .* --engine transformers, which decodes 2 to 3"
    ):
        call(plan, tmp_path)
    assert call(f"{plan} --engine transformers", tmp_path).status == 0

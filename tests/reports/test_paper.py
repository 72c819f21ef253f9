import pytest
from smmd_bench.reports._paper import paper_model, published, reference, rows

SIZES = {
    "math_reasoning": 40, "arithmetic": 20, "clock": 20, "chartqa": 20, "ablation": 20,
    "kernel_ablation": 15, "runtime": 8, "dataset_sizes": 5, "sigma": 25, "categories": 2,
    "error_p90": 2, "samsum": 2, "mmlu": 2,
}  # fmt: skip


@pytest.mark.parametrize(("table", "size"), SIZES.items())
def test_every_row_of_the_papers_tables_is_there_once(table, size):
    keys = [(row.get("model"), row["task"], row.get("loss")) for row in rows(table)]
    assert len(keys) == len(set(keys)) == size


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("Qwen/Qwen2.5-0.5B", "qwen2.5-0.5b"),
        ("/checkpoints/qwen2.5-1.5b/", "qwen2.5-1.5b"),
        ("unsloth/Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b"),
        ("HuggingFaceTB/SmolLM3-3B", "smollm3-3b"),
        ("meta-llama/Meta-Llama-3-8B", "llama3-8b"),
    ],
)
def test_models_are_found_by_the_last_part_of_their_name(model, key):
    found = paper_model(model)
    assert found is not None
    assert found.key == key


@pytest.mark.parametrize("model", ["builtin/tiny", "Qwen/Qwen2.5-0.5B-Math", "Qwen/Qwen2.5-3B"])
def test_other_models_are_not_the_papers(model):
    assert paper_model(model) is None
    assert published("arithmetic", model=model, task="arithmetic", loss="ce") == {}


def test_published_values_are_those_of_the_table():
    found = published("arithmetic", model="Qwen/Qwen2.5-0.5B", task="arithmetic", loss="smmd")
    assert found == {"exact_match": 45.93, "mean_absolute_error": 3.25, "r_squared": 0.69}
    assert reference("arithmetic") == "Table 2 of the paper"


@pytest.mark.parametrize(
    ("task", "loss"),
    [
        ("arithmetic[operations=1..2]", "smmd"),
        ("arithmetic", "smmd[sigma=1]"),
        ("arithmetic", "base"),
    ],
)
def test_another_level_or_parameter_has_no_published_value(task, loss):
    assert published("arithmetic", model="Qwen/Qwen2.5-0.5B", task=task, loss=loss) == {}

"""README.md of the model hub: what the weights are, metrics with intervals, recipe, command."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...contracts import Metric, Modality, Percentage
from ...results.tuning import chosen_point
from ...scoring.decoding_rules import GREEDY, split_rule
from ...scoring.statistics import is_share
from ...storage.cell import BASE
from ...storage.files import write_text
from ..tables import DASH, number
from .exported_cell import ExportedCell

_CONFIDENCE = 0.95
_NUMBERS = ("difference", "low", "high")


def write_model_card(cell: ExportedCell, folder: Path, *, merged: bool) -> None:
    """Write README.md: metadata in the hub's YAML, then the card for people."""
    from huggingface_hub import EvalResult, ModelCardData

    row, vision = cell.row, cell.task.modality is Modality.VISION
    adapter = cell.has_adapter and not merged
    facts: dict[str, Any] = {"metrics": [metric.name for metric in cell.metrics[:1]]}
    if cell.hub_base is not None:
        facts["base_model"] = cell.hub_base[0]
        facts["base_model_relation"] = "adapter" if adapter else "finetune"
    if cell.dataset is not None:
        facts["datasets"] = [cell.dataset.hub.repository]
    data = ModelCardData(
        model_name=cell.name,
        library_name="peft" if adapter else "transformers",
        pipeline_tag="image-text-to-text" if vision else "text-generation",
        tags=["smmd-bench", str(row["task_name"]), str(row["loss_name"])],
        eval_results=[
            EvalResult(
                task_type="image-text-to-text" if vision else "text-generation",
                dataset_type=cell.dataset.hub.repository if cell.dataset else row["task_name"],
                dataset_name=str(row["task"]),
                dataset_split="test",
                metric_type=metric.name,
                metric_name=metric.metric.label,
                metric_value=metric.value,
                metric_args={
                    "n": metric.n, "low": metric.low, "high": metric.high,
                    "confidence": _CONFIDENCE,
                },
            )
            for metric in cell.metrics
        ],
        **facts,
    )  # fmt: skip
    text = "\n\n".join(_parts(cell, adapter=adapter, vision=vision))
    write_text(folder / "README.md", f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def _parts(cell: ExportedCell, *, adapter: bool, vision: bool) -> Iterable[str]:
    row, now, manifest = cell.row, cell.now, cell.run.manifest
    metrics = {metric.name: metric for metric in cell.task.metrics()}
    yield f"# {cell.name}"
    if row["loss"] == BASE:
        yield f"The untuned model {_code(cell.base_name)}, tested on {_code(row['task'])}."
    else:
        kind = "A LoRA adapter" if adapter else "A model"
        yield (
            f"{kind} trained from {_code(cell.base_name)} on {_code(row['task'])} with the loss "
            f"{_code(row['loss'])}, seed {row['seed']}, by smmd-bench."
        )
    if now.selection is not None:
        best, metric = now.selection["best_epoch"], str(now.selection["metric"])
        label = metrics[metric].label if metric in metrics else metric
        yield f"The weights are those of epoch {best}, which has the best {label} in validation."
    yield "## Results"
    yield _table(
        ("Metric", "Value", "95% interval", "n"),
        ((*_estimate(m.metric, m.value, m.low, m.high), m.n) for m in cell.metrics),
    )
    yield f"Decoding is greedy, without shots. {_intervals(cell)}"
    compared = cell.run.comparisons
    if len(compared := compared[compared["address"] == row["address"]]):
        yield f"Difference to {_code(compared['against_loss'].iloc[0])} of the same seed:"
        yield _table(
            ("Metric", "Difference", "95% interval", "n"),
            (
                (*_estimate(metrics[name], *(line[c] for c in _NUMBERS), sign=True), line["n"])
                for line in compared.to_dict("records")
                if (name := str(line["metric"])) in metrics and split_rule(name)[1] == GREEDY
            ),
        )  # fmt: skip
    if row["loss"] != BASE:
        yield "## Recipe"
        recipe = row["recipe"]
        if (point := chosen_point(cell.run.described(row["address"]), now)) is not None:
            recipe = {**recipe, **point["settings"], "loss": point["loss"]}
            yield f"Chosen by validation, as one of the settings tried: {_code(point['text'])}."
        full = recipe.get("method") == "full"
        settings = (
            (k, _code(v)) for k, v in recipe.items() if not (full and k.startswith("lora_"))
        )
        yield _table(("Setting", "Value"), settings)
    yield "## Command"
    yield _block("sh", str(manifest.get("command", "")))
    yield (
        f"Run of {manifest['created']} with "
        + ", ".join(f"{name} {version}" for name, version in cell.versions.items())
        + f"; cell {_code(row['address'])}."
    )
    if now.checkpoint is not None:
        yield from _usage(adapter=adapter, vision=vision)
    yield "The licence of the base model, and those of the data, hold for what is made of them."


def _usage(*, adapter: bool, vision: bool) -> Iterable[str]:
    auto = "AutoModelForImageTextToText" if vision else "AutoModelForCausalLM"
    code = f"from transformers import {auto}\n\nmodel = {auto}.from_pretrained("
    code += "BASE)" if adapter else '".")'
    if adapter:
        code = f'from peft import PeftModel\n{code}\nmodel = PeftModel.from_pretrained(model, ".")'
    yield "## Use"
    yield _block("python", code)
    if adapter:
        yield "vLLM loads it beside its base: `vllm serve BASE --enable-lora --lora-modules NAME=.`"
    else:
        yield "vLLM loads the folder: `vllm serve .`"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [[*head], ["---"] * len([*head]), *([_cell(v) for v in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).replace("|", r"\|").split())


def _code(value: object) -> str:
    return f"`{' '.join(str(value).replace('`', chr(39)).split())}`"


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.replace('```', chr(39) * 3)}\n```"


def _intervals(cell: ExportedCell) -> str:
    """Which interval is of which metric."""
    shares = [m.metric.label for m in cell.metrics if is_share(m.metric, cell.frame)]
    others = [m.metric.label for m in cell.metrics if m.metric.label not in shares]
    said = []
    if shares:
        said.append(
            f"Wilson's score interval is that of {', '.join(shares)}, and Tango's that of their "
            "differences."
        )
    if others:
        said.append(
            f"The percentile bootstrap over the test examples is that of {', '.join(others)}, and "
            "the paired one that of their differences."
        )
    return " ".join([*said, "No interval covers the randomness of training."])


def _estimate(
    metric: Metric, value: float, low: float | None, high: float | None, *, sign: bool = False
) -> tuple[str, str, str]:
    """Label, value and interval of a metric, as the tables of a run spell them."""
    digits = 1 if isinstance(metric, Percentage) else 2
    bounds = [number(bound, digits, sign=sign) for bound in (low, high)]
    interval = DASH if DASH in bounds else f"[{', '.join(bounds)}]"
    return metric.label, number(value, digits, sign=sign), interval

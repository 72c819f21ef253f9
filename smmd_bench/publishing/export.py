"""A cell as others read it: weights with a model card, and lm-eval's results file.

OUT/NAME/*.safetensors ...         the adapter, or a whole model, for from_pretrained and vLLM
OUT/NAME/README.md                 the card of the model hub, with metrics, recipe and command
OUT/NAME/lm_eval/results_DATE.json the metrics as lm-eval writes them; `every-eval-ever` converts it
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any

from ..contracts import Modality, Percentage, Task
from ..encoding.prompts import TODAY
from ..errors import UserError
from ..plugin_system.registry import load_task
from ..results.frames import RunFrames
from ..results.summary import card_of_run, describe_retraining
from ..storage.addresses import file_word
from ..storage.files import part_of, read_given_json, write_folder, write_json, write_text
from .tables import DASH, number

Row = Mapping[str, Any]
"""A row of `RunFrames.cells`."""


def write_export(
    run: RunFrames, cells: Sequence[Row], out: Path, *, merged: bool = False
) -> tuple[list[Path], list[str]]:
    """Write OUT/NAME of each measured cell; the run is only read.

    merged: an adapter goes into its base, so that the folder is a whole model. The second value has
    a sentence for each thing that is left out. Raises UserError, before anything is written, where
    a folder of that name is there already or `out` is inside the run.
    """
    folders = [out / _name(run, row) for row in cells]
    if out.resolve().is_relative_to(run.path.resolve()):
        raise UserError(f"{out} is inside the run {run.path}: choose another with --out.")
    if there := next((folder for folder in folders if folder.exists()), None):
        raise UserError(f"{there} is there already: delete it, or choose another with --out.")
    notes: dict[str, None] = {}
    for row, folder in zip(cells, folders, strict=True):
        shutil.rmtree(part_of(folder), ignore_errors=True)  # of another export, perhaps
        with write_folder(folder) as part:
            note = write_weights(run, row, part, merged=merged)
            write_model_card(run, row, part, folder.name)
            write_lm_eval_results(run, row, part, folder.name)
        notes |= {note: None} if note else {}
    return folders, [*notes]


def write_weights(run: RunFrames, row: Row, folder: Path, *, merged: bool) -> str | None:
    """Write the selected checkpoint of a cell; a sentence where something is missing.

    An adapter names its base on the hub, where that is one of the hub. Raises UserError for
    `merged` without weights, or where the base is not that of the run.
    """
    now = run.current(str(row["address"]))
    title = f"{_base_name(run, row)} {row['task']} {row['loss']} seed {row['seed']}"
    if (found := now.checkpoint) is None:
        what = f"{title} has no weights in {run.path}"
        if merged:
            raise UserError(
                f"{what} to merge: {describe_retraining(run.path)}, or leave --merged out."
            )
        return f"{what}: its results alone are exported."
    adapter = (found / "adapter_config.json").exists()
    if merged and adapter:
        from ..models.loading import save_merged

        base = card_of_run(str(row["model"]), run).folder
        save_merged(base, found, str(row["recipe"].get("dtype", "float32")), folder)
        return None
    for file in found.iterdir():
        if file.is_file() and file.name != "canary.json":
            shutil.copyfile(file, folder / file.name)  # not its mode, which may be private
    if not adapter:
        return None
    if (hub := _hub_base(run, row)) is None:
        return (
            f"The adapter of {title} names its base by a path of this machine: give "
            "--merged for weights that load elsewhere."
        )
    named = {"base_model_name_or_path": hub[0], "revision": hub[1]}
    config = folder / "adapter_config.json"
    write_json(config, {**read_given_json(config), **named})
    return None


def write_model_card(run: RunFrames, row: Row, folder: Path, name: str) -> None:
    """Write README.md of a cell whose weights, if it has some, are in the folder already."""
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    task, hub = _task(run, row), _hub_base(run, row)
    adapter = (folder / "adapter_config.json").exists()
    vision, dataset = task.modality is Modality.VISION, _dataset(task)
    kind = "image-text-to-text" if vision else "text-generation"
    labels = {metric.name: metric for metric in task.metrics()}
    metrics = _measured(run, row, labels)
    differences = [line for line in _of_cell(run.comparisons, row) if line["metric"] in labels]
    results = [
        EvalResult(
            task_type=kind,
            dataset_type=dataset or row["task_name"],
            dataset_name=str(row["task"]),
            dataset_split="test",
            metric_type=line["metric"],
            metric_name=labels[line["metric"]].label,
            metric_value=line["value"],
            metric_args={name: line[name] for name in ("n", "low", "high")},
        )
        for line in metrics
    ]
    data = ModelCardData(
        model_name=name,
        library_name="peft" if adapter else "transformers",
        pipeline_tag=kind,
        tags=["smmd-bench", str(row["task_name"]), str(row["loss_name"])],
        datasets=[dataset] if dataset else None,
        base_model=hub[0] if hub else None,
        base_model_relation=("adapter" if adapter else "finetune") if hub else None,
        eval_results=results,
    )
    template = resources.files(__package__) / "web" / "model_card.md.jinja"
    card = ModelCard.from_template(
        data,
        template_str=template.read_text(encoding="utf-8"),
        name=name,
        row=row,
        run=run.manifest,
        base=_base_name(run, row),
        adapter=adapter,
        hub=hub,
        call=_call(run, row, folder, vision=vision) if any(folder.glob("*.safetensors")) else None,
        epochs=[line["epoch"] for line in _of_cell(run.selection, row) if line["selected"]],
        tuned=[line["text"] for line in _of_cell(run.tuning, row) if line["chosen"]],
        results=[_estimate(labels, line, "value") for line in metrics],
        differences=[_estimate(labels, line, "difference") for line in differences],
        against=next((line["against_loss"] for line in differences), None),
    )
    write_text(folder / "README.md", str(card))


def _call(run: RunFrames, row: Row, folder: Path, *, vision: bool) -> dict[str, Any]:
    """What the card's code needs to answer as the run did, of a folder with weights."""
    from ..models.checkpoints import stop_token_ids
    from ..models.tokenizers import load_tokenizer

    try:
        base = card_of_run(str(row["model"]), run).folder
    except UserError:  # it is not there any more, and a whole model has its files
        base = folder
    tokenizer = load_tokenizer(folder)
    chat = bool(row["recipe"].get("chat_template"))
    tokens = tokenizer("1", add_special_tokens=not chat)["input_ids"]
    return {
        "auto": "AutoModelForImageTextToText" if vision else "AutoModelForCausalLM",
        "vision": vision,
        "chat": chat,
        "ends_prompts": tokens[-1] == tokenizer.eos_token_id,
        "today": f"{TODAY.year}, {TODAY.month}, {TODAY.day}",
        "stop": stop_token_ids(base, tokenizer),
        "max_new_tokens": _max_new_tokens(run, row),
    }


def write_lm_eval_results(run: RunFrames, row: Row, folder: Path, name: str) -> None:
    """Write the metrics in the layout of lm_eval/result_schema.py 0.4.13.

    Accuracies are shares. A standard error is the width of the 95 % interval over 3.92.
    """
    task, key = _task(run, row), file_word(str(row["task"]))
    metrics = {metric.name: metric for metric in task.metrics()}
    found = _measured(run, row, metrics)
    n = int(found[0]["n"]) if found else 0
    values: dict[str, Any] = {"alias": key, "name": key, "sample_len": n}
    for line in found:
        unit = 0.01 if isinstance(metrics[line["metric"]], Percentage) else 1.0
        error = unit * (line["high"] - line["low"]) / (2 * 1.96)
        values[f"{line['metric']},none"] = line["value"] * unit
        values[f"{line['metric']}_stderr,none"] = error if math.isfinite(error) else "N/A"
    generation = {"do_sample": False, "temperature": 0.0}
    generation |= {"max_gen_toks": _max_new_tokens(run, row)}
    config = {"task": key, "test_split": "test", "num_fewshot": 0, "generation_kwargs": generation}
    config |= {"dataset_path": dataset} if (dataset := _dataset(task)) else {}
    created = datetime.fromisoformat(str(run.manifest["created"]))
    model = {"pretrained": f"local/{name}", "base": _base_name(run, row)}
    whole = max(n, int(task.paper_sizes["test"]))
    results = {
        "results": {key: values},
        "configs": {key: config},
        "versions": {key: float(task.version)},
        "n-shot": {key: 0},
        "higher_is_better": {key: {m: metrics[m].better == "higher" for m in metrics}},
        "n-samples": {key: {"original": whole, "effective": n}},
        "config": {"model": "smmd-bench", "model_args": model, "random_seed": int(row["seed"])},
        "date": created.timestamp(),
        "model_source": "smmd-bench",
        "model_name": f"local/{name}",
    }
    date = created.replace(tzinfo=None).isoformat().replace(":", "-")
    write_json(folder / "lm_eval" / f"results_{date}.json", results)


def _name(run: RunFrames, row: Row) -> str:
    """The name of a cell's folder."""
    words = (_base_name(run, row), row["task"], row["loss"], f"seed{row['seed']}")
    return re.sub("-+", "-", "-".join(file_word(str(word)).strip(".-") for word in words))


def _of_cell(frame: Any, row: Row) -> list[dict[str, Any]]:
    """The rows of a frame that are of the cell."""
    return list(frame[frame["address"] == row["address"]].to_dict("records"))


def _measured(run: RunFrames, row: Row, names: Collection[str]) -> list[dict[str, Any]]:
    """The metrics of the cell that are the task's and have a value."""
    found = _of_cell(run.metrics, row)
    return [line for line in found if line["metric"] in names and math.isfinite(line["value"])]


def _hub_base(run: RunFrames, row: Row) -> tuple[str, str] | None:
    """Repository and commit of the untrained model; None: it is not one of the hub."""
    known = (run.manifest.get("models") or {}).get(str(row["model"])) or {}
    return (str(known["hub"]), str(known["commit"])) if "hub" in known else None


def _base_name(run: RunFrames, row: Row) -> str:
    """The untrained model for people: never a path of this machine."""
    hub = _hub_base(run, row)
    return hub[0] if hub else str(row["model_label"]).rstrip("/").rpartition("/")[2]


def _task(run: RunFrames, row: Row) -> Task:
    said = run.described[str(row["address"])]
    return load_task(said.get("task_spec", said["task"]))


def _max_new_tokens(run: RunFrames, row: Row) -> int:
    """How many tokens a completion of the cell could have."""
    how = (run.manifest.get("generation") or {}).get(str(row["task"])) or {}
    return int(how.get("max_new_tokens") or _task(run, row).max_new_tokens)


def _dataset(task: Task) -> str | None:
    """The one data set of the hub that the test is of; None: there is none, or several."""
    sources = tuple(getattr(task, "sources", ()))
    return str(sources[0].hub.repository) if len(sources) == 1 else None


def _estimate(labels: Row, line: Row, name: str) -> list[str]:
    """Label, value, interval and n of a metric, as the tables of a run spell them."""
    metric, sign = labels[line["metric"]], name == "difference"
    digits = 1 if isinstance(metric, Percentage) else 2
    value, *bounds = (number(line[name], digits, sign=sign) for name in (name, "low", "high"))
    interval = DASH if DASH in bounds else f"[{', '.join(bounds)}]"
    return [metric.label.replace("|", r"\|"), value, interval, f"{int(line['n']):,}"]

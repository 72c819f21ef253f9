"""A cell as others read it: weights with a model card, and lm-eval's results file.

OUT/NAME/*.safetensors ...         the adapter, or a whole model, for from_pretrained and vLLM
OUT/NAME/README.md                 the card of the model hub, with metrics, recipe and command
OUT/NAME/lm_eval/results_DATE.json the metrics as lm-eval writes them; `every-eval-ever` converts it
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..contracts import Metric, Modality, Percentage, Task
from ..encoding.prompts import TODAY
from ..errors import UserError
from ..plugin_system.registry import load_task
from ..results.availability import card_of_run, describe_retraining
from ..results.frames import RunFrames
from ..storage.addresses import file_word
from ..storage.files import (
    part_of,
    read_given_json,
    write_folder,
    write_json,
    write_text,
)
from .tables import DASH, with_interval

if TYPE_CHECKING:
    from huggingface_hub import ModelCardData

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
    if out.resolve().is_relative_to(run.path.resolve()):
        raise UserError(
            f"{out} is inside the run {run.path}: choose another with --out."
        )
    folders = [out / _name_folder(run, row) for row in cells]
    existing = [folder for folder in folders if folder.exists()]
    if existing:
        raise UserError(
            f"{existing[0]} is there already: delete it, or choose another with --out."
        )

    notes = []
    for row, folder in zip(cells, folders, strict=True):
        # Another export may have been killed here.
        shutil.rmtree(part_of(folder), ignore_errors=True)
        with write_folder(folder) as part:
            notes.append(write_weights(run, row, part, merged=merged))
            write_model_card(run, row, part, folder.name)
            write_lm_eval_results(run, row, part, folder.name)
    return folders, [*filter(None, dict.fromkeys(notes))]


def write_weights(
    run: RunFrames, row: Row, folder: Path, *, merged: bool
) -> str | None:
    """Write the selected checkpoint of a cell; a sentence where something is missing.

    An adapter names its base on the hub, where that is one of the hub. Raises UserError for
    `merged` without weights, or where the base is not that of the run.
    """
    title = f"{_name_base(run, row)} {row['task']} {row['loss']} seed {row['seed']}"
    checkpoint = run.current(str(row["address"])).checkpoint
    if checkpoint is None:
        problem = f"{title} has no weights in {run.path}"
        if merged:
            remedy = describe_retraining(run.path)
            raise UserError(f"{problem} to merge: {remedy}, or leave --merged out.")
        return f"{problem}: its results alone are exported."

    is_adapter = (checkpoint / "adapter_config.json").exists()
    if merged and is_adapter:
        from ..models.loading import save_merged

        base = card_of_run(str(row["model"]), run).folder
        # Merged in the precision of the run, so that the answers stay those that were measured.
        dtype = str(row["recipe"].get("dtype", "float32"))
        save_merged(base, checkpoint, dtype, folder)
        return None

    for file in checkpoint.iterdir():
        # The canary tests engines of this package; others have no use for it.
        if file.is_file() and file.name != "canary.json":
            # Not with its mode, which may keep others from reading it.
            shutil.copyfile(file, folder / file.name)
    if not is_adapter:
        return None

    hub = _find_hub_base(run, row)
    if hub is None:
        return (
            f"The adapter of {title} names its base by a path of this machine: give "
            "--merged for weights that load elsewhere."
        )
    # The adapter was trained on a local copy, whose path loads on no other machine.
    repository, commit = hub
    config = folder / "adapter_config.json"
    base_names = {"base_model_name_or_path": repository, "revision": commit}
    write_json(config, read_given_json(config) | base_names)
    return None


def write_model_card(run: RunFrames, row: Row, folder: Path, name: str) -> None:
    """Write README.md of a cell whose weights, if it has some, are in the folder already."""
    from huggingface_hub import ModelCard

    task = _load_task(run, row)
    is_adapter = (folder / "adapter_config.json").exists()
    is_vision = task.modality is Modality.VISION
    selection = _select_cell(run.selection, row)
    tuning = _select_cell(run.tuning, row)
    measured = _select_measured(run, row, task)
    differences = _pair_metrics(run.comparisons, row, task)

    # Without weights there is nothing to call.
    call = None
    if any(folder.glob("*.safetensors")):
        call = _describe_call(run, row, folder, vision=is_vision)

    template = resources.files(__package__) / "web" / "model_card.md.jinja"
    card = ModelCard.from_template(
        _describe_model(run, row, task, name, is_adapter=is_adapter),
        template_str=template.read_text(encoding="utf-8"),
        name=name,
        row=row,
        run=run.manifest,
        base=_name_base(run, row),
        adapter=is_adapter,
        hub=_find_hub_base(run, row),
        call=call,
        epochs=[line["epoch"] for line in selection if line["selected"]],
        tuned=[line["text"] for line in tuning if line["chosen"]],
        results=[_format_line(*pair, "value") for pair in measured],
        differences=[_format_line(*pair, "difference") for pair in differences],
        against=differences[0][1]["against_loss"] if differences else None,
    )
    write_text(folder / "README.md", str(card))


def _describe_model(
    run: RunFrames, row: Row, task: Task, name: str, *, is_adapter: bool
) -> ModelCardData:
    """Describe the model as the hub reads it: its base, its data and its metrics."""
    from huggingface_hub import EvalResult, ModelCardData

    dataset = _find_dataset(task)
    hub = _find_hub_base(run, row)
    kind = "text-generation"
    if task.modality is Modality.VISION:
        kind = "image-text-to-text"

    results = []
    for metric, line in _select_measured(run, row, task):
        result = EvalResult(
            task_type=kind,
            # The hub wants a data set of each result; a generated one has the task's name.
            dataset_type=dataset or row["task_name"],
            dataset_name=str(row["task"]),
            dataset_split="test",
            metric_type=metric.name,
            metric_name=metric.label,
            metric_value=line["value"],
            metric_args={name: line[name] for name in ("n", "low", "high")},
        )
        results.append(result)

    return ModelCardData(
        model_name=name,
        library_name="peft" if is_adapter else "transformers",
        pipeline_tag=kind,
        tags=["smmd-bench", str(row["task_name"]), str(row["loss_name"])],
        datasets=[dataset] if dataset else None,
        base_model=hub[0] if hub else None,
        base_model_relation=("adapter" if is_adapter else "finetune") if hub else None,
        eval_results=results,
    )


def _describe_call(
    run: RunFrames, row: Row, folder: Path, *, vision: bool
) -> dict[str, Any]:
    """What the card's code needs to answer as the run did, of a folder with weights."""
    from ..models.checkpoints import stop_token_ids
    from ..models.tokenizers import load_tokenizer

    # The base may be gone, and a whole model has its files.
    base = folder
    with suppress(UserError):
        base = card_of_run(str(row["model"]), run).folder
    tokenizer = load_tokenizer(folder)
    chat = bool(row["recipe"].get("chat_template"))
    # Some tokenizers end each text, which would end a prompt before its answer.
    tokens = tokenizer("1", add_special_tokens=not chat)["input_ids"]
    return {
        "auto": "AutoModelForImageTextToText" if vision else "AutoModelForCausalLM",
        "vision": vision,
        "chat": chat,
        "ends_prompts": tokens[-1] == tokenizer.eos_token_id,
        # The day that the run's prompts had, if their template writes one.
        "today": f"{TODAY.year}, {TODAY.month}, {TODAY.day}",
        "stop": stop_token_ids(base, tokenizer),
        "max_new_tokens": _find_token_limit(run, row),
    }


def write_lm_eval_results(run: RunFrames, row: Row, folder: Path, name: str) -> None:
    """Write the metrics in the layout of lm_eval/result_schema.py 0.4.13.

    Accuracies are shares. A standard error is the width of the 95 % interval over 3.92.
    """
    task = _load_task(run, row)
    key = file_word(str(row["task"]))
    measured = _select_measured(run, row, task)
    n = int(measured[0][1]["n"]) if measured else 0

    values: dict[str, Any] = {"alias": key, "name": key, "sample_len": n}
    for metric, line in measured:
        unit = 0.01 if isinstance(metric, Percentage) else 1.0
        error = unit * (line["high"] - line["low"]) / (2 * 1.96)
        values[f"{metric.name},none"] = line["value"] * unit
        # "N/A" is lm-eval's own word for it; JSON has no NaN.
        stated_error = error if math.isfinite(error) else "N/A"
        values[f"{metric.name}_stderr,none"] = stated_error

    limit = _find_token_limit(run, row)
    generation = {"do_sample": False, "temperature": 0.0, "max_gen_toks": limit}
    config = {"task": key, "test_split": "test", "num_fewshot": 0}
    config["generation_kwargs"] = generation
    dataset = _find_dataset(task)
    if dataset is not None:
        config["dataset_path"] = dataset

    # The date of the run, so that each export of it writes the same file.
    created = datetime.fromisoformat(str(run.manifest["created"]))
    seed = int(row["seed"])
    model = {"pretrained": f"local/{name}", "base": _name_base(run, row)}
    # A run may test more examples than the paper has.
    whole_test_set = max(n, int(task.paper_sizes["test"]))
    directions = {metric.name: metric.better == "higher" for metric in task.metrics()}
    results = {
        "results": {key: values},
        "configs": {key: config},
        "versions": {key: float(task.version)},
        "n-shot": {key: 0},
        "higher_is_better": {key: directions},
        "n-samples": {key: {"original": whole_test_set, "effective": n}},
        "config": {"model": "smmd-bench", "model_args": model, "random_seed": seed},
        "date": created.timestamp(),
        "model_source": "smmd-bench",
        "model_name": f"local/{name}",
    }
    # As lm-eval names its files: some file systems take no colon.
    date = created.replace(tzinfo=None).isoformat().replace(":", "-")
    write_json(folder / "lm_eval" / f"results_{date}.json", results)


def _name_folder(run: RunFrames, row: Row) -> str:
    """Name the folder of a cell."""
    words = (_name_base(run, row), row["task"], row["loss"], f"seed{row['seed']}")
    # A dot in front would hide the folder, and a dash would be read as an option.
    name = "-".join(file_word(str(word)).strip(".-") for word in words)
    # The hub takes neither two dashes nor two dots.
    return re.sub(r"(-|\.\.+)+", "-", name)


def _select_cell(frame: Any, row: Row) -> list[dict[str, Any]]:
    """Select the rows of a frame that are of the cell."""
    return list(frame[frame["address"] == row["address"]].to_dict("records"))


def _pair_metrics(frame: Any, row: Row, task: Task) -> list[tuple[Metric, Row]]:
    """Select the rows of a frame that are of the cell, with the task's metric that each is of."""
    metrics = {metric.name: metric for metric in task.metrics()}
    lines = _select_cell(frame, row)
    # A run also has metrics under decoding rules, which the task does not list.
    return [
        (metrics[line["metric"]], line) for line in lines if line["metric"] in metrics
    ]


def _select_measured(run: RunFrames, row: Row, task: Task) -> list[tuple[Metric, Row]]:
    """Select the metrics of the cell that have a value, with their rows."""
    pairs = _pair_metrics(run.metrics, row, task)
    return [pair for pair in pairs if math.isfinite(pair[1]["value"])]


def _find_hub_base(run: RunFrames, row: Row) -> tuple[str, str] | None:
    """Find repository and commit of the untrained model; None: it is not one of the hub."""
    model = (run.manifest.get("models") or {}).get(str(row["model"])) or {}
    return (str(model["hub"]), str(model["commit"])) if "hub" in model else None


def _name_base(run: RunFrames, row: Row) -> str:
    """Name the untrained model for people: never by a path of this machine."""
    hub = _find_hub_base(run, row)
    return hub[0] if hub else str(row["model_label"]).rstrip("/").rpartition("/")[2]


def _load_task(run: RunFrames, row: Row) -> Task:
    content = run.described[str(row["address"])]
    return load_task(content.get("task_spec", content["task"]))


def _find_token_limit(run: RunFrames, row: Row) -> int:
    """Find how many tokens a completion of the cell could have."""
    settings = (run.manifest.get("generation") or {}).get(str(row["task"])) or {}
    return int(settings.get("max_new_tokens") or _load_task(run, row).max_new_tokens)


def _find_dataset(task: Task) -> str | None:
    """Find the one data set of the hub that the test is of; None: there is none, or several."""
    sources = tuple(getattr(task, "sources", ()))
    return str(sources[0].hub.repository) if len(sources) == 1 else None


def _format_line(metric: Metric, line: Row, column: str) -> list[str]:
    """Format label, value, interval and n of a metric, as the tables of a run spell them."""
    digits = 1 if isinstance(metric, Percentage) else 2
    is_difference = column == "difference"
    text = with_interval(
        line[column], line["low"], line["high"], digits, sign=is_difference
    )
    value, _, interval = text.partition(" ")
    return [
        # A bar would end the cell of a Markdown table.
        metric.label.replace("|", r"\|"),
        value,
        interval or DASH,
        f"{int(line['n']):,}",
    ]

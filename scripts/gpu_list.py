"""What is open on a GPU, as a list that runs by itself: three parts, each eight minutes at most.

    python -m scripts.gpu_list a --out gpu    # what the machine has, and whether every stage runs
    python -m scripts.gpu_list b --out gpu    # Table 7 at real geometry, in four ways
    python -m scripts.gpu_list c --out gpu    # runs, one of them killed; answers that change

Each measurement is a process of its own. OUT/PART.json has its result, or its error with the last
line that it printed; OUT/PART.log has all lines. The same command goes on where the last one ended,
and then tries again what failed. --engine transformers does a and c without vLLM; b needs none.
"""

import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from functools import partial
from importlib.metadata import distributions
from pathlib import Path

import click
import torch
from torch.autograd import DeviceType

import smmd_bench as sb
from smmd_bench.cli.doctor import examine, try_stages
from smmd_bench.contracts import Checkpoint, EngineSettings
from smmd_bench.maintenance.smoke import count_flips
from smmd_bench.models.cards import model_card
from smmd_bench.models.tokenizers import load_tokenizer
from smmd_bench.overhead import worker
from smmd_bench.overhead.settings import CE, STOCK, OverheadSettings, find_geometry
from smmd_bench.plugin_system.registry import load_engine, load_task
from smmd_bench.storage.files import read_json, write_json
from smmd_bench.training import trainer as trainer_module
from smmd_bench.training.faster_steps import compile_layers

GEOMETRIES = ("qwen2.5-1.5b", "qwen2.5-0.5b", "smollm3-3b")
ROWS = (CE, "smmd", STOCK, "liger", "ntil", "ntl", "gce")
TRACED = 3
"""Steps under the profiler, which makes them slower: their times do not count."""
COMMAND = (sys.executable, "-c", "from smmd_bench.cli import main; main()")
TRAIN_EVAL = (
    "train-eval --task arithmetic --losses ce,smmd --method lora --set dtype=bfloat16 --epochs 2 "
    "--no-transfers"
)
LARGE = "--train-examples 2000 --validation-examples 100 --test-examples 500"
SMALL = "--train-examples 256 --validation-examples 16 --test-examples 16"


def list_checks(engine, **_):
    """List part a: `doctor --gpu` in pieces, of which each is a measurement."""
    return {
        "image": describe_image,
        "doctor": ask_doctor,
        "lora in bfloat16": partial(run_stages, "lora", "bfloat16", engine),
        "full in float32": partial(run_stages, "full", "float32", engine),
    }


def describe_image():
    """Describe the machine, its packages, and what Triton and inductor compile with."""
    programs = (
        "nvidia-smi", "lscpu", "free -g", "df -h .", "gcc --version", "g++ --version",
        "python3-config --includes", "python3 --version",
    )  # fmt: skip
    return {
        **{program: subprocess.getoutput(program) for program in programs},
        "packages": {package.name: package.version for package in distributions()},
    }


def ask_doctor():
    """Ask what works here: a problem is an answer, too."""
    return {"findings": [vars(finding) for finding in examine()]}


def run_stages(*words):
    """Run every stage once, on the built-in checkpoint."""
    findings = [*try_stages(*words)]
    last = findings[-1]
    if last.state == "problem":
        sys.exit(last.text)
    return {**vars(last), "parts": [vars(finding) for finding in findings[:-1]]}


def list_steps(geometries, steps, small, **_):
    """List part b: each row in each way; all of Table 7 comes before the second way."""
    measurements = {}
    for way in ("eager", "compiled", "with casts", "two at a time"):
        measure = train_two if way == "two at a time" else train
        for geometry in geometries:
            for row in ROWS:
                # The stock Trainer always trains with casts.
                if way == "with casts" and row in (STOCK, "liger"):
                    continue
                training = partial(measure, geometry, row, way, steps, small)
                measurements[f"{geometry}, {row}, {way}"] = training
    return measurements


def train(geometry, row, way, steps, small, barrier=None):
    """Train a row in this process; a step's time, memory, operations and kernels."""
    shape = find_geometry(geometry)
    settings = OverheadSettings(
        geometry=geometry, config=shape.config, losses={}, dtype="bfloat16",
        numeric_tokens=shape.numeric_tokens or 10, steps=steps + 1 + TRACED,
        device="cuda" if torch.cuda.is_available() else "cpu",
        batch_size=2 if small else 16,
    )  # fmt: skip
    if row == "liger":
        fuse_cross_entropy(shape.config["model_type"])
        row = STOCK

    build_model = worker.build_model

    def build(*arguments):
        model = build_model(*arguments)
        if way == "compiled":
            compile_layers(model)
        # Two trainings that share a device begin together.
        if barrier:
            barrier.wait(120)
        return model

    # This process trains nothing else, so that nothing is put back.
    worker.build_model = build
    if way == "with casts":
        trainer_module.without_casts = lambda *_, **__: nullcontext()
    # One step warms the profiler up.
    schedule = torch.profiler.schedule(wait=steps, warmup=1, active=TRACED)
    with torch.profiler.profile(schedule=schedule) as trace:
        trainer, result = worker.train_row(settings, row, 0, lambda *_: trace.step())

    clock = trainer.pop_callback(worker.StepClock)
    # As in Table 7, the first quarter warms caches up.
    ms = 1000 * statistics.median(wall for wall, _ in clock.steps[steps // 4 : steps])
    return {
        "ms": ms,
        "gb": result["peak_bytes"] / 1e9,
        **sum_kernels(trace.key_averages(), ms),
        "operations": clock.count.names,
        "device": result["device"],
    }


def fuse_cross_entropy(model_type):
    """Give models of this type Liger's fused cross-entropy, and no other of its kernels."""
    try:
        from liger_kernel.transformers import monkey_patch
    except ModuleNotFoundError:
        sys.exit("not installed")

    monkey_patch.MODEL_TYPE_TO_APPLY_LIGER_FN[model_type](
        rope=False, rms_norm=False, swiglu=False, fused_linear_cross_entropy=True
    )


def sum_kernels(events, ms):
    """Sum up a step's kernels, and their share of an untraced step; None without a GPU."""
    busy = launches = 0
    for event in events:
        # An annotation spans the kernels that it names.
        if event.device_type == DeviceType.CUDA and not event.is_user_annotation:
            busy += event.self_device_time_total / 1000 / TRACED
            launches += event.count / TRACED
    return {
        "kernels": launches or None,
        "kernel_ms": busy or None,
        "kernel_share": busy / ms or None,
    }


def train_two(*arguments):
    """Train the same twice at once; the steps a second of both together."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager, spawn.Pool(2) as pool:
        training = (*arguments, manager.Barrier(2))
        results = pool.starmap(train, [training, training])
    together = sum(1000 / result["ms"] for result in results)
    return {"steps_a_second": together, "trainings": results}


def list_runs(out, engine, small, **_):
    """List part c: a run, one that is killed, and answers that change; then a real checkpoint."""
    # The second one is there where scripts/fetch_smollm2.py has put it.
    models = ["builtin/tiny", *map(str, Path().glob(".cache/smollm2"))]
    engines = [engine]
    if torch.cuda.is_available():
        engines.append("vllm[batch_invariant=true]")

    runs = {}
    for model in models:
        run = out / Path(model).name
        killed = run.with_suffix(".killed")
        words = f"{TRAIN_EVAL} {SMALL if small else LARGE} --model {model} --engine {engine}"
        runs[f"{model}, run"] = partial(train_eval, words, run)
        runs[f"{model}, killed run"] = partial(train_eval, words, killed, kill=True)
        for name in engines:
            runs[f"{model}, flips by {name}"] = partial(ask_again, model, name, run)
    return runs


def ask_again(model, engine, run):
    """Count the answers of the base and of the run's first adapter that change when asked again."""
    base = model_card(model).folder
    (first, *_) = sorted(run.glob("train/*/epochs/*/adapter_config.json"))
    checkpoints = (
        Checkpoint("base", "base", base),
        Checkpoint("adapter", "lora", first.parent),
    )
    examples = load_task("arithmetic").examples("test", 0, 64)
    texts = [example.prompt for example in examples]
    prompts = load_tokenizer(base)(texts)["input_ids"]
    settings = EngineSettings(max_model_length=256, dtype="bfloat16", adapters=True)
    with load_engine(engine).open(base, settings) as session:
        return {one.name: count_flips(session, one, prompts) for one in checkpoints}


def train_eval(words, run, kill=False):
    """Train, decode and score; kill it first once a training has saved its state, if asked to."""
    command = [*COMMAND, *words.split(), "--out", run]
    killed = None
    if kill:
        process = subprocess.Popen(command)
        # It is the last file of a state.
        state = "train/.*.part/training/*/whole.json"
        while process.poll() is None and not any(run.glob(state)):
            time.sleep(0.05)
        process.kill()
        killed = process.wait() == -signal.SIGKILL
    if status := subprocess.call(command):
        sys.exit(status)

    exact = sb.read_run(run).metrics.query("metric == 'exact_match'")
    files = [*run.glob("train/*/receipt.json"), *run.glob("decode/*/decode.json")]
    return {
        "killed": killed,
        "exact_match": dict(exact[["loss", "value"]].to_numpy()),
        "weights and canaries": {str(file): read_json(file) for file in files},
    }


def is_missing(results, name):
    """Whether a measurement was not made, or failed."""
    return "error" in results.get(name, {"error": "never tried"})


def run_list(names, file, minutes):
    """Make what is missing while there is time for it, each in a process of its own."""
    end = time.monotonic() + 60 * minutes
    results = read_json(file) or {}
    missing = [name for name in names if is_missing(results, name)]
    # What failed may fail again: it must not take the time of what was never tried.
    missing.sort(key=results.__contains__)

    with file.with_suffix(".log").open("a") as log:
        for number, name in enumerate(missing, 1):
            began = time.monotonic()
            seconds = end - began
            report(f"{number} of {len(missing)}, {seconds:.0f} s left: {name}", log)
            kind = name.split(", ")[-1]
            times = [
                results[other].get("seconds", 0)
                for other in results
                if other.endswith(kind)
            ]
            if seconds < max(times, default=0):
                report("Too little time: the next command makes it.", log)
                continue

            error = run_process(name, log, seconds)
            results = read_json(file) or {}
            # A process may fail when its result is written.
            if is_missing(results, name):
                results[name] = {"error": error}
                report(error, log)
            results[name]["seconds"] = time.monotonic() - began
            write_json(file, results)


def report(line, log):
    """Print a line on the terminal, and into the log."""
    click.echo(line)
    click.echo(line, log)


def run_process(name, log, seconds):
    """Run the process of a measurement; its status, and the last line in the log."""
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.gpu_list", *sys.argv[1:], "--child", name],
        stdout=log, stderr=log, start_new_session=True,
    )  # fmt: skip
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
    finally:
        # An engine that outlives its command would keep the memory of the next one.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    lines = Path(log.name).read_text(errors="replace").splitlines()
    return f"status {process.wait()}: {lines[-1]}"


@click.command(help=__doc__)
@click.argument("part", type=click.Choice("abc"))
@click.option("--out", type=Path, required=True)
@click.option("--minutes", default=8.0)
@click.option("--geometry", "geometries", multiple=True, default=GEOMETRIES)
@click.option("--steps", default=24)
@click.option("--engine", default="vllm")
@click.option("--small", is_flag=True)
@click.option("--only", default="")
@click.option("--child", hidden=True)
def main(part, minutes, only, child, **options):
    # As Ctrl-C does, SIGTERM ends the measurement that runs, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lists = {"a": list_checks, "b": list_steps, "c": list_runs}
    measurements = lists[part](**options)
    file = options["out"] / f"{part}.json"
    if child:
        result = measurements[child]()
        write_json(file, {**(read_json(file) or {}), child: result})
    else:
        file.parent.mkdir(exist_ok=True)
        run_list([name for name in measurements if only in name], file, minutes)


if __name__ == "__main__":
    main()

"""The code of an exported model's card gives the run's answers, with a chat template or without."""

import re
import shutil

import pytest
import yaml
from PIL import Image

from smmd_bench.models.card_content import builtin_folder
from smmd_bench.results.frames import read_run
from smmd_bench.storage.files import read_json, write_json
from tests.in_process import call

pytestmark = pytest.mark.long

TEMPLATE = (  # it keeps the blanks of a turn, as Qwen's does
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """builtin/tiny with a chat template, and defaults of generation that a run does not use."""
    folder = tmp_path_factory.mktemp("model") / "chatty"
    shutil.copytree(builtin_folder("builtin/tiny"), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    defaults = read_json(folder / "generation_config.json")
    defaults |= {"do_sample": True, "temperature": 2.0, "repetition_penalty": 3.0}
    write_json(folder / "generation_config.json", defaults)
    settings = {"learning_rate": 5e-4, "batch_size": 32, "micro_batch_size": 32}
    (folder / "card.yaml").write_text(
        yaml.safe_dump({"label": "chatty", "recipe": settings})
    )
    return folder


def train(model, out, chat, method, task="arithmetic[level=easy,operations=1]"):
    """A short run with the transformers engine."""
    words = (
        f"train-eval --task={task} --losses=smmd --no-base --model={model} --out={out} "
        "--train-examples=32 --epochs=1 --validation-examples=2 --test-examples=10 "
        "--engine=transformers --executor=in_process "
        f"--set=chat_template={chat} --method={method}"
    )
    call(words, out.parent)
    return read_run(out)


def exported_answer(folder, monkeypatch):
    """The function that the card of folder's only exported cell defines, run beside its weights."""
    call("export run --out=out", folder)
    (exported,) = (folder / "out").iterdir()
    (code,) = CODE.findall((exported / "README.md").read_text())
    monkeypatch.chdir(exported)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    return names["answer"]


@pytest.mark.parametrize("chat", ["true", "false"])
@pytest.mark.parametrize("method", ["full", "lora"])
def test_the_code_of_the_card_gives_the_runs_answers(
    model, tmp_path, monkeypatch, method, chat
):
    run = train(model, tmp_path / "run", chat, method)
    answer = exported_answer(tmp_path, monkeypatch)

    completions = run.completions
    answers = [answer(prompt) for prompt in completions["prompt"]]
    assert answers == completions["completion"].tolist()
    assert len({*answers}) > 5  # the model says several things
    ends_in_a_blank = completions["prompt"].str.endswith(" ")
    assert ends_in_a_blank.all() if chat == "false" else not ends_in_a_blank.any()


def test_the_code_of_a_card_with_pictures_gives_the_runs_answers(tmp_path, monkeypatch):
    task = "chartqa[charts=plain]"
    run = train("builtin/tiny-vl", tmp_path / "run", "true", "full", task)
    answer = exported_answer(tmp_path, monkeypatch)
    for row in run.completions.itertuples():
        picture = Image.open(row.image)
        assert answer(row.prompt, picture) == row.completion

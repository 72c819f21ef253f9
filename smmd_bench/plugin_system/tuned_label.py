"""How a tuned loss is spelled: `smmd[tuned]`, `smmd[sigma=1,tuned]`."""

TUNED = "tuned"
"""Stands in brackets where parameters do; no parameter is spelled without a value."""


def tuned_label(loss: str) -> str:
    """The row of a loss whose setting a tuning chose."""
    name, bracket, parameters = loss.partition("[")
    return f"{name}[{parameters[:-1]},{TUNED}]" if bracket else f"{name}[{TUNED}]"


def untuned_label(loss: str) -> str:
    """The loss that was tuned, as its published row is spelled; other labels as they are."""
    for ending, left in ((f"[{TUNED}]", ""), (f",{TUNED}]", "]")):
        if loss.endswith(ending):
            return loss.removesuffix(ending) + left
    return loss


def is_tuned(loss: str) -> bool:
    """Whether a label is that of a tuned loss."""
    return untuned_label(loss) != loss

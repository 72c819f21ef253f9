"""Scale-error categories of a numeric answer (the paper's Appendix C.7 and Table 10).

Decided on exact fractions, in the paper's order, so that each answer has one category:

exact         ŷ = y
sign_flip     ŷ ≈ -y. The paper gives no tolerance; it is taken within the same 5 % of |y|.
scale_x10^k   |ŷ| ≈ |y| · 10^k, within 5 %, for k in -3, -2, -1, 1, 2, 3
near_miss     |ŷ - y| ≤ 1, or relative error ≤ 1 %
catastrophic  relative error ≥ 50 %
other         the rest
invalid       no number could be read (the paper leaves these out of its table)

For y = 0 nothing is "approximately" y and every relative error is infinite: an answer other than 0
is a near miss if |ŷ| ≤ 1, and otherwise catastrophic.
"""

from __future__ import annotations

from fractions import Fraction

TOLERANCE = Fraction(5, 100)
NEAR_ABSOLUTE = Fraction(1)
NEAR_RELATIVE = Fraction(1, 100)
CATASTROPHIC_RELATIVE = Fraction(50, 100)
POWERS = (-3, -2, -1, 1, 2, 3)
_SCALES = {f"scale_x10^{k}": Fraction(10) ** k for k in POWERS}
CATEGORIES: tuple[str, ...] = (
    "exact", "sign_flip", *_SCALES, "near_miss", "catastrophic", "other", "invalid",
)  # fmt: skip


def category(parsed: Fraction | None, answer: Fraction) -> str:
    """The category of a parsed answer; None: no number could be read."""
    if parsed is None:
        return "invalid"

    # The order is the paper's: -y of y = 0 is exact, and no flip.
    if parsed == answer:
        return "exact"
    size = abs(answer)

    # Of y = 0 every scale is 0, and 0 is exact already.
    if size:
        if abs(parsed + answer) <= TOLERANCE * size:
            return "sign_flip"
        for name, factor in _SCALES.items():
            if abs(abs(parsed) - size * factor) <= TOLERANCE * size * factor:
                return name
    error = abs(parsed - answer)
    if error <= NEAR_ABSOLUTE or error <= NEAR_RELATIVE * size:
        return "near_miss"
    return "catastrophic" if error >= CATASTROPHIC_RELATIVE * size else "other"

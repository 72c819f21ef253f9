"""Whether pictures are there and whole, and what identifies them, before anything is trained."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from smmd_bench.contracts import UserError, cache_folder
from smmd_bench.storage.files import read_json, write_json

_THREADS = 4


def digest_of_images(images: Sequence[Path], root: Path, remedy: str) -> str:
    """One digest of the pictures' contents and names relative to `root`; each is checked.

    All are read once: what was found is kept in the cache folder by names, sizes and modification
    times. Raises UserError that names the first picture that is absent or broken, counts them, and
    ends in `remedy`.
    """
    files = sorted(set(images))
    facts = [_facts(file, root) for file in files]
    _refuse_any("absent", files, facts, remedy)
    listing = "\n".join([str(root.resolve()), *map(str, facts)])
    key = hashlib.blake2b(listing.encode(), digest_size=16).hexdigest()
    kept = cache_folder() / "digests" / f"images-{key}.json"
    known = read_json(kept)
    if known is not None:
        return str(known["digest"])
    with ThreadPoolExecutor(_THREADS) as pool:
        digests = list(pool.map(_digest, files))
    _refuse_any("broken", files, digests, remedy)
    whole = hashlib.blake2b(digest_size=16)
    for file, found in zip(files, digests, strict=True):
        whole.update(f"{file.relative_to(root)} {found}\n".encode())
    write_json(kept, {"folder": str(root), "images": len(files), "digest": whole.hexdigest()})
    return whole.hexdigest()


def _facts(file: Path, root: Path) -> str | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return f"{file.relative_to(root)} {status.st_size} {status.st_mtime_ns}"


def _digest(file: Path) -> str | None:
    """The digest of a picture's content; None where it is broken."""
    from PIL import Image

    try:
        with file.open("rb") as stream, Image.open(stream) as picture:
            if picture.format == "PNG":
                picture.verify()  # the checksums of all its parts, at a tenth of decoding's cost
            else:
                picture.load()
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except Exception:  # whatever Pillow finds in a broken picture
        return None


def _refuse_any(what: str, files: Sequence[Path], found: Sequence[str | None], remedy: str) -> None:
    bad = [file for file, fact in zip(files, found, strict=True) if fact is None]
    if bad:
        raise UserError(
            f"The image {bad[0]} is {what} ({len(bad):,} of the {len(files):,} images that the "
            f"questions name are): {remedy}."
        )

"""The Homebrew formula of a source distribution: `python -m release.formula SDIST URL` prints it.

Everything but the URL comes from the archive itself: whoever publishes it elsewhere says only where.
"""

from __future__ import annotations

import email
import hashlib
import sys
import tarfile
from pathlib import Path

TEMPLATE = Path(__file__).with_name("orc-agents.rb")
DESC_CHARS = 80
"""Homebrew's own limit, in which no full stop stands at the end."""


def fill_formula(sdist: Path, url: str) -> str:
    """Return the formula that installs the archive from a URL."""
    told = _read_metadata(sdist)
    desc = (told["Summary"] or "").partition(":")[0].rstrip(".").removeprefix("A ")
    values = {
        "DESC": desc[:1].upper() + desc[1:DESC_CHARS],
        "HOMEPAGE": url.rpartition("/")[0],
        "URL": url,
        "VERSION": told["Version"] or "",
        "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        "LICENSE": told["License-Expression"] or "",
    }
    text = TEMPLATE.read_text("utf-8").partition("\n")[2]
    for name, value in values.items():
        text = text.replace(f"@{name}@", value.replace("\\", "\\\\").replace('"', '\\"').replace("#", "\\#"))
    return text


def _read_metadata(sdist: Path) -> email.message.Message:
    with tarfile.open(sdist) as archive:
        name = next(one for one in archive.getnames() if one.count("/") == 1 and one.endswith("/PKG-INFO"))
        file = archive.extractfile(name)
        assert file is not None, "metadata is a file"
        return email.message_from_bytes(file.read())


if __name__ == "__main__":
    sys.stdout.write(fill_formula(Path(sys.argv[1]), sys.argv[2]))

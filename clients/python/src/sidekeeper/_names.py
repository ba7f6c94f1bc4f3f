"""Names that are not Sidekeeper's own, such as those of a framework's tasks, as names that it takes."""

import re
from hashlib import sha256

from sidekeeper._options import check

LONGEST_NAME = 200
LONGEST_SEGMENT = 64
SEGMENT = re.compile(rb"(?!\.{1,2}\Z)(?!zookeeper\Z)[A-Za-z0-9._-]{1,64}\Z")
STRANGE = re.compile(rb"[^A-Za-z0-9._-]")
READABLE = 37
"""Bytes of a text that is cut which its name shows."""


def name_of(text: str) -> str:
    """Gives the name that stands for a text: of a lock, an election or anything else that has a name.

    A text that is a name stays as it is, so that the name of a name is itself. Otherwise each of its segments becomes one as `segment_of`
    says, and an empty one `_-`. A text whose name would be longer than 200 bytes is cut as a long segment is. An empty text stays empty,
    which no sidecar takes. The clients of all languages give the same names.

    Two texts have the same name only if one of them is itself a name with `_-` or `_.` in it, or if both are cut and 96 bits of
    their SHA-256 are the same.

    Raises ValueError if the text is not Unicode.
    """
    encoded = _encoded(text)
    parts = text.split("/") if text else []
    name = "/".join(part if at and part == "zookeeper" else segment_of(part) or "_-" for at, part in enumerate(parts))
    return name if len(name) <= LONGEST_NAME else _cut(encoded)


def segment_of(text: str) -> str:
    """Gives the one segment that stands for a text: the name of a member or an item, or the key of work that is done once.

    A text that is a segment stays as it is. Otherwise the segment is `_-` and the text in UTF-8, in which `__` is an underscore and `_3a`
    a byte that no segment has. A text whose segment would be longer than 64 bytes becomes `_.`, its first 37 bytes with `_` for those that
    no segment has, `-` and the first 24 hexadecimal digits of its SHA-256. An empty text stays empty.

    Raises ValueError if the text is not Unicode.
    """
    encoded = _encoded(text)
    if not text or SEGMENT.match(encoded):
        return text
    escaped = "_-" + STRANGE.sub(lambda found: b"_%02x" % found[0][0], encoded.replace(b"_", b"__")).decode()
    return escaped if len(escaped) <= LONGEST_SEGMENT else _cut(encoded)


def _encoded(text: str) -> bytes:
    check(text=text)
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text is {text!r}: Unicode without lone surrogates") from error


def _cut(encoded: bytes) -> str:
    shown = STRANGE.sub(b"_", encoded[:READABLE]).decode()
    return f"_.{shown}-{sha256(encoded).hexdigest()[:24]}"

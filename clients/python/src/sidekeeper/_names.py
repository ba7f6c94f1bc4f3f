"""Names that are not Sidekeeper's own, such as those of a framework's tasks, as names that it takes."""

import re
from hashlib import sha256

LONGEST_NAME = 200
LONGEST_SEGMENT = 64
SEGMENT = re.compile(rb"(?!_[-.])(?!\.{1,2}\Z)(?!zookeeper\Z)[A-Za-z0-9._-]{1,64}\Z")
"""What stays as it is: what it could be taken for otherwise is escaped itself."""
STRANGE = re.compile(rb"[^A-Za-z0-9._-]")
READABLE = 37
"""Bytes of a text that is cut which its name shows."""


def name_of(text: str) -> str:
    """Gives the name that stands for a text: of a lock, a semaphore, an election or anything else that has a name.

    Each of its segments becomes one as `segment_of` says, so that most texts that are names stay as they are. A text whose name would be
    longer than 200 bytes is cut as a long segment is. No two texts have the same name, unless both are cut and 96 bits of their SHA-256
    are the same. The clients of all languages give the same names.

    Raises ValueError if the text is not Unicode.
    """
    segments = text.split("/")
    name = "/".join(part if at and part == "zookeeper" else segment_of(part) for at, part in enumerate(segments))
    return name if len(name) <= LONGEST_NAME else _cut(_encoded(text))


def segment_of(text: str) -> str:
    """Gives the one segment that stands for a text: the name of a member or an item, or the key of work that is done once.

    A text that is a segment stays as it is, unless it begins with `_-` or `_.`. Otherwise the segment is `_-` and the text in UTF-8, in
    which `__` is an underscore and `_3a` a byte that no segment has. A text whose segment would be longer than 64 bytes becomes `_.`, its
    first 37 bytes with `_` for those that no segment has, `-` and the first 24 hexadecimal digits of its SHA-256.

    Raises ValueError if the text is not Unicode.
    """
    encoded = _encoded(text)
    if SEGMENT.match(encoded):
        return text
    escaped = "_-" + STRANGE.sub(lambda found: b"_%02x" % found[0][0], encoded.replace(b"_", b"__")).decode()
    return escaped if len(escaped) <= LONGEST_SEGMENT else _cut(encoded)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text is {text!r}: Unicode without lone surrogates") from error


def _cut(encoded: bytes) -> str:
    shown = STRANGE.sub(b"_", encoded[:READABLE]).decode()
    return f"_.{shown}-{sha256(encoded).hexdigest()[:24]}"

"""What the README and the page about Celery show runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import PATIENT, Sidecar

PACKAGE = Path(__file__).parents[1]


def shown_in(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


SNIPPETS = shown_in(PACKAGE / "README.md") + shown_in(PACKAGE / "celery.md")


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs(snippet: str, sidecar: Sidecar, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "SIDEKEEPER_ADDRESS": sidecar.secure_address if "credentials=" in snippet else sidecar.address,
        "SIDEKEEPER_PROGRAM": sidecar.program,
        "PYTHONPATH": str(PACKAGE / "src"),
    }
    (tmp_path / "certificates").symlink_to(sidecar.certificates)
    file = tmp_path / "test_snippet.py"
    file.write_text(snippet)
    command = [sys.executable, "-W", "error", *(["-m", "pytest", "-p", "no:asyncio"] if "def test_" in snippet else []), str(file)]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout
    assert not ran.stderr


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) == 16


def test_the_repositorys_readme_shows_the_same() -> None:
    assert shown_in(PACKAGE.parents[1] / "README.md") == [SNIPPETS[0].removeprefix("import sidekeeper\n\n")]

"""What the README shows runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import PATIENT, Sidecar

PACKAGE = Path(__file__).parents[1]
SNIPPETS = re.findall(r"^```python\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_runs(snippet: str, sidecar: Sidecar) -> None:
    environment = {**os.environ, "SIDEKEEPER_ADDRESS": sidecar.address, "PYTHONPATH": str(PACKAGE / "src")}
    ran = subprocess.run([sys.executable, "-W", "error", "-c", snippet], env=environment, capture_output=True, text=True, timeout=PATIENT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    assert not ran.stderr


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) == 9


def test_the_repositorys_readme_shows_the_same() -> None:
    shown = re.findall(r"^```python\n(.*?)^```", (PACKAGE.parents[1] / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert shown == [SNIPPETS[0].removeprefix("import sidekeeper\n\n")]

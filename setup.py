"""Gives pip the version from package.xml, so that it stands in one place; the rest is in pyproject.toml."""

import re
from pathlib import Path

from setuptools import setup

manifest = Path(__file__).with_name("package.xml").read_text(encoding="utf-8")
setup(version=re.search(r"<version>(.+?)</version>", manifest).group(1))

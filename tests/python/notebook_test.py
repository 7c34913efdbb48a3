"""docs/examples/notebook.ipynb runs: as plain code, and in Jupyter where that is installed. So does
the code of docs/python.md."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path
from typing import Any

NOTEBOOK = Path(os.environ["ROUTESIM_SOURCE_DIR"]) / "docs" / "examples" / "notebook.ipynb"


def has(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) for package in packages)


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]


def shown(source: str, names: dict[str, Any]) -> Any:
    """Runs a cell; the value of its last line is what a notebook shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


class Page(unittest.TestCase):
    @unittest.skipUnless(has("pandas", "pyarrow"), "pandas or pyarrow is not installed")
    def test_the_code_runs(self) -> None:
        page = (NOTEBOOK.parents[1] / "python.md").read_text(encoding="utf-8")
        (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        with tempfile.TemporaryDirectory() as folder:
            for example in NOTEBOOK.parent.glob("*.yaml"):
                shutil.copy(example, folder)
            before = Path.cwd()
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            names: dict[str, Any] = {}
            shown(code, names)
            self.assertEqual(set(names["frame"].variant), {"service", "precise"})
            self.assertTrue(Path("tables", "stages.parquet").exists())
            self.assertIn("</html>", Path("page.html").read_text(encoding="utf-8"))
            os.chdir(before)


class Notebook(unittest.TestCase):
    @unittest.skipUnless(has("pandas"), "pandas is not installed")
    def test_the_cells_run(self) -> None:
        names: dict[str, Any] = {}
        values = [shown(cell, names) for cell in cells()]
        self.assertIn("<iframe", values[0]._repr_html_())
        self.assertIn("my-question", repr(values[0]))
        self.assertEqual(len(values[1]), 6)
        pivot = next(
            v for v in values if getattr(v, "index", None) is not None and v.index.name == "servers"
        )
        # More servers never make the slowest tenth wait longer here.
        self.assertTrue((pivot.diff().dropna() <= 0).all().all(), pivot)

    @unittest.skipUnless(has("nbclient", "ipykernel", "pandas"), "Jupyter is not installed")
    def test_it_runs_in_jupyter(self) -> None:
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbclient.NotebookClient(
            notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}
        ).execute()
        (output,) = notebook.cells[1].outputs
        self.assertIn("<iframe", output.data["text/html"])
        self.assertIn("my-question", output.data["text/plain"])

    def test_it_is_stored_without_outputs(self) -> None:
        notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
        self.assertTrue(all(c["outputs"] == [] and c["execution_count"] is None for c in code))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: GPL-2.0
"""Tests of the package's form: no circular imports, short functions, docstrings, type hints."""
import ast
import graphlib
import os
import unittest

from support import LAB

PACKAGE = os.path.join(LAB, "timelylab")
LONGEST = 45                    # lines of a function


def trees() -> dict[str, ast.Module]:
    """The syntax tree of each module of the package."""
    out = {}
    for name in sorted(os.listdir(PACKAGE)):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, name), encoding="utf-8") as file:
                out[name[:-3]] = ast.parse(file.read(), name)
    return out


def imported(tree: ast.Module) -> set[str]:
    """The modules of the package that a module imports."""
    out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            out |= {node.module} if node.module else {alias.name for alias in node.names}
    return out


class Form(unittest.TestCase):
    """The form of all modules"""

    def test_imports(self) -> None:
        """Modules can be put in an order in which each imports only earlier ones."""
        graph = {name: imported(tree) for name, tree in trees().items()}
        list(graphlib.TopologicalSorter(graph).static_order())
        self.assertLessEqual(set.union(*graph.values()), set(graph))

    def test_functions(self) -> None:
        """Functions are short, and have a docstring and type hints."""
        for module, tree in trees().items():
            self.assertTrue(ast.get_docstring(tree), module)
            for node in ast.walk(tree):
                if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    continue
                with self.subTest(f"{module}.{node.name}"):
                    if isinstance(node, ast.ClassDef):
                        self.assertTrue(ast.get_docstring(node))
                        continue
                    self.assertLessEqual((node.end_lineno or 0) - node.lineno, LONGEST)
                    self.assertIsNotNone(node.returns)
                    self.assertTrue(all(arg.annotation for arg in node.args.args
                                        if arg.arg not in ("self", "cls")))
                    nested = node.col_offset > 0
                    self.assertTrue(nested or ast.get_docstring(node))


if __name__ == "__main__":
    unittest.main()

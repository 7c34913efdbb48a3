#!/usr/bin/env python3
"""Writes src/routesim/result_types.py: the schema of results as types.

generate_result_types.py [--check]   with --check, only says whether the file is current
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCHEMA = HERE.parents[1] / "docs" / "reference" / "result.schema.json"
OUTPUT = HERE / "src" / "routesim" / "result_types.py"
HEADER = '''"""The types of `RunResult.raw`. Generated from docs/reference/result.schema.json by
tools/python/generate_result_types.py. Do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def class_name(definition: str) -> str:
    return "".join(word.capitalize() for word in definition.split("_"))


def type_of(schema: dict[str, Any]) -> str:
    """The annotation of a value."""
    if "$ref" in schema:
        return class_name(schema["$ref"].rsplit("/", 1)[1])
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
    if "anyOf" in schema:
        (one,) = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return type_of(one) + (" | None" if len(schema["anyOf"]) > 1 else "")
    kind = schema["type"]
    if isinstance(kind, list):
        (one,) = [k for k in kind if k != "null"]
        return f"{SCALARS[one]} | None"
    if kind == "array":
        return f"list[{type_of(schema['items'])}]"
    if kind == "object":
        value = schema.get("additionalProperties")
        return f"dict[str, {type_of(value) if value else 'Any'}]"
    return SCALARS[kind]


def comment(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, 98, initial_indent=indent, subsequent_indent=indent)


def typed_dict(name: str, schema: dict[str, Any]) -> list[str]:
    if "patternProperties" in schema:  # A TypedDict cannot say which keys there may be.
        return [f"{name} = dict[str, float]"]
    fields = {}
    for key, value in schema["properties"].items():
        annotation = type_of(value)
        fields[key] = annotation if key in schema["required"] else f"NotRequired[{annotation}]"
    if any(keyword.iskeyword(key) for key in fields):
        lines = [f"{name} = TypedDict("]
        lines += [f'    "{name}",', "    {"]
        lines += [f"        {json.dumps(key)}: {json.dumps(a)}," for key, a in fields.items()]
        return [*lines, "    },", ")"]
    lines = [f"class {name}(TypedDict):"]
    if "description" in schema:
        lines += [*comment('"""' + schema["description"] + '"""', "    "), ""]
    for key, annotation in fields.items():
        text = schema["properties"][key].get("description")
        lines += comment(text, "    #: ") if text else []
        lines.append(f"    {key}: {annotation}")
    return lines


def module(schema: dict[str, Any]) -> str:
    parts = [HEADER.rstrip().splitlines()]
    # A dict type is a value at run time, so it stands before its users.
    definitions = sorted(
        schema["definitions"].items(), key=lambda item: "patternProperties" not in item[1]
    )
    for name, definition in definitions:
        parts.append(typed_dict(class_name(name), definition))
    parts.append(typed_dict("Result", schema))
    return "\n\n\n".join("\n".join(part) for part in parts) + "\n"


def main() -> int:
    text = module(json.loads(SCHEMA.read_text(encoding="utf-8")))
    if sys.argv[1:] == ["--check"]:
        current = OUTPUT.exists() and OUTPUT.read_text(encoding="utf-8") == text
        if not current:
            print(f"{OUTPUT.name} is not what {SCHEMA.name} makes: run {Path(__file__).name}")
        return 0 if current else 1
    OUTPUT.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

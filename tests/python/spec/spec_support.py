"""What the tests of the specification share: the model, the generated module, random values, fields by path."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from spec.generator.model import Field, Record, Specification, load  # noqa: E402

SPEC: Specification = load(ROOT / "spec")


def _load_generated() -> ModuleType:
    # By its path: importing the package `unisono` would need the compiled extension.
    name = "unisono_generated_spec"
    found = importlib.util.spec_from_file_location(name, ROOT / "python/unisono/_spec.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


generated: ModuleType = _load_generated()


def pascal(name: str) -> str:
    """snake_case to PascalCase."""
    return "".join(part.capitalize() for part in name.split("_"))


def class_of(record: Record) -> Any:
    """The generated dataclass of a record."""
    return getattr(generated, pascal(record.name))


def leaves(record: Record, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Field]]:
    """Every field that carries information, those of nested records included, with its path."""
    for field in record.visible_fields:
        if field.record is not None:
            yield from leaves(SPEC.records[field.record], (*prefix, field.name))
        else:
            yield (*prefix, field.name), field


def value_at(instance: Any, path: tuple[str, ...]) -> int:
    """The number a field of `instance` holds."""
    for name in path:
        instance = getattr(instance, name)
    return int(instance)


def random_number(source: random.Random, bits: int) -> int:
    """A number of `bits` bits; extreme ones are likelier than chance would have them."""
    top = (1 << bits) - 1
    return source.choice([0, top, 1 << source.randrange(bits), source.getrandbits(bits), source.getrandbits(bits)])


def random_record(source: random.Random, record: Record) -> Any:
    """A legal value of a record."""
    arguments: dict[str, Any] = {}
    for field in record.visible_fields:
        if field.record is not None:
            arguments[field.name] = random_record(source, SPEC.records[field.record])
        elif field.type == "bool":
            arguments[field.name] = source.random() < 0.5
        elif field.type is not None:
            arguments[field.name] = source.choice(list(getattr(generated, pascal(field.type))))
        else:
            arguments[field.name] = random_number(source, field.bits)
    return class_of(record)(**arguments)

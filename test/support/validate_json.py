"""Validates JSON with the schemas of the host's command, and prints what does not conform:

    validate_json.py SCHEMAS NAME FILE      the document, or the lines, of a file with the schema NAME
    validate_json.py SCHEMAS PAGE.md        the examples of a page with the schemas that its sections link to
"""
import json
import os
import re
import sys

import jsonschema


def validate(schemas, name, text):
    """Prints the errors of the documents that a text consists of; returns their number."""
    with open(os.path.join(schemas, name + ".json"), encoding="utf-8") as file:
        validator = jsonschema.Draft7Validator(json.load(file))
    validator.check_schema(validator.schema)
    count = 0
    while text.strip():
        document, end = json.JSONDecoder().raw_decode(text.lstrip())
        text, count = text.lstrip()[end:], count + 1
        for error in validator.iter_errors(document):
            print(f"{name}: {error}")
    return count


def main(schemas, *words):
    """Validates; fails if there is nothing to validate."""
    if len(words) == 2:
        name, path = words
        with open(path, encoding="utf-8") as file:
            return validate(schemas, name, file.read())
    with open(words[0], encoding="utf-8") as file:
        sections = file.read().split("\n## ")[1:]
    count = 0
    for section in sections:
        name = re.search(r"\[Schema\]\(\S*/(\w+)\.json\)", section).group(1)
        count += sum(validate(schemas, name, example) for example in re.findall(r"```json\n(.*?)```", section, re.S))
    return count


if __name__ == "__main__":
    sys.exit(0 if main(*sys.argv[1:]) else "nothing to validate")

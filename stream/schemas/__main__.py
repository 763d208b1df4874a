"""Write the schema documents anew."""

from pathlib import Path

from stream.schemas import NAMES, derive, file_name

for name in NAMES:
    (Path(__file__).parent / file_name(name)).write_bytes(derive(name))

"""Arrow tables from the compiled part and from Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flowloom import _core
from flowloom.runs.core import Stream


def column(table: pa.Table, name: str) -> list[Any]:
    """Returns a column as a list."""
    values: list[Any] = table[name].to_pylist()
    return values


def read(stream: Stream) -> pa.Table:
    """Reads an Arrow table from an Arrow stream."""
    return pa.RecordBatchReader.from_stream(stream).read_all()


def part(file: Path, columns: Sequence[str] | None, where: pc.Expression | None = None) -> pa.Table:
    """Reads the table of one point: all columns, or those of `columns` that it has. A counter is a
    column only if its point has it.

    With `where`, only the rows that it chooses are kept in memory.
    """
    # Arrow would read a relative path such as `alpha:0.9/x` as a URI.
    path = file.absolute()
    try:
        with pq.ParquetFile(path) as whole:
            wanted = None if columns is None else [name for name in whole.schema_arrow.names if name in columns]
            # Arrow's datasets take longer to import and to set up: they are used only with a filter.
            return whole.read(wanted) if where is None else pq.read_table(path, columns=wanted, filters=where)
    except pa.ArrowException as error:
        hint = "repeat the `flowloom run` that wrote the folder: it runs damaged points again and keeps the others"
        raise _core.StorageError(f"`{file}` is damaged: it is not a whole Parquet file\nhint: {hint}") from error

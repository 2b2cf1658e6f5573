//! The data dictionary, docs/data.md: descriptions of every column of every table and of every
//! metric.

use crate::schema::*;
use crate::stats::{METRICS, Metric};
use arrow_schema::DataType;
use base::registry::Entry;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

/// Returns the data dictionary, docs/data.md.
pub fn dictionary() -> String {
    let mut out = String::from(DICTIONARY_HEAD);
    write_table(&mut out, &FLOWS);
    write_table(&mut out, &PORTS);
    write_table(&mut out, &TASKS);
    write_table(&mut out, &PARTS);
    write_table(&mut out, &RANK_TIMES);
    write_table(&mut out, &SAMPLES);
    write_table(&mut out, &AGENTS);
    write_table(&mut out, &PACKETS);
    out.push_str(COUNTERS);
    write_counters(&mut out);
    let keys = "The keys `point`, `system`, `seed` and one column per swept key come first.";
    write_notes(
        &mut out,
        "Keys",
        "The first columns of every table that `flowloom.Results` returns. Each swept key has a column \
        with its dotted name (`workload.web.load`). The column is a number if all values are numbers, otherwise text; it is null at points of \
        systems that do not have the key.",
        KEYS,
    );
    write_notes(&mut out, "points", &format!("One row per point. {keys}"), POINTS);
    write_notes(
        &mut out,
        "summary (file), per_seed()",
        &format!(
            "One row per point and metric. {keys} The file leaves out metrics \
        that depend on the machine, such as `wall_s`, so that equal runs give equal files."
        ),
        PER_SEED,
    );
    write_notes(
        &mut out,
        "summary()",
        "One row per system, value of the swept keys and metric, over seeds. `system` and the swept \
        keys come first.",
        SUMMARY,
    );
    write_notes(
        &mut out,
        "by_size()",
        "One row per system, value of the swept keys, bin of flow sizes, quantity and statistic. `system` and the swept keys come first. \
        All systems have the same bins.",
        BY_SIZE,
    );
    write_notes(
        &mut out,
        "series()",
        &format!("One row per point, metric and entity with samples in the measurement window. {keys}"),
        SERIES,
    );
    write_notes(&mut out, "groups()", &format!("One row per point and group of flows that began. {keys}"), GROUPS);
    write_notes(
        &mut out,
        "compare()",
        "One row per pair of systems and value of the swept keys, which come first. Flows are paired \
        by `flow_id` within a seed: all systems of a scenario carry the same flows.",
        COMPARE,
    );
    out.push_str(METRICS_HEAD);
    out.push_str("| metric | unit | |\n|---|---|---|\n");
    for Metric { name, unit, about, .. } in METRICS {
        let _ = writeln!(out, "| `{name}` | {unit} | {about} |");
    }
    out
}

const DICTIONARY_HEAD: &str = "# Data dictionary

Written by `make docs` from `crates/tables/src/schema.rs`; do not edit.

A run folder holds `manifest.json` (the resolved scenario, versions, and the time and memory of the run), `points.parquet`,
`summary.parquet` and a folder for every point. The folder of a point holds `flows.parquet`, `ports.parquet`, on request `samples.parquet`,
`agents.parquet` and `packets.parquet`, and its own `manifest.json` with the length and hash of each of these tables. Tables are Parquet
files with zstd compression. The schema's metadata has the units and descriptions of the columns. Names of columns end in their unit.
Times are picoseconds from the start of the run. The type \"dictionary\" is text stored as an index into a list of words.

## Hashes

Results that have changed since they were written are not read. A manifest ends in `manifest_hash`, the hash of all
bytes of the file before the comma in front of that key. The manifest of a point holds the length
and the hash of each of its tables (`files`). The manifest of the run holds the hash of the manifest
of each point that is done (`done`), the length and the hash of `points.parquet` and
`summary.parquet` (`files`), and the hash of each file that the scenario reads (`inputs`; the hash
is of the content without a byte order mark; the hash of a plug-in is `sha256:` and its SHA-256). Any other hash is XXH3 with 64 bits, as 16 hexadecimal digits. It detects
damage and edits, but not forgery.

Every command that reads a folder, and `flowloom.open`, check the manifests first, and each table when
it is first read. `flowloom run` reruns damaged points and keeps the others. `flowloom pack`
checks every file, and `flowloom merge` refuses shards that read different `inputs`. Ids of points
and names of files in manifests are also checked, so that no path leads out of the folder.

Folders of layout 4 and earlier have no `manifest_hash` and cannot be read: the error names both
layouts. Rerun the scenario with `--overwrite`, or into another folder.

No command overwrites results: `--out` must not name a manifest, a table, the folder of a point or a
file that no command has made. New files in the same folder can be written, and reports, figures,
exports and archives can be replaced.

";

const METRICS_HEAD: &str = "## Metrics

One value per point, over the flows that finished unless the description says otherwise. Quantiles are by nearest rank.

The *window* is the measurement window, from the first start of a flow to the last unless `[measure]` sets another (`flowloom explain measure`). If
all flows start at the same time, the window ends when the last flow finishes or, if flows remain unfinished, when the run ends. With programs of
ranks and other workloads whose flows start when other flows have ended, the window is the whole job.
`points` has the start and the end of the window. Metrics of the window are exact: counters are read at both ends.

";

const COUNTERS: &str = "## Counters

Counters that only some protocols have are extra columns after the columns above: counters of flows in `flows.parquet`, counters of ports in
`ports.parquet`. The name of the column is the name of the entry and of the counter, such as `homa.grants`; the type is uint64; the unit and
the description are in the schema's metadata, too. `flows()` and `ports()` have the columns of all systems of the run, with null at points of
systems without the counter.

";

fn write_table<R>(out: &mut String, table: &Table<R>) {
    let rows = table.columns.iter().map(|c| {
        let (ty, nullable) = c.data_type();
        (c.name, ty, nullable, c.unit, (c.about)().into())
    });
    write_rows(out, &table.file(Path::new("")).to_string_lossy(), &format!("{}.", upper_first(table.about)), rows);
}

fn write_notes(out: &mut String, title: &str, about: &str, notes: &[Note]) {
    write_rows(out, title, about, notes.iter().map(|n| (n.name, (n.ty)(), n.nullable, n.unit, n.about.into())));
}

fn write_rows<'a>(
    out: &mut String,
    title: &str,
    about: &str,
    rows: impl Iterator<Item = (&'a str, DataType, bool, &'a str, Cow<'a, str>)>,
) {
    let _ = write!(out, "## {title}\n\n{about}\n\n| column | type | null | unit | |\n|---|---|---|---|---|\n");
    for (name, ty, nullable, unit, about) in rows {
        let ty = if matches!(ty, DataType::Dictionary(..)) { "dictionary".to_owned() } else { ty.to_string().to_lowercase() };
        let _ = writeln!(out, "| `{name}` | {ty} | {} | {unit} | {about} |", if nullable { "yes" } else { "" });
    }
    out.push('\n');
}

/// Writes a row for each counter of a built-in entry, in the order of slots and entries.
fn write_counters(out: &mut String) {
    use fabric::{buffer, qdisc, receiver, router};
    use proto::{policy, transport};
    let rooms: [(&str, &[Entry]); 6] = [
        ("flows", transport::ROOM.entries),
        ("flows", policy::ROOM.entries),
        ("ports", qdisc::ROOM.entries),
        ("ports", router::ROOM.entries),
        ("ports", receiver::ROOM.entries),
        ("ports", buffer::ROOM.entries),
    ];
    out.push_str("| table | column | unit | |\n|---|---|---|---|\n");
    for (table, entries) in rooms {
        for (entry, counter) in entries.iter().flat_map(|entry| entry.meta.counters.iter().map(move |counter| (entry, counter))) {
            let _ = writeln!(out, "| {table} | `{}.{}` | {} | {} |", entry.name, counter.name, counter.unit, counter.about);
        }
    }
    out.push('\n');
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_dictionary_is_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/data.md");
        if std::env::var_os("FLOWLOOM_UPDATE").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, dictionary()).unwrap();
        }
        let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(checked_in == dictionary(), "docs/data.md is out of date: run `make docs`");
    }
}

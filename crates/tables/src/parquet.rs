//! Reading and atomic writing of Parquet files, and hashes of files.

use crate::arrow;
use crate::error::{Error, Result};
use crate::schema::{CounterColumn, Table};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Number of rows of a row group, and of the batches in which files are written and read.
pub const GROUP_ROWS: usize = 1 << 16;

/// The length and hash of a file as it was written, to detect damage later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its name, without its folder.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// A hash of its content, as 16 hexadecimal digits.
    pub hash: String,
}

impl Written {
    fn new(path: &Path, content: &[u8]) -> Written {
        let name = path.file_name().expect("files of a run folder have names").to_string_lossy().into_owned();
        Written { name, bytes: content.len() as u64, hash: hash(content) }
    }
    /// Fails if the file in `dir` is missing or has another length.
    pub fn check_length(&self, dir: &Path) -> Result<()> {
        let path = dir.join(&self.name);
        match fs::metadata(&path) {
            Ok(found) if found.is_file() && found.len() == self.bytes => Ok(()),
            Ok(found) if found.is_file() => {
                Err(Error::damaged(&path, format!("it has {} bytes, but {} were written", found.len(), self.bytes)))
            }
            Ok(_) => Err(Error::damaged(&path, "it is not a file")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Error::damaged(&path, "it is gone")),
            Err(e) => Err(Error::io("read", &path, e)),
        }
    }
    /// Fails if a byte of the file in `dir` has changed.
    pub fn check_content(&self, dir: &Path) -> Result<()> {
        self.check_length(dir)?;
        let path = dir.join(&self.name);
        let found = hash_of_file(&path).map_err(|e| Error::io("read", &path, e))?;
        if found == self.hash { Ok(()) } else { Err(Error::damaged(&path, OTHER_CONTENT)) }
    }
}

/// The description of the damage if a file does not have its hash.
pub(crate) const OTHER_CONTENT: &str = "its content is not what was written";

/// Returns the hash of a content as manifests store it: 64-bit XXH3, as 16 hexadecimal digits.
pub fn hash(content: &[u8]) -> String {
    format!("{:016x}", xxh3_64(content))
}

/// Returns the [`hash`] of a file of any length.
fn hash_of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut piece) = (fs::File::open(path)?, Xxh3::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(format!("{:016x}", hash.digest())),
            n => hash.update(&piece[..n]),
        }
    }
}

/// The files whose content was compared with their hashes. Each file is compared only once, even if
/// it is read several times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Compared(Arc<Mutex<BTreeSet<PathBuf>>>);

impl Compared {
    /// Returns the path of a file in `dir`. Fails if its content is not what was written.
    pub fn path(&self, dir: &Path, file: &Written) -> Result<PathBuf> {
        let path = dir.join(&file.name);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(&path) {
            file.check_content(dir)?;
            known.insert(path.clone());
        }
        Ok(path)
    }
}

/// Writes rows as `table`. `list` holds the words of [`crate::schema::Get::Listed`] columns;
/// `counters` describes the counts of the rows.
pub fn write_rows<R>(path: &Path, table: &Table<R>, rows: &[R], list: &[String], counters: &[CounterColumn]) -> Result<Written> {
    write(path, table.schema(counters), rows.chunks(GROUP_ROWS).map(|chunk| arrow::batch(table, chunk, list, counters)))
}

/// Writes batches with one schema.
pub fn write(path: &Path, schema: SchemaRef, batches: impl Iterator<Item = RecordBatch>) -> Result<Written> {
    // A fixed writer name: an upgrade of the library must not change the bytes of files just by its
    // version.
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by("flowloom".to_owned())
        .build();
    // The file is encoded in memory, so that it is written in one call and errors of the operating
    // system are not wrapped.
    let encode = || -> std::result::Result<Vec<u8>, ParquetError> {
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
        for batch in batches {
            writer.write(&batch)?;
        }
        writer.into_inner()
    };
    let bytes = encode().map_err(|e| Error::damaged(path, e))?;
    replace(path, &bytes)?;
    Ok(Written::new(path, &bytes))
}

/// Reads a file in batches: all columns or the named columns, in the order of the file.
pub fn read(path: &Path, columns: Option<&[&str]>) -> Result<ParquetRecordBatchReader> {
    let file = fs::File::open(path).map_err(|e| Error::io("read", path, e))?;
    let open = || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)?.with_batch_size(GROUP_ROWS);
        let mask = match columns {
            Some(names) => ProjectionMask::columns(builder.parquet_schema(), names.iter().copied()),
            None => ProjectionMask::all(),
        };
        builder.with_projection(mask).build()
    };
    open().map_err(|_| Error::damaged(path, "it is not a whole Parquet file"))
}

/// Writes a file under a temporary name and renames it, so that no reader sees an incomplete file.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().expect("files of a run folder have names").to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|e| {
        // The incomplete file is removed because it takes disk space. Only the first error is
        // reported.
        let _ = fs::remove_file(&temporary);
        Error::io("write", path, e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FLOWS, PACKETS, PORTS, SAMPLES};
    use arrow_array::Array as _;
    use sim::outcome::{FlowRow, PacketRow, PortRow, SampleRow};

    fn round_trip<R>(table: &Table<R>, rows: &[R]) -> RecordBatch {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let list = ["web".to_owned(), "bulk".to_owned()];
        write_rows(&path, table, rows, &list, &[]).unwrap();
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["t.parquet"], "no temporary file is left");
        let file = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(*file.schema(), table.schema(&[]), "descriptions included");
        let batches: Vec<RecordBatch> = read(&path, None).unwrap().map(|b| b.unwrap()).collect();
        let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
        let expected = arrow::batch(table, rows, &list, &[]);
        for (i, column) in table.columns.iter().enumerate() {
            assert_eq!(batch.column(i), expected.column(i), "{}", column.name);
        }
        batch.clone()
    }

    #[test]
    fn rows_come_back_with_their_descriptions() {
        let flows = [
            FlowRow {
                flow_id: 1,
                start_ps: Some(5),
                finish_ps: Some(25),
                ideal_fct_ps: 10,
                bottleneck_bps: 8,
                ..FlowRow::default()
            },
            FlowRow { flow_id: 2, workload: 1, group_id: Some(u64::MAX - 1), deadline_ps: Some(7), ..FlowRow::default() },
        ];
        let batch = round_trip(&FLOWS, &flows);
        assert_eq!(batch.schema().field_with_name("fct_ps").unwrap().metadata()["unit"], "ps");
        assert!(batch.column_by_name("slowdown").unwrap().is_null(1));
        assert!(batch.column_by_name("deadline_met").unwrap().is_null(0));
        let starts = batch.column_by_name("start_ps").unwrap();
        assert_eq!([0, 1].map(|i| starts.is_null(i)), [false, true], "null: never began");
        round_trip(&PORTS, &[PortRow { name: "a->b".into(), mean_queue_bytes: 0.5, ..PortRow::default() }]);
        round_trip(&SAMPLES, &[SampleRow { time_ps: 1, entity: 2, metric: "port.queue_bytes", value: 3.0 }]);
        let packet = PacketRow {
            time_ps: 1,
            end_ps: 2,
            port_id: 3,
            kind: "data",
            flow_id: 4,
            offset: 5,
            size_bytes: 6,
            class: 7,
            dropped: true,
        };
        round_trip(&PACKETS, &[packet]);
    }

    #[test]
    fn no_rows_are_a_table_without_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        write_rows(&path, &SAMPLES, &[], &[], &[]).unwrap();
        let reader = read(&path, None).unwrap();
        assert_eq!(reader.map(|b| b.unwrap().num_rows()).sum::<usize>(), 0);
    }

    #[test]
    fn equal_rows_give_equal_bytes_over_several_groups() {
        let rows: Vec<SampleRow> = (0..GROUP_ROWS as u64 * 2 + 5)
            .map(|i| SampleRow {
                time_ps: i,
                entity: i as u32 % 7,
                metric: ["flow.rate_bps", "flow.cwnd_bytes"][(i % 2) as usize],
                value: 0.5,
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|n| dir.path().join(n));
        for path in &paths {
            write_rows(path, &SAMPLES, &rows, &[], &[]).unwrap();
        }
        assert!(fs::read(&paths[0]).unwrap() == fs::read(&paths[1]).unwrap());
        let times: Vec<i64> = read(&paths[0], Some(&["time_ps"]))
            .unwrap()
            .flat_map(|b| {
                let b = b.unwrap();
                assert_eq!(b.num_columns(), 1);
                b.column(0).as_any().downcast_ref::<arrow_array::Int64Array>().unwrap().values().to_vec()
            })
            .collect();
        assert!(times.iter().copied().eq(0..rows.len() as i64));
    }

    #[test]
    fn a_file_that_was_cut_changed_or_removed_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let rows = [SampleRow { time_ps: 1, entity: 2, metric: "port.queue_bytes", value: 3.0 }];
        let written = write_rows(&path, &SAMPLES, &rows, &[], &[]).unwrap();
        let whole = fs::read(&path).unwrap();
        written.check_content(dir.path()).unwrap();
        let why = |content: Option<&[u8]>, check: fn(&Written, &Path) -> Result<()>| {
            match content {
                Some(content) => fs::write(&path, content).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            check(&written, dir.path()).err().map(|e| e.to_string())
        };
        assert!(why(Some(&whole[1..]), Written::check_length).unwrap().contains(&format!("{} were written", whole.len())));
        let changed: Vec<u8> = whole.iter().map(|byte| !byte).collect();
        assert_eq!(why(Some(&changed), Written::check_length), None);
        assert!(why(Some(&changed), Written::check_content).unwrap().contains("not what was written"));
        assert!(why(None, Written::check_length).unwrap().ends_with("it is gone"));
    }

    #[test]
    fn a_file_is_compared_with_its_hash_once() {
        let dir = tempfile::tempdir().unwrap();
        let long: Vec<u8> = (0..1_000_003u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        for (name, content) in [("a", &long[..]), ("b", b"")] {
            fs::write(dir.path().join(name), content).unwrap();
            let written = Written::new(&dir.path().join(name), content);
            let compared = Compared::default();
            assert_eq!(compared.path(dir.path(), &written).unwrap(), dir.path().join(name));
            // A compared file is not read again.
            fs::remove_file(dir.path().join(name)).unwrap();
            compared.clone().path(dir.path(), &written).unwrap();
            assert!(Compared::default().path(dir.path(), &written).is_err());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn errors_of_the_operating_system_are_classified() {
        let full = fs::write("/dev/full", b"x").map_err(|e| Error::io("write", Path::new("f"), e)).unwrap_err();
        assert!(matches!(full, Error::Full { .. }), "{full}");
        let missing = read(Path::new("/nonexistent/f"), None).err().unwrap();
        assert!(matches!(missing, Error::Io { .. }), "{missing}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.parquet");
        fs::write(&path, b"not parquet").unwrap();
        let damaged = read(&path, None).err().unwrap();
        assert!(matches!(damaged, Error::Damaged { .. }), "{damaged}");
        fs::create_dir(dir.path().join("d")).unwrap();
        let onto_a_folder = replace(&dir.path().join("d"), b"x").unwrap_err();
        assert!(matches!(onto_a_folder, Error::Io { .. }), "{onto_a_folder}");
        assert!(!dir.path().join("d.tmp").exists());
    }
}

//! Files that a scenario names, read once.

pub mod columns;
pub mod ns3;
pub mod plugins;
pub mod rows;
pub mod tokens;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Contents of files by path, relative to the folder of the scenario. A file is read at the first
/// request; the runs use this content, and their hash covers it.
#[derive(Debug, Default)]
pub struct Files {
    dir: PathBuf,
    texts: Read<str>,
    bytes: Read<[u8]>,
    made: Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>,
    warnings: Mutex<BTreeSet<Warning>>,
}

/// A warning about the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Path of the file, as the scenario names it.
    pub path: String,
    /// What is left out, and where.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Contents that have been read, by path.
type Read<T> = Mutex<BTreeMap<String, Result<Arc<T>, String>>>;

/// The byte order mark that some programs write before UTF-8 text. It is not part of any format.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 2 << 30;

impl Files {
    /// Creates an empty set of files relative to `dir`.
    pub fn new(dir: &Path) -> Files {
        Files { dir: dir.to_owned(), ..Files::default() }
    }
    /// Returns the text of a file, without a byte order mark. The error is a complete message that
    /// names the file.
    pub fn text(&self, path: &str) -> Result<Arc<str>, String> {
        let known = lock(&self.bytes).get(path).cloned();
        self.once(&self.texts, path, |at| {
            let bytes = match known {
                // Already read for the hash.
                Some(Ok(bytes)) => bytes,
                _ => std::fs::read(at)?.into(),
            };
            std::str::from_utf8(without_mark(&bytes)).map(Arc::from).map_err(|_| io::ErrorKind::InvalidData.into())
        })
    }
    /// Returns the bytes of a binary file. The error is a complete message that names the file.
    pub fn bytes(&self, path: &str) -> Result<Arc<[u8]>, String> {
        self.once(&self.bytes, path, |path| std::fs::read(path).map(Arc::from))
    }
    /// Returns whether a file with this path exists.
    pub fn has(&self, path: &str) -> bool {
        self.dir.join(path).is_file()
    }
    /// Returns the paths of the files whose names are that of `prefix`, a number and `end`, in order.
    pub fn numbered(&self, prefix: &str, end: &str) -> Vec<String> {
        let (folder, start) = prefix.rsplit_once('/').map_or(("", prefix), |(folder, start)| (folder, start));
        let names = std::fs::read_dir(self.dir.join(if folder.is_empty() { "." } else { folder })).into_iter().flatten();
        let number = |name: &String| {
            let number = name.strip_prefix(start)?.strip_suffix(end)?;
            (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(())
        };
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| number(name).is_some());
        let mut found: Vec<String> = names.map(|name| prefix[..prefix.len() - start.len()].to_owned() + &name).collect();
        found.sort();
        found
    }
    /// Returns a hash of the content of a file. A byte order mark does not change the hash.
    pub fn hash(&self, path: &str) -> Result<u64, String> {
        if let Some(text) = lock(&self.texts).get(path) {
            return text.clone().map(|text| xxh3_64(text.as_bytes()));
        }
        self.bytes(path).map(|bytes| xxh3_64(without_mark(&bytes)))
    }
    /// Returns the value that `make` creates from files; it is created once per key. The key names
    /// the reader and everything that the result depends on, except the contents of files.
    pub fn made<T: Any + Send + Sync>(&self, key: String, make: impl FnOnce() -> Result<T, String>) -> Result<Arc<T>, String> {
        let mut made = lock(&self.made);
        let known = made.get(&key).and_then(|known| known.downcast_ref::<Result<Arc<T>, String>>());
        if let Some(known) = known {
            return known.clone();
        }
        let new = make().map(Arc::new);
        made.insert(key, Arc::new(new.clone()));
        new
    }
    /// Adds a warning about the content of a file. `check` and `run` print it at the `path` that
    /// names the file.
    pub fn warn(&self, path: &str, message: String, hint: &str) {
        lock(&self.warnings).insert(Warning { path: path.to_owned(), message, hint: hint.to_owned() });
    }
    /// Returns the warnings of all readers so far.
    pub fn warnings(&self) -> Vec<Warning> {
        lock(&self.warnings).iter().cloned().collect()
    }
    fn once<T: ?Sized>(
        &self,
        read: &Read<T>,
        path: &str,
        load: impl FnOnce(&Path) -> io::Result<Arc<T>>,
    ) -> Result<Arc<T>, String> {
        let mut read = lock(read);
        if let Some(known) = read.get(path) {
            return known.clone();
        }
        let at = self.dir.join(path);
        let found = sane(&at).and_then(|()| load(&at).map_err(say)).map_err(|why| format!("cannot read the file `{path}`: {why}"));
        read.insert(path.to_owned(), found.clone());
        found
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PartialEq for Files {
    fn eq(&self, other: &Files) -> bool {
        self.dir == other.dir
    }
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// Returns the message of an error, as the end of a sentence.
fn say(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

fn sane(path: &Path) -> Result<(), String> {
    let meta = std::fs::metadata(path).map_err(say)?;
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    if meta.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, but at most {MAX_BYTES} are allowed", meta.len()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.csv");
        std::fs::write(&path, "1").unwrap();
        let files = Files::new(dir.path());
        let first = files.hash("a.csv").unwrap();
        std::fs::write(&path, "2").unwrap();
        assert_eq!((&*files.text("a.csv").unwrap(), files.hash("a.csv").unwrap()), ("1", first));
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_a_text() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("plain"), "a").unwrap();
        std::fs::write(dir.path().join("marked"), "\u{feff}a").unwrap();
        let hash = |path: &str| Files::new(dir.path()).hash(path).unwrap();
        assert_eq!(hash("plain"), hash("marked"));
        let files = Files::new(dir.path());
        assert_eq!((&*files.text("marked").unwrap(), files.hash("marked").unwrap()), ("a", hash("plain")));
    }

    #[test]
    fn what_is_made_of_files_is_made_once() {
        let (files, mut made) = (Files::default(), 0);
        let mut of = |key: &str| {
            files.made(key.to_owned(), || {
                made += 1;
                if key == "bad" { Err("no".to_owned()) } else { Ok(made) }
            })
        };
        let results = [of("a"), of("b"), of("a"), of("bad"), of("bad")].map(|result| result.map(|number| *number));
        let no = || Err("no".to_owned());
        assert_eq!((results, made), ([Ok(1), Ok(2), Ok(1), no(), no()], 3));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("bad"), [0xff, 0xfe]).unwrap();
        let files = Files::new(dir.path());
        for (path, why) in [("none.csv", "no such file"), (".", "not a file"), ("bad", "UTF-8")] {
            let message = files.text(path).unwrap_err();
            assert!(message.contains(why) && message.contains(path), "{message}");
        }
        assert_eq!((&*files.bytes("bad").unwrap(), files.has("bad"), files.has("none.csv")), (&[0xff, 0xfe][..], true, false));
    }
}

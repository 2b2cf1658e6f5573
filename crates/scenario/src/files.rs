//! Files that a scenario names, read once.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use xxhash_rust::xxh3::xxh3_64;

/// Texts by the path that the scenario writes, relative to its own folder. A file is read when first asked for; what was read
/// then is what the runs use, and what their hash covers.
#[derive(Debug, Default)]
pub struct Files {
    dir: PathBuf,
    read: Mutex<BTreeMap<String, Result<Arc<str>, String>>>,
}

/// Files larger than this are refused.
const MAX_BYTES: u64 = 2 << 30;

impl Files {
    /// Files relative to `dir`.
    pub fn new(dir: &Path) -> Files {
        Files { dir: dir.to_owned(), read: Mutex::default() }
    }
    /// The text of a file. The error is a sentence that names it.
    pub fn text(&self, path: &str) -> Result<Arc<str>, String> {
        let mut read = self.read.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = read.get(path) {
            return known.clone();
        }
        let text = load(&self.dir.join(path)).map_err(|why| format!("cannot read the file `{path}`: {why}"));
        read.insert(path.to_owned(), text.clone());
        text
    }
    /// A hash of a file's text.
    pub fn hash(&self, path: &str) -> Result<u64, String> {
        Ok(xxh3_64(self.text(path)?.as_bytes()))
    }
}

impl PartialEq for Files {
    fn eq(&self, other: &Files) -> bool {
        self.dir == other.dir
    }
}

fn load(path: &Path) -> Result<Arc<str>, String> {
    let say = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    };
    let meta = std::fs::metadata(path).map_err(say)?;
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    if meta.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, at most {MAX_BYTES} are read", meta.len()));
    }
    std::fs::read_to_string(path).map(Arc::from).map_err(say)
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
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("bad"), [0xff, 0xfe]).unwrap();
        let files = Files::new(dir.path());
        for (path, why) in [("none.csv", "no such file"), (".", "not a file"), ("bad", "UTF-8")] {
            let message = files.text(path).unwrap_err();
            assert!(message.contains(why) && message.contains(path), "{message}");
        }
    }
}

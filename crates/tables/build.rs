//! Hashes the sources on which results depend, so that manifests record which program wrote them.

use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// The crates on which results depend.
const CRATES: [&str; 6] = ["base", "engine", "proto", "fabric", "scenario", "sim"];

fn main() {
    let mut files = Vec::new();
    for name in CRATES {
        let src = Path::new("..").join(name).join("src");
        println!("cargo::rerun-if-changed={}", src.display());
        collect(&src, &mut files);
    }
    println!("cargo::rerun-if-changed=build.rs");
    files.sort();
    let mut hash = Xxh3::new();
    for file in files {
        hash.update(file.to_string_lossy().as_bytes());
        hash.update(&std::fs::read(&file).expect("a file that was just listed can be read"));
    }
    println!("cargo::rustc-env=FLOWLOOM_SOURCES={:08x}", hash.digest() >> 32);
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

//! Plug-ins: loads the files that scenarios name as protocols.
//!
//! A plug-in is loaded once per content: the file is copied to a temporary file, which is loaded
//! and removed, so that a file that is built again is loaded again in the same process, and the
//! content that runs is the content that was hashed. A plug-in is never unloaded.

use super::Files;
use base::registry::PluginRoom;
use plugin::abi::{Head, SYMBOL};
use plugin::library::{Code, EXAMPLE_FILE, EXAMPLE_TRANSPORT, Library};
use sha2::{Digest as _, Sha256};
use std::error::Error as _;
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Loads a plug-in of an interpreter, from its path, its text and the SHA-256 of its content. The
/// error completes a sentence about the plug-in.
pub type Interpreter = fn(&str, &str, &str) -> Result<Library, String>;

/// The ending of files for the interpreter.
const SCRIPT: &str = ".py";
/// The ending of files in WebAssembly.
const MODULE: &str = ".wasm";

static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();

/// Sets the loader of Python files. A program without it refuses them. The first call counts.
pub fn set_interpreter(load: Interpreter) {
    let _ = INTERPRETER.set(load);
}

/// The plug-ins of this process.
static LOADED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

impl Files {
    /// Returns the plug-in that a part of a system names: a file, or the example of the room. The
    /// error is a complete message that names the file.
    pub(crate) fn plugin_of(&self, room: PluginRoom, path: &str) -> Result<&'static Library, String> {
        match path {
            EXAMPLE_FILE => Ok((room.example)()),
            EXAMPLE_TRANSPORT => Ok(Library::example_transport()),
            _ => self.plugin(path),
        }
    }
    /// Returns the plug-in in a file. The error is a complete message that names the file.
    pub(crate) fn plugin(&self, path: &str) -> Result<&'static Library, String> {
        let content = self.bytes(path)?;
        let load = || load(path, &content).map_err(|why| format!("cannot load the plug-in `{path}`: {why}"));
        self.made(format!("plug-in {path}"), load).map(|library| *library)
    }
}

/// Returns the SHA-256 of a content in hexadecimal digits.
fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn load(path: &str, content: &[u8]) -> Result<&'static Library, String> {
    let digest = digest(content);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = loaded.iter().find(|known| known.digest == digest && known.file == path) {
        return Ok(known);
    }
    let library = match path {
        _ if path.ends_with(SCRIPT) => script(path, content, &digest)?,
        _ if path.ends_with(MODULE) => wasm::load(path, content, &digest)?,
        _ => native(path, content, &digest)?,
    };
    let library: &'static Library = Box::leak(Box::new(library));
    loaded.push(library);
    Ok(library)
}

fn script(path: &str, content: &[u8], digest: &str) -> Result<Library, String> {
    let load = INTERPRETER.get().ok_or("this program has no Python interpreter")?;
    let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8 text")?;
    load(path, text, digest)
}

#[allow(unsafe_code)]
fn native(path: &str, content: &[u8], digest: &str) -> Result<Library, String> {
    is_whole(content)?;
    let (before, after) = ("flowloom-plugin-", std::env::consts::DLL_SUFFIX);
    let copy = tempfile::Builder::new().prefix(before).suffix(after).tempfile();
    let mut copy = copy.map_err(|why| format!("no temporary file can be written: {why}"))?;
    copy.write_all(content).and_then(|()| copy.flush()).map_err(|why| format!("no temporary file can be written: {why}"))?;
    // The file must not be open for writing while it is loaded.
    let copy = copy.into_temp_path();
    // Safety: the user trusts the code of a native plug-in; `check` says so.
    let library = unsafe { libloading::Library::new(copy.as_os_str()) };
    let library = library.map_err(|why| without(&reason(&why), &copy.display().to_string()))?;
    let table = {
        let function = unsafe { library.get::<unsafe extern "C" fn() -> *const Head>(SYMBOL.as_bytes()) };
        let function = function.map_err(|_| format!("it exports no function `{SYMBOL}`"))?;
        unsafe { function() }
    };
    // It stays loaded, because threads may still use it.
    std::mem::forget(library);
    unsafe { Library::new(table, path, digest, Code::Native) }
}

/// Returns the message of the system.
fn reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns the message of the system without the name of the temporary copy.
fn without(message: &str, copy: &str) -> String {
    message.replace(&format!("{copy}: "), "").replace(copy, "it")
}

/// Refuses files that are no shared libraries of this system, and libraries that are cut off: the
/// system would load them and crash.
fn is_whole(content: &[u8]) -> Result<(), String> {
    const NOT: &str = "it is not a shared library of this system";
    if cfg!(target_os = "macos") {
        let magic = content.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
        return if matches!(magic, Some(0xfeed_facf | 0xbeba_feca | 0xbfba_feca)) { Ok(()) } else { Err(NOT.to_owned()) };
    }
    if cfg!(windows) {
        return if content.starts_with(b"MZ") { Ok(()) } else { Err(NOT.to_owned()) };
    }
    // ELF, 64 bits, little endian.
    if !content.starts_with(b"\x7fELF\x02\x01") {
        return Err(NOT.to_owned());
    }
    if elf_end(content).is_some_and(|end| end <= content.len() as u64) {
        Ok(())
    } else {
        Err("it is cut off: build or copy it again".to_owned())
    }
}

/// Returns the end of the tables and segments of an ELF file, or `None` if they are not in the file.
fn elf_end(content: &[u8]) -> Option<u64> {
    /// The type of a segment that is mapped: `PT_LOAD`.
    const MAPPED: u64 = 1;
    let number = |at: u64, len: usize| {
        let at = usize::try_from(at).ok()?;
        let bytes = content.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let (segments, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    let mut end = segments.checked_add(size * count)?;
    end = end.max(number(0x28, 8)?.checked_add(number(0x3a, 2)? * number(0x3c, 2)?)?);
    for i in 0..count {
        let at = segments.checked_add(i * size)?;
        if number(at, 4)? == MAPPED {
            end = end.max(number(at.checked_add(8)?, 8)?.checked_add(number(at.checked_add(0x20)?, 8)?)?);
        }
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_standard() {
        // FIPS 180-4, the example "abc".
        assert_eq!(digest(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn files_that_are_no_plug_ins_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let system = std::env::current_exe().unwrap();
        let whole = std::fs::read(system).unwrap();
        // Without the table of sections, which is at the end.
        let mut stripped = whole.clone();
        [0x28..0x30, 0x3c..0x3e].into_iter().for_each(|range| stripped[range].fill(0));
        assert!(is_whole(&whole).is_ok() && is_whole(&stripped).is_ok());
        let cases: [(&str, &[u8], &str); 6] = [
            ("stripped.so", &stripped[..elf_end(&stripped).unwrap() as usize - 1], "cut off"),
            ("text.so", b"int main(void) { return 0; }\n", "not a shared library"),
            ("empty.so", b"", "not a shared library"),
            ("short.so", b"\x7fELF\x02\x01", "cut off"),
            ("half.so", &whole[..whole.len() / 2], "cut off"),
            ("script.py", b"class A: pass\n", "no Python interpreter"),
        ];
        for (name, content, why) in cases {
            std::fs::write(dir.path().join(name), content).unwrap();
            let message = Files::new(dir.path()).plugin(name).unwrap_err();
            assert!(message.contains(why) && message.contains(name), "{message}");
        }
        assert!(Files::new(dir.path()).plugin("none.so").unwrap_err().contains("no such file"));
        let room = proto::transport::plugin::META.plugin.unwrap();
        assert_eq!(Files::new(dir.path()).plugin_of(room, EXAMPLE_FILE).unwrap().name, "example");
    }
}

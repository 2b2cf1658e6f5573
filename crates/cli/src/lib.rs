//! The command line. All commands are parsed here. Commands that Python carries out are handed to
//! Python as data.

pub mod args;
mod check;
mod clock;
mod ended;
mod explain;
mod jobs;
mod list;
mod merge;
pub mod named;
mod patience;
pub mod prepare;
mod progress;
mod python;
pub mod rounds;
mod run;
mod schema;
pub mod sweep;
mod text;
pub mod why;

pub use clock::memory as memory_limit;

use args::{Args, Command};
use base::text::escaped;
use clap::CommandFactory as _;
use patience::patiently;
use scenario::Style;
use sim::Continue;
use std::{fmt, io};

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The command is done. The process ends with this code (see [`exit`]).
    Exit(u8),
    /// Python carries out the command: a table with the key `command` and the options.
    Python(serde_json::Value),
}

/// Exit codes.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// A check asked for with `--strict` failed.
    pub const CHECK: u8 = 1;
    /// Wrong input.
    pub const INPUT: u8 = 2;
    /// A problem with storage or memory.
    pub const STORAGE: u8 = 5;
    /// A broken invariant: a bug of this program.
    pub const BROKEN: u8 = 70;
    /// Stopped by Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
    /// Stopped by SIGTERM.
    pub const TERMINATED: u8 = 143;
}

/// The output of a command and the source of signals that stop it.
pub struct Console<'a> {
    /// Standard output, for data.
    pub out: &'a mut dyn io::Write,
    /// Standard error, for everything else.
    pub err: &'a mut dyn io::Write,
    /// Whether `err` is a terminal.
    pub terminal: bool,
    /// Called several times a second during long work. Returns `Some` once a signal has arrived.
    pub signals: &'a mut dyn FnMut() -> Option<Signal>,
}

impl Console<'_> {
    /// Writes data. A reader that closes the pipe early (`| head`) is not an error.
    fn out(&mut self, text: &str) -> Result<(), Failure> {
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                let why = if e.kind() == io::ErrorKind::StorageFull { "no space left".to_owned() } else { e.kind().to_string() };
                Err(Failure { exit: exit::STORAGE, text: format!("error: cannot write to the standard output: {why}") })
            }
            _ => Ok(()),
        }
    }
    /// Writes a message. Hidden characters are escaped.
    fn err(&mut self, text: &str) {
        self.drawn(&escaped(text));
    }
    /// Writes a message whose names are already escaped. It may have colours.
    fn drawn(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }
    /// Runs long work on another thread and polls for signals meanwhile. When a signal arrives, the
    /// work is abandoned and ends with the process, so it must not write anything. `wait` is called
    /// several times a second.
    fn patiently<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
        mut wait: impl FnMut(&mut dyn io::Write),
    ) -> Result<T, Failure> {
        let mut stopped = None;
        let done = patiently(work, &mut || {
            stopped = (self.signals)();
            wait(self.err);
            if stopped.is_some() { Continue::No } else { Continue::Yes }
        });
        done.ok_or_else(|| Failure {
            exit: stopped.map_or(exit::INTERRUPTED, Signal::exit),
            text: sweep::Error::Stopped.to_string(),
        })
    }
    /// Returns the style of diagnostics: plain unless standard error is a terminal that can show
    /// more.
    fn style(&self) -> Style {
        if !self.terminal || std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            Style::Plain
        } else if std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty()) {
            Style::Unicode
        } else {
            Style::Colour
        }
    }
}

/// A signal to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// Returns the exit code for the signal.
    pub fn exit(self) -> u8 {
        match self {
            Signal::Interrupt => exit::INTERRUPTED,
            Signal::Terminate => exit::TERMINATED,
        }
    }
}

/// A failed command: its exit code and its message, in which names are escaped.
#[derive(Debug)]
struct Failure {
    exit: u8,
    text: String,
}

impl Failure {
    fn input(text: impl fmt::Display) -> Failure {
        Failure { exit: exit::INPUT, text: escaped(&format!("error: {text}")).into_owned() }
    }
}

impl From<sweep::Error> for Failure {
    fn from(error: sweep::Error) -> Failure {
        let exit = match error {
            sweep::Error::Stopped => return Failure { exit: exit::INTERRUPTED, text: error.to_string() },
            sweep::Error::Input(_) | sweep::Error::Run { .. } => exit::INPUT,
            sweep::Error::Storage(_) => exit::STORAGE,
            sweep::Error::Broken(_) => exit::BROKEN,
        };
        let hint = error.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
        Failure { exit, text: escaped(&format!("error: {error}{hint}")).into_owned() }
    }
}

/// Runs the command line `args`, which does not include the name of the program.
pub fn main(args: &[String], console: &mut Console<'_>) -> Outcome {
    let args = match args::parse(args) {
        Ok(args) => args,
        Err(e) => {
            // clap reports help and version as errors too; `use_stderr` tells them apart.
            let text = e.render().to_string();
            if e.use_stderr() {
                console.err(&text);
                return Outcome::Exit(exit::INPUT);
            }
            return console.out(&text).map_or_else(|failure| fail(&failure, console), |()| Outcome::Exit(exit::DONE));
        }
    };
    command(args.command, console).unwrap_or_else(|failure| fail(&failure, console))
}

fn fail(failure: &Failure, console: &mut Console<'_>) -> Outcome {
    console.drawn(&format!("{}\n", failure.text.trim_end()));
    Outcome::Exit(failure.exit)
}

fn command(command: Command, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    match command {
        Command::Check(args) => check::check(&args, console),
        Command::Run(args) => run::run(&args, console),
        Command::Merge(args) => merge::merge(&args, console),
        Command::List(args) => {
            console.out(&list::text(args.what.as_deref()))?;
            Ok(Outcome::Exit(exit::DONE))
        }
        Command::Explain(args) => {
            console.out(&explain::text(&args.kind)?)?;
            Ok(Outcome::Exit(exit::DONE))
        }
        Command::Schema(_) => {
            console.out(&schema::text())?;
            Ok(Outcome::Exit(exit::DONE))
        }
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Args::command(), "flowloom", &mut script);
            console.out(&String::from_utf8_lossy(&script))?;
            Ok(Outcome::Exit(exit::DONE))
        }
        other => Ok(Outcome::Python(python::options(other))),
    }
}

/// Compiles and runs the examples of the page about the Rust library. In this crate because a crate that is
/// published contains no file from outside its folder.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Page;

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that always fails with this kind of error.
    struct Refuses(io::ErrorKind);
    impl io::Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_and_a_closed_pipe_is_not() {
        for (kind, code) in [(io::ErrorKind::StorageFull, exit::STORAGE), (io::ErrorKind::BrokenPipe, exit::DONE)] {
            for command in ["list", "--help", "--version"] {
                let mut err = Vec::new();
                let console = &mut Console { out: &mut Refuses(kind), err: &mut err, terminal: false, signals: &mut || None };
                assert_eq!(main(&[command.to_owned()], console), Outcome::Exit(code), "{command}");
                assert_eq!(String::from_utf8(err).unwrap().contains("no space left"), code != exit::DONE);
            }
        }
    }

    #[test]
    fn a_signal_ends_long_work() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut asked = 0;
        let mut after_some = || {
            asked += 1;
            (asked > 2).then_some(Signal::Terminate)
        };
        let console = &mut Console { out: &mut out, err: &mut err, terminal: false, signals: &mut after_some };
        let (never, receiver) = std::sync::mpsc::channel::<()>();
        let failure = console.patiently(move || receiver.recv().is_ok(), |_| {}).unwrap_err();
        assert_eq!(failure.exit, exit::TERMINATED);
        drop(never);
        let console = &mut Console { out: &mut out, err: &mut err, terminal: false, signals: &mut || None };
        assert_eq!(console.patiently(|| 7, |_| {}).unwrap(), 7);
    }
}

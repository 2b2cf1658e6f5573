//! The command line. Everything is parsed here; what draws or judges is handed to Python as data.

pub mod args;
mod check;
mod clock;
mod explain;
mod list;
mod progress;
mod python;
pub mod rounds;
mod run;
pub mod sweep;
mod text;
pub mod why;

use args::{Args, Command};
use clap::{CommandFactory as _, Parser as _};
use scenario::Style;
use std::{fmt, io};

/// What a command comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is done; the process ends with this code (see [`exit`]).
    Exit(u8),
    /// Python goes on: a table with the key `command` and its options.
    Python(serde_json::Value),
}

/// Exit codes.
pub mod exit {
    /// Done.
    pub const DONE: u8 = 0;
    /// A check asked for with `--strict` failed.
    pub const CHECK: u8 = 1;
    /// Something is wrong with what the user gave.
    pub const INPUT: u8 = 2;
    /// Files and space.
    pub const STORAGE: u8 = 5;
    /// A broken invariant: a bug of this program.
    pub const BROKEN: u8 = 70;
    /// Stopped by Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
    /// Stopped by SIGTERM.
    pub const TERMINATED: u8 = 143;
}

/// Where a command writes, and what may stop it.
pub struct Console<'a> {
    /// Data.
    pub out: &'a mut dyn io::Write,
    /// Everything else.
    pub err: &'a mut dyn io::Write,
    /// `err` is the terminal that a person looks at.
    pub terminal: bool,
    /// Asked several times a second during long work: `Some` once a signal says to stop.
    pub signals: &'a mut dyn FnMut() -> Option<Signal>,
}

impl Console<'_> {
    /// Writes data. A reader that went away (`| head`) is no error.
    fn out(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
    /// Writes to the person.
    fn err(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }
    /// How diagnostics are drawn: plain unless a person looks at a terminal that can do more.
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
    /// The exit code that tells of it.
    pub fn exit(self) -> u8 {
        match self {
            Signal::Interrupt => exit::INTERRUPTED,
            Signal::Terminate => exit::TERMINATED,
        }
    }
}

/// Why a command failed: an exit code, and what to tell.
#[derive(Debug)]
struct Failure {
    exit: u8,
    text: String,
}

impl Failure {
    fn input(text: impl fmt::Display) -> Failure {
        Failure { exit: exit::INPUT, text: format!("error: {text}") }
    }
}

impl From<sweep::Error> for Failure {
    fn from(error: sweep::Error) -> Failure {
        let exit = match error {
            sweep::Error::Input(_) | sweep::Error::Run { .. } => exit::INPUT,
            sweep::Error::Storage(_) => exit::STORAGE,
            sweep::Error::Broken(_) => exit::BROKEN,
        };
        let hint = error.hint().map_or(String::new(), |hint| format!("\nhint: {hint}"));
        Failure { exit, text: format!("error: {error}{hint}") }
    }
}

/// Runs the command line `args`, without the program's name in front.
pub fn main(args: &[String], console: &mut Console<'_>) -> Outcome {
    let args = match Args::try_parse_from(std::iter::once("flowloom").chain(args.iter().map(String::as_str))) {
        Ok(args) => args,
        Err(e) => {
            // Help and the version are no mistakes: clap knows where each goes, and with which code.
            let text = e.render().to_string();
            if e.use_stderr() {
                console.err(&text);
                return Outcome::Exit(exit::INPUT);
            }
            console.out(&text);
            return Outcome::Exit(exit::DONE);
        }
    };
    command(args.command, console).unwrap_or_else(|failure| {
        console.err(&format!("{}\n", failure.text.trim_end()));
        Outcome::Exit(failure.exit)
    })
}

fn command(command: Command, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    match command {
        Command::Check(args) => check::check(&args, console),
        Command::Run(args) => run::run(&args, console),
        Command::List(args) => {
            console.out(&list::text(args.what.as_deref()));
            Ok(Outcome::Exit(exit::DONE))
        }
        Command::Explain(args) => {
            console.out(&explain::text(&args.kind)?);
            Ok(Outcome::Exit(exit::DONE))
        }
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Args::command(), "flowloom", &mut script);
            console.out(&String::from_utf8_lossy(&script));
            Ok(Outcome::Exit(exit::DONE))
        }
        other => Ok(Outcome::Python(python::options(other))),
    }
}

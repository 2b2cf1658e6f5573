//! The command line. Everything is parsed here; what draws or judges is handed to Python as data.

pub mod args;
mod check;
mod clock;
mod explain;
mod list;
mod output;
mod progress;
mod python;
pub mod rooms;
mod run;
pub mod sweep;

use args::{Args, Command};
use clap::{CommandFactory as _, Parser as _};
use std::fmt;

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

/// Asked now and then, several times a second, during long work: `Some` once a signal says to stop.
pub type Signals<'a> = &'a mut dyn FnMut() -> Option<Signal>;

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

impl From<scenario::Diagnostics> for Failure {
    fn from(diagnostics: scenario::Diagnostics) -> Failure {
        Failure { exit: exit::INPUT, text: diagnostics.render(output::style()) }
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
pub fn main(args: &[String], signals: Signals<'_>) -> Outcome {
    let args = match Args::try_parse_from(std::iter::once("flowloom").chain(args.iter().map(String::as_str))) {
        Ok(args) => args,
        Err(e) => {
            // Help and the version are no mistakes: clap knows where each goes, and with which code.
            let text = e.render().to_string();
            if e.use_stderr() {
                output::err(&text)
            } else {
                output::out(&text)
            }
            return Outcome::Exit(if e.use_stderr() { exit::INPUT } else { exit::DONE });
        }
    };
    command(args.command, signals).unwrap_or_else(|failure| {
        output::err(&format!("{}\n", failure.text.trim_end()));
        Outcome::Exit(failure.exit)
    })
}

fn command(command: Command, signals: Signals<'_>) -> Result<Outcome, Failure> {
    match command {
        Command::Check(args) => check::check(&args),
        Command::Run(args) => run::run(&args, signals),
        Command::List(args) => Ok(list::list(args.what)),
        Command::Explain(args) => explain::explain(&args.kind),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Args::command(), "flowloom", &mut script);
            output::out(&String::from_utf8_lossy(&script));
            Ok(Outcome::Exit(exit::DONE))
        }
        other => Ok(Outcome::Python(python::options(other))),
    }
}

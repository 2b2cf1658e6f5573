//! The progress of a run: one line that is redrawn on a terminal, otherwise a plain line every few
//! seconds.

use crate::sweep::Tick;
use crate::text::{count, duration, short};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;

/// Shows the progress on standard error.
pub enum Display {
    /// On a terminal.
    Bar(ProgressBar),
    /// Not on a terminal: the time at which the next line is due, in seconds.
    Lines(f64),
}

/// The time of the first plain line, in seconds from the start. Shorter runs print no progress.
const FIRST_LINE_S: f64 = 0.5;
/// The time between two plain lines, in seconds.
const LINES_EVERY_S: f64 = 10.0;

impl Display {
    /// Creates the display, for a terminal or not.
    pub fn new(terminal: bool) -> Display {
        if !terminal {
            return Display::Lines(FIRST_LINE_S);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template("[{bar:8}] {wide_msg}").expect("the template is sound").progress_chars("=> "));
        Display::Bar(bar)
    }
    /// Shows a tick.
    pub fn show(&mut self, tick: &Tick<'_>, err: &mut dyn Write) {
        match self {
            Display::Bar(bar) => {
                // The message is set first, because each call may draw the line.
                bar.set_message(line(tick));
                bar.set_length(tick.points as u64);
                bar.set_position(tick.points_done as u64);
            }
            Display::Lines(due) if tick.elapsed_s >= *due => {
                *due = tick.elapsed_s + LINES_EVERY_S;
                // Errors while printing are ignored.
                let _ = writeln!(err, "{}", line(tick));
            }
            Display::Lines(_) => {}
        }
    }
    /// Shows that the plan is being prepared, `elapsed_s` seconds after the start.
    pub fn planning(&mut self, elapsed_s: f64, err: &mut dyn Write) {
        const PLANNING: &str = "? to go, planning";
        match self {
            Display::Bar(bar) if elapsed_s > FIRST_LINE_S => bar.set_message(PLANNING),
            Display::Lines(due) if elapsed_s >= *due => {
                *due = elapsed_s + LINES_EVERY_S;
                let _ = writeln!(err, "{PLANNING}");
            }
            _ => {}
        }
    }
    /// Removes the line.
    pub fn finish(&self) {
        if let Display::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Formats the line, most important value first: narrow terminals cut off the end.
fn line(tick: &Tick<'_>) -> String {
    let to_go = tick.remaining_s.map_or("? to go".to_owned(), |remaining| format!("{} to go", duration(remaining)));
    let mut line = format!("{to_go}, {} of {}", tick.points_done, count(tick.points, "point"));
    line.push_str(&format!(
        ", {} of {} flows, {} events",
        short(tick.flows_done as f64),
        short(tick.flows as f64),
        short(tick.events as f64)
    ));
    if let Some(point) = tick.point {
        line.push_str(&format!(", `{point}` at {:.4} s", tick.now.0 as f64 * 1e-12));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_it_is() {
        let tick = Tick {
            notes: &[],
            points_done: 3,
            points: 24,
            point: Some("merp-seed1"),
            now: base::Time(1_500_000_000_000),
            flows_done: 4200,
            flows: 10_000,
            events: 12_000_000,
            elapsed_s: 3.0,
            remaining_s: Some(75.0),
        };
        let shown = line(&tick);
        assert_eq!(shown, "1 min 15 s to go, 3 of 24 points, 4.20 k of 10.0 k flows, 12.0 M events, `merp-seed1` at 1.5000 s");
    }
}

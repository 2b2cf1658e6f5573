//! How far a run is: one line that is redrawn on a terminal, a plain line now and then elsewhere.

use crate::sweep::Tick;
use crate::text::{count, duration, short};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;

/// Shows ticks on stderr.
pub enum Display {
    /// On a terminal.
    Bar(ProgressBar),
    /// Anywhere else: when the next line is due, in seconds.
    Lines(f64),
}

/// Between two plain lines, in seconds. Short runs print none.
const LINES_EVERY_S: f64 = 10.0;

impl Display {
    /// For a terminal or not.
    pub fn new(terminal: bool) -> Display {
        if !terminal {
            return Display::Lines(LINES_EVERY_S);
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(ProgressStyle::with_template("[{bar:30}] {wide_msg}").expect("the template is sound").progress_chars("=> "));
        Display::Bar(bar)
    }
    /// Shows a tick.
    pub fn show(&mut self, tick: &Tick<'_>, err: &mut dyn Write) {
        match self {
            Display::Bar(bar) => {
                bar.set_length(tick.points as u64);
                bar.set_position(tick.points_done as u64);
                bar.set_message(line(tick));
            }
            Display::Lines(due) if tick.elapsed_s >= *due => {
                *due = tick.elapsed_s + LINES_EVERY_S;
                // What cannot be told does not stop the run.
                let _ = writeln!(err, "{}", line(tick));
            }
            Display::Lines(_) => {}
        }
    }
    /// Takes the line away.
    pub fn finish(&self) {
        if let Display::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(tick: &Tick<'_>) -> String {
    let mut line = format!("{} of {}", tick.points_done, count(tick.points, "point"));
    if let Some(point) = tick.point {
        line.push_str(&format!(", `{point}` at {:.4} s", tick.now.0 as f64 * 1e-12));
    }
    line.push_str(&format!(
        ", {} of {} flows, {} events",
        short(tick.flows_done as f64),
        short(tick.flows as f64),
        short(tick.events as f64)
    ));
    if let Some(remaining) = tick.remaining_s {
        line.push_str(&format!(", {} to go", duration(remaining)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Jobs;

    #[test]
    fn a_line_says_how_far_it_is() {
        let tick = Tick {
            jobs: Jobs { asked: 2, jobs: 2, need_bytes: 0, free_bytes: None },
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
        assert_eq!(shown, "3 of 24 points, `merp-seed1` at 1.5000 s, 4.20 k of 10.0 k flows, 12.0 M events, 1 min 15 s to go");
    }
}

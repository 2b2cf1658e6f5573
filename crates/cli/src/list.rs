//! The command `flowloom list`.

use crate::named::NAMED;
use crate::text::columns;
use scenario::{ROOMS, TABLES};

/// Returns the text of `flowloom list`: all lists, or the list whose plural name is `what`.
pub fn text(what: Option<&str>) -> String {
    let mut text = String::new();
    for room in ROOMS.iter().filter(|room| what.is_none_or(|what| what == room.plural)) {
        let rows: Vec<Vec<String>> = room.entries.iter().map(|e| row(e.name, e.meta.summary, e.meta.source)).collect();
        section(&mut text, what, room.plural, room.about, &rows);
    }
    for list in NAMED.iter().filter(|list| what.is_none_or(|what| what == list.plural)) {
        let rows: Vec<Vec<String>> = (list.items)().iter().map(|item| row(item.name, &item.summary, item.source)).collect();
        section(&mut text, what, list.plural, list.about, &rows);
    }
    if what.is_none() {
        let rows: Vec<Vec<String>> = TABLES.iter().filter(|t| !t.name.is_empty()).map(|t| row(t.name, t.about, "")).collect();
        text.push_str(&format!("tables: the other tables of a scenario\n{}\n", columns("  ", &rows)));
        text.push_str("`flowloom explain NAME` prints the description and the parameters of each.\n");
    }
    text
}

/// Appends a list to `text`. A single list has no title, so that programs can read its lines.
fn section(text: &mut String, what: Option<&str>, plural: &str, about: &str, rows: &[Vec<String>]) {
    if what.is_some() {
        text.push_str(&columns("", rows));
    } else {
        text.push_str(&format!("{plural}: {about}\n{}\n", columns("  ", rows)));
    }
}

fn row(name: &str, summary: &str, source: &str) -> Vec<String> {
    let source = if source.is_empty() { String::new() } else { format!("[{source}]") };
    vec![name.to_owned(), summary.to_owned(), source]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_listed_once_with_its_summary() {
        let all = text(None);
        for room in ROOMS {
            assert!(all.contains(&format!("{}: ", room.plural)));
            for entry in room.entries {
                let line = |l: &&str| l.starts_with(&format!("  {} ", entry.name)) && l.contains(entry.meta.summary);
                assert_eq!(all.lines().filter(line).count(), 1, "{} {}", room.name, entry.name);
            }
        }
        for list in NAMED {
            assert!((list.items)().iter().all(|item| all.contains(&format!("  {} ", item.name))), "{}", list.plural);
        }
        let transports = text(Some("transports"));
        assert_eq!(transports.lines().count(), proto::transport::ENTRIES.len());
    }
}

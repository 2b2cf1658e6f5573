//! Formatting of text output: aligned columns, short numbers, durations.

/// Aligns the columns of rows with two spaces between columns. Each line starts with `indent`.
pub fn columns(indent: &str, rows: &[Vec<String>]) -> String {
    let width = |text: &String| text.chars().count();
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..n).map(|i| rows.iter().filter_map(|row| row.get(i)).map(width).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = indent.to_owned();
        for (cell, wide) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', wide - width(cell) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats a number with three digits and a unit prefix: `12.3 M`.
pub fn short(x: f64) -> String {
    let (scale, prefix) = [(1e9, " G"), (1e6, " M"), (1e3, " k")].into_iter().find(|(scale, _)| x >= *scale).unwrap_or((1.0, ""));
    let x = x / scale;
    let digits = if x >= 99.95 || prefix.is_empty() {
        0
    } else if x >= 9.995 {
        1
    } else {
        2
    };
    format!("{x:.digits$}{prefix}")
}

/// Formats a duration: `850 ms`, `12.3 s`, `4 min 05 s`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 59.95 => format!("{s:.1} s"),
        s if s < 3599.5 => format!("{} min {:02} s", s.round() as u64 / 60, s.round() as u64 % 60),
        s => format!("{} h {:02} min", (s / 60.0).round() as u64 / 60, (s / 60.0).round() as u64 % 60),
    }
}

/// Formats a count: `1 point`, `2 points`.
pub fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Formats a count with its verb: `1 point is`, `2 points are`.
pub fn are(n: usize, noun: &str) -> String {
    format!("{} {}", count(n, noun), if n == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "bb".to_owned(), "c".to_owned()], vec!["äää".to_owned(), "b".to_owned()]];
        assert_eq!(columns("  ", &rows), "  a    bb  c\n  äää  b\n");
        assert_eq!(columns("", &[]), "");
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 999.0, 1_000.0, 12_345.0, 123_456.0, 9.87e6, 2.5e9].map(short);
        assert_eq!(shown, ["0", "999", "1.00 k", "12.3 k", "123 k", "9.87 M", "2.50 G"]);
        let shown = [0.0123, 0.9999, 12.34, 59.99, 245.2, 3725.0].map(duration);
        assert_eq!(shown, ["12 ms", "1.0 s", "12.3 s", "1 min 00 s", "4 min 05 s", "1 h 02 min"]);
    }
}

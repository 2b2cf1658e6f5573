//! The name that a user probably meant.

/// Returns the name among `names` that is most similar to `wrong`, if it is similar enough. A name
/// that contains `wrong` takes precedence.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .filter(|(d, name)| *d <= name.len().max(wrong.len()).div_ceil(3))
        .min_by_key(|(d, name)| (!name.contains(wrong), *d))
        .map(|(_, name)| name)
}

/// Returns the name among `names` for which `name` is probably a misspelling: they differ in case and underscores only, in one
/// letter, or in a quarter of the letters. Stricter than [`nearest`], for names that are wrong only if they are misspelled.
pub fn misspelled<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = |name: &str| name.replace('_', "").to_lowercase();
    let own = folded(name);
    names
        .into_iter()
        .map(|known| (distance(&own, &folded(known)), known))
        .filter(|(d, known)| *d <= (folded(known).len().max(own.len()) / 4).max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, known)| known)
}

/// Returns the number of letters that are missing, added, wrong or swapped with their neighbours: the optimal string alignment
/// distance.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (mut before, mut row): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (row[j] + usize::from(a[i] != b[j])).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

//! Flow-size distributions as tables: those that ship with the program, and files of users.
//!
//! Own format: lines `# key: value` (`interpolation`, `quantum_bytes`, `mean_bytes`; other keys are
//! notes), the line `size_bytes,cum_prob`, then the points. To draw a size, find the first point
//! whose probability is at least u. With `linear`, interpolate the size from the point before and
//! round up to a multiple of the quantum; with `step`, use the size of the point. Two points with
//! the same size are a probability mass at this size.

use base::math;

base::choice! {
    /// The file format of a distribution.
    pub enum Format {
        /// `size_bytes,cum_prob` with a header, like the shipped distributions.
        Own = "own",
        /// `bytes cum`, cum to 100: HPCC's traffic generator.
        Hpcc = "hpcc",
        /// `bytes cum`, cum to 1: most traffic generators.
        Common = "common",
        /// `packets ignored cum`, packets of 1460 bytes: ns-2, pFabric, YAPS.
        Ns2 = "ns2",
        /// A line with the mean, then `bytes cum`, drawn without interpolation: Homa.
        Homa = "homa",
    }
}

/// A table of sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    /// (size in bytes, probability of at most that size); the first probability is 0, the last is 1.
    points: Vec<(u64, f64)>,
    step: bool,
    quantum: u64,
}

/// A distribution that ships with the program.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// The name for the parameter `cdf`.
    pub name: &'static str,
    text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// All distributions that ship with the program. Each file names its public source.
        pub const SHIPPED: &[Shipped] = &[$(Shipped { name: $name, text: include_str!(concat!("../files/cdf/", $name, ".cdf.csv")) }),*];
    };
}
shipped![
    "websearch",
    "websearch-ns2",
    "websearch-xpass",
    "datamining",
    "datamining-ns2",
    "datamining-xpass",
    "fb-cachefollower",
    "fb-cachefollower-xpass",
    "fb-cache-mqecn",
    "fb-webserver",
    "fb-webserver-xpass",
    "fb-hadoop",
    "fb-hadoop-hpcc",
    "fb-hadoop-mqecn",
    "fb-memcached",
    "homa-w1",
    "homa-w2",
    "homa-w3",
    "homa-w4",
    "homa-w5",
    "imc10",
    "alistorage2019",
    "solar2022",
    "karuna-type1",
    "karuna-type2",
    "karuna-type3",
];

impl Shipped {
    /// Returns the value of a line of the file header.
    pub fn header(&self, key: &str) -> &'static str {
        header(self.text).find(|(k, _)| *k == key).map_or("", |(_, v)| v)
    }
    /// Returns the title.
    pub fn title(&self) -> &'static str {
        self.header("title")
    }
    /// Returns the source.
    pub fn source(&self) -> &'static str {
        self.header("source")
    }
    /// Returns the mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.table().mean()
    }
    /// Returns the table.
    pub fn table(&self) -> Cdf {
        parse(self.name, self.text, Format::Own).unwrap_or_else(|e| panic!("shipped distribution: {e}"))
    }
}

/// Returns the lines `# key: value` of the file header.
fn header(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map_while(|line| line.strip_prefix('#'));
    lines.filter_map(|line| line.split_once(':')).map(|(k, v)| (k.trim(), v.trim()))
}

/// Maximum size of a flow: a terabyte.
pub const MAX_SIZE_BYTES: u64 = 1_000_000_000_000;
/// Bytes of a packet in tables that count packets.
const NS2_PACKET: u64 = 1460;

/// Reads a table. The error names file and line.
pub fn parse(name: &str, text: &str, format: Format) -> Result<Cdf, String> {
    let given = |key: &str| header(text).find(|(k, _)| *k == key && format == Format::Own).map(|(_, v)| v);
    let step = match given("interpolation") {
        None => format == Format::Homa,
        Some("linear") => false,
        Some("step") => true,
        Some(other) => return Err(format!("{name}: `interpolation: {other}` is neither `linear` nor `step`")),
    };
    let quantum = match given("quantum_bytes") {
        None if format == Format::Ns2 => NS2_PACKET,
        None => 1,
        Some(text) => match text.parse() {
            Ok(q @ 1..=1_000_000) => q,
            _ => return Err(format!("{name}: `quantum_bytes: {text}` is not a whole number from 1 to 1000000")),
        },
    };
    let mut mean = match given("mean_bytes") {
        None => None,
        Some(text) => Some(number(text).ok_or_else(|| format!("{name}: `mean_bytes: {text}` is not a number"))?),
    };
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut first_line_read = format != Format::Own && format != Format::Homa;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| Err(format!("{name}:{}: {why}", i + 1));
        if !first_line_read {
            first_line_read = true;
            match format {
                Format::Homa => match number(line) {
                    Some(m) => mean = Some(m),
                    None => return wrong(&format!("`{line}` is not the mean size")),
                },
                _ if line.replace(' ', "") != "size_bytes,cum_prob" => {
                    return wrong("the line before the points must be `size_bytes,cum_prob`");
                }
                _ => {}
            }
            continue;
        }
        let point = match point(line, format) {
            Ok(point) => point,
            Err(why) => return wrong(&why),
        };
        if let Some(&(size, cum)) = points.last() {
            if point.0 < size {
                return wrong(&format!("size {} follows {size}: sizes must not decrease", point.0));
            }
            if point.1 < cum {
                return wrong(&format!("probability {} follows {cum}: a cumulative probability must not decrease", point.1));
            }
        } else if point.1 > 0.0 {
            // A first point with a probability above zero is a mass at its size.
            points.push((point.0, 0.0));
        }
        points.push(point);
    }
    match points.last() {
        None => return Err(format!("{name}: no points")),
        Some(&(_, cum)) if (cum - 1.0).abs() > 1e-9 => {
            return Err(format!("{name}: the last probability is {cum}, but must be 1"));
        }
        Some(_) => points.last_mut().expect("not empty").1 = 1.0,
    }
    let cdf = Cdf { points, step, quantum };
    let own = cdf.mean();
    if let Some(given) = mean.filter(|m| (m - own).abs() > own * 1e-3) {
        return Err(format!("{name}: the mean is given as {given} bytes, but the mean of the points is {own:.2}"));
    }
    Ok(cdf)
}

/// Parses a finite number.
fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|x| x.is_finite())
}

/// Parses a point: size in bytes, probability from 0 to 1.
fn point(line: &str, format: Format) -> Result<(u64, f64), String> {
    let parts: Vec<&str> = line.split([',', ' ', '\t']).filter(|p| !p.is_empty()).collect();
    let (size, cum) = match (format, parts.as_slice()) {
        (Format::Ns2, [size, _, cum]) => (size, cum),
        (Format::Ns2, _) => return Err(format!("`{line}` is not `packets ignored cum`")),
        (_, [size, cum]) => (size, cum),
        _ => return Err(format!("`{line}` is not a size and a probability")),
    };
    let scale = if format == Format::Ns2 { NS2_PACKET as f64 } else { 1.0 };
    let bytes = number(size).filter(|x| *x >= 0.0).ok_or_else(|| format!("`{size}` is not a size"))? * scale;
    if bytes > MAX_SIZE_BYTES as f64 {
        return Err(format!("size {size} is too large: at most {MAX_SIZE_BYTES} bytes"));
    }
    let top = if format == Format::Hpcc { 100.0 } else { 1.0 };
    match number(cum) {
        // Rounding may print probabilities slightly above the maximum.
        Some(p) if (0.0..=top * (1.0 + 1e-9)).contains(&p) => Ok((math::floor(bytes + 0.5) as u64, (p / top).min(1.0))),
        Some(p) => Err(format!("probability {p} is not between 0 and {top}")),
        None => Err(format!("`{cum}` is not a probability")),
    }
}

impl Cdf {
    /// Returns the size at quantile `u` in (0, 1]; at least 1.
    pub fn draw(&self, u: f64) -> u64 {
        let i = self.points.partition_point(|(_, cum)| *cum < u).min(self.points.len() - 1);
        let (x1, p1) = self.points[i];
        if self.step || i == 0 {
            return x1.max(1);
        }
        let (x0, p0) = self.points[i - 1];
        let size = x0 as f64 + (x1 - x0) as f64 * ((u - p0) / (p1 - p0));
        (math::ceil(size / self.quantum as f64) as u64 * self.quantum).max(1)
    }
    /// Returns the mean size. For `linear` with quantum 1, the rounding up, less than a byte, is
    /// ignored.
    pub fn mean(&self) -> f64 {
        if !self.step && self.quantum == 1 {
            return self.segments().map(|(x0, x1, mass)| mass * (x0 as f64 + x1 as f64) / 2.0).sum();
        }
        self.tail_sum(1, 0)
    }
    /// Returns the mean of `ceil(max(size - offset, 0) / step)`, that is the sum of P(size > j step
    /// + offset) over j from 0. Exact.
    pub fn tail_sum(&self, step: u64, offset: u64) -> f64 {
        let (m, o, q) = (u128::from(step), u128::from(offset), u128::from(self.quantum));
        let units = |size: u128| size.saturating_sub(o).div_ceil(m);
        // The integral from 0 to x of units(q ceil(t / q)) dt, for whole x.
        let integral = |x: u64| {
            let (whole, rest) = (u128::from(x) / q, u128::from(x) % q);
            let first = o / q + 1;
            let sum = if whole >= first { floor_sum(whole + 1 - first, m, q, first * q - o + m - 1) } else { 0 };
            q * sum + rest * units((whole + 1) * q)
        };
        let share = |(x0, x1, mass): (u64, u64, f64)| {
            if x0 == x1 {
                let size = if self.step { x0 } else { x0.div_ceil(self.quantum) * self.quantum };
                return mass * units(u128::from(size.max(1))) as f64;
            }
            mass * (integral(x1) - integral(x0)) as f64 / (x1 - x0) as f64
        };
        self.segments().map(share).sum()
    }
    /// Returns P(size <= t).
    pub fn at_most(&self, t: u64) -> f64 {
        if t == 0 {
            return 0.0;
        }
        let x = if self.step { t } else { t / self.quantum * self.quantum };
        let i = self.points.partition_point(|(size, _)| *size <= x);
        match (i, self.points.get(i)) {
            (0, _) => 0.0,
            (_, None) => 1.0,
            (i, Some(&(x1, p1))) => {
                let (x0, p0) = self.points[i - 1];
                if self.step { p0 } else { p0 + (p1 - p0) * (x - x0) as f64 / (x1 - x0) as f64 }
            }
        }
    }
    /// Returns the largest size.
    pub fn max(&self) -> u64 {
        self.points.last().map_or(0, |p| p.0).div_ceil(self.quantum) * self.quantum
    }
    /// Returns the table as points (size, probability of at most that size); probabilities between
    /// points are interpolated.
    pub fn points(&self) -> Vec<(u64, f64)> {
        let rounded = |size: u64| (size.div_ceil(self.quantum) * self.quantum).max(1);
        if !self.step {
            return self.points.iter().map(|&(size, cum)| (rounded(size), cum)).collect();
        }
        let masses = self.points.windows(2).filter(|w| w[1].1 > w[0].1);
        masses.flat_map(|w| [(w[1].0.max(1), w[0].1), (w[1].0.max(1), w[1].1)]).collect()
    }
    /// Returns segments (from, to, probability): sizes are uniform between `from` and `to`, or a
    /// mass if both are equal.
    fn segments(&self) -> impl Iterator<Item = (u64, u64, f64)> {
        let step = self.step;
        let between = move |w: &[(u64, f64)]| (if step { w[1].0 } else { w[0].0 }, w[1].0, w[1].1 - w[0].1);
        self.points.windows(2).map(between).filter(|(_, _, mass)| *mass > 0.0)
    }
}

/// Returns the sum of floor((a i + b) / m) over i from 0 to n - 1, by the Euclidean algorithm.
fn floor_sum(mut n: u128, mut m: u128, mut a: u128, mut b: u128) -> u128 {
    let mut sum = 0;
    loop {
        sum += n * n.saturating_sub(1) / 2 * (a / m);
        a %= m;
        sum += n * (b / m);
        b %= m;
        let top = a * n + b;
        if top < m {
            return sum;
        }
        (n, b) = (top / m, top % m);
        (m, a) = (a, m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn floor_sums_equal_direct_sums() {
        for (n, m, a, b) in [(0, 3, 2, 1), (1, 1, 0, 0), (10, 7, 3, 5), (100, 13, 29, 1000), (57, 1460, 1460, 1459)] {
            let counted: u128 = (0..n).map(|i| (a * i + b) / m).sum();
            assert_eq!(floor_sum(n, m, a, b), counted, "{n} {m} {a} {b}");
        }
    }

    /// Means of the published tables, bytes.
    #[test]
    fn shipped_tables_have_their_means() {
        let means = [
            ("websearch", 1_711_250.0),
            ("websearch-ns2", 1_666_451.3),
            ("datamining", 12_658_199.0),
            ("datamining-ns2", 7_470_601.0),
            ("fb-hadoop", 127_796.64),
            ("homa-w1", 187.5),
            ("homa-w3", 2927.0),
            ("imc10", 195_722.0),
            ("solar2022", 39_424.0),
        ];
        for (name, mean) in means {
            let own = SHIPPED.iter().find(|s| s.name == name).unwrap().table().mean();
            assert!((own - mean).abs() < mean * 5e-4, "{name}: {own} against {mean}");
        }
    }

    #[test]
    fn every_shipped_table_names_its_source() {
        assert_eq!(SHIPPED.len(), 26);
        for s in SHIPPED {
            assert_eq!(s.header("name"), s.name);
            assert!(s.title().len() > 10 && s.source().contains('/'), "{}", s.name);
            let table = s.table();
            let declared: f64 = s.header("mean_bytes").parse().unwrap();
            assert!((table.mean() - declared).abs() < declared * 1e-3, "{}: {}", s.name, table.mean());
            assert_eq!(table.points.len(), s.header("points").parse::<usize>().unwrap(), "{}", s.name);
        }
    }

    /// Stratified draws: the mean of the quantiles at the middles of a million strata.
    #[test]
    fn draws_have_the_mean_of_the_table() {
        for s in SHIPPED {
            let table = s.table();
            let n = 1_000_000;
            let sum: f64 = (0..n).map(|i| table.draw((f64::from(i) + 0.5) / f64::from(n)) as f64).sum();
            let (drawn, exact) = (sum / f64::from(n), table.tail_sum(1, 0));
            assert!((drawn - exact).abs() < exact * 2e-3, "{}: {drawn} against {exact}", s.name);
        }
    }

    #[test]
    fn draws_follow_the_table() {
        // Kolmogorov-Smirnov at the points: sqrt(n) D below 1.95 in 999 of 1000 cases.
        for s in SHIPPED {
            let table = s.table();
            let mut rng = Rng::stream(5, s.name, &[]);
            let n = 20_000;
            let mut sizes: Vec<u64> = (0..n).map(|_| table.draw(1.0 - rng.unit())).collect();
            sizes.sort_unstable();
            let worst = table.points.iter().map(|&(x, _)| {
                let share = sizes.partition_point(|s| *s <= x) as f64 / f64::from(n);
                (share - table.at_most(x)).abs()
            });
            let d = worst.fold(0.0, f64::max) * f64::from(n).sqrt();
            assert!(d < 1.95, "{}: {d}", s.name);
        }
    }

    #[test]
    fn rules_of_drawing() {
        let linear = parse("t", "size_bytes,cum_prob\n0,0\n100,0.5\n100,0.75\n200,1\n", Format::Own).unwrap();
        assert_eq!([0.25, 0.5, 0.6, 0.75, 0.875, 1.0].map(|u| linear.draw(u)), [50, 100, 100, 100, 150, 200]);
        let step = parse("t", "# interpolation: step\nsize_bytes,cum_prob\n0,0\n100,0.5\n200,1\n", Format::Own).unwrap();
        assert_eq!([0.1, 0.5, 0.51, 1.0].map(|u| step.draw(u)), [100, 100, 200, 200]);
        let packets = parse("t", "6 1 0\n6 1 0.15\n13 1 1\n", Format::Ns2).unwrap();
        assert_eq!([0.1, 0.15, 0.16, 1.0].map(|u| packets.draw(u)), [8760, 8760, 10220, 18980]);
    }

    #[test]
    fn dialects_are_read() {
        let hpcc = parse("t", "0 0\n10000 15\n30000 100\n", Format::Hpcc).unwrap();
        let common = parse("t", "0 0\n10000\t0.15\n30000 1.0\n", Format::Common).unwrap();
        assert_eq!(hpcc, common);
        let homa = parse("t", "150\n100 0.5\n200 1\n", Format::Homa).unwrap();
        assert_eq!((homa.draw(0.5), homa.draw(0.6), homa.mean()), (100, 200, 150.0));
    }

    #[test]
    fn bad_tables_are_refused() {
        let own = |lines: &str| parse("t.csv", &format!("size_bytes,cum_prob\n{lines}"), Format::Own).unwrap_err();
        for (lines, why) in [
            ("1,0\n2,0.9\n", "must be 1"),
            ("2,0\n1,1\n", "t.csv:3: size 1 follows 2"),
            ("1,0\n2,0.6\n3,0.5\n4,1\n", "t.csv:4: probability 0.5 follows 0.6"),
            ("1,0\n2,1.5\n", "not between 0 and 1"),
            ("1,0\n2,nan\n", "not a probability"),
            ("-1,0\n2,1\n", "not a size"),
            ("1,0,3\n2,1\n", "not a size and a probability"),
            ("1,0\n1e30,1\n", "too large"),
            ("", "no points"),
        ] {
            let message = own(lines);
            assert!(message.contains(why), "{lines:?}: {message}");
        }
        assert!(parse("t", "1 0\n2 1\n", Format::Own).unwrap_err().contains("size_bytes,cum_prob"));
        assert!(parse("t", "x\n1 0\n2 1\n", Format::Homa).unwrap_err().contains("mean"));
        let mean = parse("t", "# mean_bytes: 3\nsize_bytes,cum_prob\n1,0\n3,1\n", Format::Own).unwrap_err();
        assert!(mean.contains("given as 3") && mean.contains("is 2.00"), "{mean}");
        let quantum = parse("t", "# quantum_bytes: 0\nsize_bytes,cum_prob\n1,0\n3,1\n", Format::Own).unwrap_err();
        assert!(quantum.contains("quantum_bytes"), "{quantum}");
    }
}

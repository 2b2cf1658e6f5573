//! Laws of flow sizes, and the wire bytes of their sizes.

use super::cdf::{Cdf, MAX_SIZE_BYTES};
use base::{Rng, math};

base::choice! {
    /// The unit of a size.
    pub enum Unit {
        /// Application bytes.
        Payload = "payload",
        /// Bytes on the wire: a packet of MTU size carries the MTU minus the header.
        Wire = "wire",
    }
}

/// A law of sizes in whole bytes, at least 1 and at most [`MAX_SIZE_BYTES`]. Continuous laws are rounded up.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeLaw {
    /// A constant.
    Fixed(u64),
    /// Uniform over the whole numbers of bytes from the first to the second.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto: P(X > x) = (scale / x)^shape.
    Pareto {
        /// Tail index, above 1.
        shape: f64,
        /// Smallest size.
        scale: f64,
    },
    /// From a table.
    Table(Cdf),
}

impl SizeLaw {
    /// Returns the Pareto law with this mean: scale = mean (shape - 1) / shape.
    pub fn pareto(shape: f64, mean: f64) -> SizeLaw {
        SizeLaw::Pareto { shape, scale: mean * (shape - 1.0) / shape }
    }
    /// Draws a size. Takes one number from the stream, whatever the law.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let whole = |x: f64| math::ceil(x) as u64;
        let size = match self {
            SizeLaw::Fixed(size) => {
                rng.bits();
                *size
            }
            SizeLaw::Uniform(min, max) => min + rng.below(max - min + 1),
            SizeLaw::Exponential(mean) => whole(rng.exponential(*mean)),
            SizeLaw::Pareto { shape, scale } => whole(rng.pareto(*shape, *scale)),
            SizeLaw::Table(cdf) => cdf.draw(1.0 - rng.unit()),
        };
        size.clamp(1, MAX_SIZE_BYTES)
    }
    /// Returns the mean of `ceil(max(S - offset, 0) / step)` for the size S: the sum of P(S > j
    /// step + offset) over j from 0. Closed forms.
    fn tail_sum(&self, step: u64, offset: u64) -> f64 {
        let (m, o) = (step as f64, offset as f64);
        match self {
            SizeLaw::Fixed(size) => size.saturating_sub(offset).div_ceil(step) as f64,
            SizeLaw::Uniform(min, max) => {
                // Sum of ceil(i / step) over i from 1 to n.
                let sum = |n: u64| {
                    let (whole, rest) = (u128::from(n / step), u128::from(n % step));
                    u128::from(step) * whole * (whole + 1) / 2 + rest * (whole + 1)
                };
                let (a, b) = ((min - 1).saturating_sub(offset), max.saturating_sub(offset));
                (sum(b) - sum(a)) as f64 / (max - min + 1) as f64
            }
            // Geometric series of exp(-(j m + o) / mean).
            SizeLaw::Exponential(mean) => math::exp(-o / mean) / (1.0 - math::exp(-m / mean)),
            SizeLaw::Pareto { shape, scale } => pareto_tail_sum(*shape, *scale, m, o),
            SizeLaw::Table(cdf) => cdf.tail_sum(step, offset),
        }
    }
    /// Returns P(S <= t).
    fn at_most(&self, t: u64) -> f64 {
        match self {
            SizeLaw::Fixed(size) => f64::from(u8::from(*size <= t)),
            SizeLaw::Uniform(min, max) if t >= *min => (t.min(*max) - min + 1) as f64 / (max - min + 1) as f64,
            SizeLaw::Uniform(..) => 0.0,
            SizeLaw::Exponential(mean) => 1.0 - math::exp(-(t as f64) / mean),
            SizeLaw::Pareto { scale, .. } if t as f64 <= *scale => 0.0,
            SizeLaw::Pareto { shape, scale } => 1.0 - math::pow(scale / t as f64, *shape),
            SizeLaw::Table(cdf) => cdf.at_most(t),
        }
    }
    /// Returns the mean size.
    pub fn mean(&self) -> f64 {
        self.tail_sum(1, 0)
    }
    /// Returns the law as points (size, probability of at most that size); probabilities between
    /// points are interpolated. The points are exact for tables, fixed and uniform sizes; other
    /// laws have at most 1000 points.
    fn points(&self) -> Vec<(u64, f64)> {
        let whole = |x: f64| (math::ceil(x) as u64).clamp(1, MAX_SIZE_BYTES);
        match self {
            SizeLaw::Fixed(size) => vec![(*size, 1.0)],
            SizeLaw::Uniform(min, max) => vec![(min - 1, 0.0), (*max, 1.0)],
            SizeLaw::Exponential(mean) => quantiles().map(|(tail, cum)| (whole(-mean * math::ln(tail)), cum)).collect(),
            SizeLaw::Pareto { shape, scale } => {
                quantiles().map(|(tail, cum)| (whole(scale * math::pow(tail, -1.0 / shape)), cum)).collect()
            }
            SizeLaw::Table(cdf) => cdf.points(),
        }
    }
}

/// Returns the quantiles at which continuous laws are evaluated, as (probability above, probability
/// up to this point): equal steps, then ever smaller steps for the tail. The last quantile is taken
/// as the end of the law.
fn quantiles() -> impl Iterator<Item = (f64, f64)> {
    const STEPS: u32 = 970;
    const HALVINGS: i32 = 29;
    let body = (0..STEPS).map(|i| 1.0 - f64::from(i) / f64::from(STEPS));
    let tail = (0..HALVINGS).map(|i| 1.0 / f64::from(STEPS) * math::pow(0.5, f64::from(i)));
    let last = STEPS as usize + HALVINGS as usize - 1;
    body.chain(tail).enumerate().map(move |(i, tail)| (tail, if i == last { 1.0 } else { 1.0 - tail }))
}

/// Returns a sample of sizes as points: every size, or the quantiles of a large sample.
pub(super) fn points_of_sample(mut sizes: Vec<u64>) -> Vec<(u64, f64)> {
    const MOST: usize = 500;
    sizes.sort_unstable();
    let n = sizes.len();
    let up_to = |count: usize| count as f64 / n as f64;
    let mut points = Vec::new();
    let mut distinct: Vec<(u64, usize)> = Vec::new();
    for (i, size) in sizes.iter().enumerate() {
        match distinct.last_mut() {
            Some((known, count)) if known == size => *count = i + 1,
            _ => distinct.push((*size, i + 1)),
        }
    }
    if distinct.len() > MOST {
        distinct = (1..=MOST).map(|i| (i * n).div_ceil(MOST)).map(|count| (sizes[count - 1], count)).collect();
    }
    let mut before = 0.0;
    for (size, count) in distinct {
        points.extend([(size, before), (size, up_to(count))]);
        before = up_to(count);
    }
    points
}

/// Returns the sum of min(1, (scale / (j m + o))^a) over j from 0: ones up to the scale, then a
/// Hurwitz zeta function by the Euler-Maclaurin formula.
fn pareto_tail_sum(a: f64, scale: f64, m: f64, o: f64) -> f64 {
    let ones = if scale < o { 0.0 } else { math::floor((scale - o) / m) + 1.0 };
    let term = |j: f64| math::pow(scale / (j * m + o), a);
    const DIRECT: u32 = 16;
    let direct: f64 = (0..DIRECT).map(|i| term(ones + f64::from(i))).sum();
    let j = ones + f64::from(DIRECT);
    // The rest from j on: integral + term / 2 + B2/2! r - B4/4!-like corrections, r = a m / (j m + o).
    let (x, last) = (j * m + o, term(j));
    let r = m / x;
    let correction = a * r / 12.0 - a * (a + 1.0) * (a + 2.0) * r * r * r / 720.0;
    ones + direct + last * (x / (m * (a - 1.0)) + 0.5 + correction)
}

/// Sizes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Largest packet on the wire.
    pub mtu: u64,
    /// Header of every packet, at most half of the MTU.
    pub header: u64,
}

impl Packets {
    /// Returns the application bytes of a flow whose size is given in `unit`; at least 1.
    pub fn payload(self, size: u64, unit: Unit) -> u64 {
        match unit {
            Unit::Payload => size,
            Unit::Wire => size.saturating_sub(self.header.saturating_mul(size.div_ceil(self.mtu))).max(1),
        }
    }
    /// Returns the bytes on the wire of `payload` application bytes.
    pub fn wire(self, payload: u64) -> u64 {
        proto::Flow::wire_bytes(payload, self.mtu - self.header, self.header)
    }
    /// Returns the points of a law of sizes given in `unit`, in application bytes.
    pub fn points(self, law: &SizeLaw, unit: Unit) -> Vec<(u64, f64)> {
        let mut points = law.points();
        let mut largest = 0;
        for (size, _) in &mut points {
            // The last packet needs a header too: one more byte on the wire may mean fewer
            // application bytes.
            largest = self.payload(*size, unit).max(largest);
            *size = largest;
        }
        points
    }
    /// Returns the mean bytes on the wire of flows whose sizes, in `unit`, follow `law`.
    pub fn mean_wire(self, law: &SizeLaw, unit: Unit) -> f64 {
        let h = self.header as f64;
        match unit {
            // S + h ceil(S / mss)
            Unit::Payload => law.mean() + h * law.tail_sum(self.mtu - self.header, 0),
            // A size s above h becomes s, or s - h if its last packet would hold only a part of a
            // header: s - h (ceil(s / mtu) - ceil((s - h) / mtu)). Up to h the only packet has one
            // byte: h + 1.
            Unit::Wire => {
                let parts = law.tail_sum(self.mtu, 0) - law.tail_sum(self.mtu, self.header);
                let small = |s: u64| (law.at_most(s) - law.at_most(s - 1)) * (1.0 + 2.0 * h - s as f64);
                law.mean() - h * parts + (1..=self.header).map(small).sum::<f64>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cdf::SHIPPED;
    use super::*;
    use base::Rng;
    use proptest::prelude::*;

    const MERP: Packets = Packets { mtu: 1500, header: 40 };

    #[test]
    fn wire_sizes_of_merp_section_6_1() {
        for (wire, payload, again) in
            [(1500, 1460, 1500), (3000, 2920, 3000), (1541, 1461, 1541), (1540, 1460, 1500), (40, 1, 41), (1, 1, 41)]
        {
            assert_eq!((MERP.payload(wire, Unit::Wire), MERP.wire(MERP.payload(wire, Unit::Wire))), (payload, again), "{wire}");
        }
    }

    #[test]
    fn means_on_the_wire_are_those_of_all_sizes() {
        // Uniform over a range, counted one by one.
        for unit in [Unit::Payload, Unit::Wire] {
            for (min, max) in [(1, 1), (1, 5000), (30, 50), (1490, 1550), (2999, 3001)] {
                let all: u64 = (min..=max).map(|s| MERP.wire(MERP.payload(s, unit))).sum();
                let counted = all as f64 / (max - min + 1) as f64;
                let exact = MERP.mean_wire(&SizeLaw::Uniform(min, max), unit);
                assert!((exact - counted).abs() < 1e-9 * counted, "{unit:?} {min} {max}: {exact} against {counted}");
                let fixed = MERP.mean_wire(&SizeLaw::Fixed(max), unit);
                assert_eq!(fixed, MERP.wire(MERP.payload(max, unit)) as f64);
            }
        }
    }

    /// Compares the closed forms with sums over the probabilities of single sizes.
    #[test]
    fn closed_forms_equal_their_sums() {
        let laws =
            [SizeLaw::Exponential(300.0), SizeLaw::Exponential(4000.0), SizeLaw::pareto(6.0, 5000.0), SizeLaw::pareto(9.0, 20.0)];
        for law in laws {
            for unit in [Unit::Payload, Unit::Wire] {
                let p = |s: u64| law.at_most(s) - law.at_most(s - 1);
                let summed: f64 = (1..400_000).map(|s| p(s) * MERP.wire(MERP.payload(s, unit)) as f64).sum();
                let exact = MERP.mean_wire(&law, unit);
                assert!((exact - summed).abs() < 1e-6 * exact, "{law:?} {unit:?}: {exact} against {summed}");
            }
        }
    }

    /// Compares the mean of the points, with sizes spread evenly between neighbours, with the mean
    /// of the law.
    #[test]
    fn points_have_the_mean_of_their_law() {
        let mut laws =
            vec![SizeLaw::Fixed(5), SizeLaw::Uniform(2_000, 198_000), SizeLaw::Exponential(1e5), SizeLaw::pareto(1.8, 1.5e6)];
        laws.extend(SHIPPED.iter().map(|shipped| SizeLaw::Table(shipped.table())));
        for law in laws {
            let points = MERP.points(&law, Unit::Payload);
            assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
            assert!(points.len() <= 1000 || matches!(law, SizeLaw::Table(_)));
            assert_eq!(points.last().unwrap().1, 1.0);
            let first = points[0].0 as f64 * points[0].1;
            let mean = first + points.windows(2).map(|w| (w[1].1 - w[0].1) * (w[0].0 + w[1].0) as f64 / 2.0).sum::<f64>();
            // Half a quantum of a table that counts packets, and a few bytes of sizes that are zero in it.
            assert!((mean - law.mean()).abs() <= 0.005 * law.mean() + 740.0, "{mean} against {}", law.mean());
            let wire = MERP.points(&law, Unit::Wire);
            assert!(wire.iter().zip(&points).all(|(w, p)| w.0 <= p.0.max(1)) && wire.is_sorted_by(|a, b| a.0 <= b.0));
        }
    }

    #[test]
    fn a_sample_is_its_own_law() {
        let points = points_of_sample(vec![7, 3, 7, 9]);
        assert_eq!(points, [(3, 0.0), (3, 0.25), (7, 0.25), (7, 0.75), (9, 0.75), (9, 1.0)]);
        let large = points_of_sample((0..100_000).rev().collect());
        assert_eq!((large.len(), large[1], *large.last().unwrap()), (1000, (199, 0.002), (99_999, 1.0)));
        assert_eq!(points_of_sample(Vec::new()), []);
    }

    #[test]
    fn heavy_tails_have_their_mean() {
        for shape in [1.05, 1.2, 1.5, 1.8, 2.2] {
            let mean = SizeLaw::pareto(shape, 1.5e6).mean();
            // Rounding up adds half a byte.
            assert!((mean - 1.5e6 - 0.5).abs() < 0.01, "{shape}: {mean}");
        }
    }

    #[test]
    fn samples_have_the_mean_of_their_law() {
        let mut laws =
            vec![SizeLaw::Fixed(5), SizeLaw::Uniform(2_000, 198_000), SizeLaw::Exponential(1e5), SizeLaw::pareto(3.5, 1e5)];
        laws.extend(
            ["fb-hadoop", "homa-w3", "websearch-ns2"]
                .map(|n| SizeLaw::Table(SHIPPED.iter().find(|s| s.name == n).unwrap().table())),
        );
        for law in laws {
            for unit in [Unit::Payload, Unit::Wire] {
                let mut rng = Rng::stream(3, "law", &[]);
                let n = 200_000;
                let wire: Vec<f64> = (0..n).map(|_| MERP.wire(MERP.payload(law.draw(&mut rng), unit)) as f64).collect();
                let mean = wire.iter().sum::<f64>() / f64::from(n);
                let variance = wire.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n - 1);
                let error = 4.0 * (variance / f64::from(n)).sqrt() + 1e-9;
                let exact = MERP.mean_wire(&law, unit);
                assert!((mean - exact).abs() < error, "{law:?} {unit:?}: {mean} against {exact} +- {error}");
            }
        }
    }

    /// One-sample Kolmogorov-Smirnov; discrete laws only make the statistic smaller.
    #[test]
    fn samples_follow_their_law() {
        for law in
            [SizeLaw::Uniform(1_000, 9_000), SizeLaw::Exponential(5e4), SizeLaw::pareto(1.8, 1.5e6), SizeLaw::pareto(1.05, 1.5e6)]
        {
            let mut rng = Rng::stream(11, "law", &[]);
            let n = 20_000usize;
            let mut sizes: Vec<u64> = (0..n).map(|_| law.draw(&mut rng)).collect();
            sizes.sort_unstable();
            let gap = |(i, s): (usize, &u64)| {
                let p = law.at_most(*s);
                ((i + 1) as f64 / n as f64 - p).abs().min((p - i as f64 / n as f64).abs())
            };
            let d = sizes.iter().enumerate().map(gap).fold(0.0, f64::max) * (n as f64).sqrt();
            assert!(d < 1.95, "{law:?}: {d}");
        }
    }

    proptest! {
        #[test]
        fn tables_agree_with_their_points_spread_out(
            sizes in prop::collection::vec(1u64..6000, 1..6), mtu in 180u64..2000, header in 1u64..=90, step in any::<bool>(), quantum in 1u64..80,
        ) {
            let mut sizes = sizes;
            sizes.sort_unstable();
            let n = sizes.len() as f64;
            let rule = if step { "step" } else { "linear" };
            let lines: String = sizes.iter().enumerate().map(|(i, s)| format!("{s},{}\n", (i + 1) as f64 / n)).collect();
            let text = format!("# interpolation: {rule}\n# quantum_bytes: {quantum}\nsize_bytes,cum_prob\n0,0\n{lines}");
            let law = SizeLaw::Table(super::super::cdf::parse("t", &text, super::super::cdf::Format::Own).unwrap());
            let packets = Packets { mtu, header };
            for unit in [Unit::Payload, Unit::Wire] {
                let summed: f64 = (1..7000).map(|s| (law.at_most(s) - law.at_most(s - 1)) * packets.wire(packets.payload(s, unit)) as f64).sum();
                let exact = packets.mean_wire(&law, unit);
                prop_assert!((exact - summed).abs() < 1e-6 * exact, "{:?}: {} against {}", unit, exact, summed);
            }
        }

        #[test]
        fn payload_and_wire_fit(size in 1u64..=MAX_SIZE_BYTES, mtu in 200u64..9000, header in 1u64..=100) {
            let packets = Packets { mtu, header };
            let payload = packets.payload(size, Unit::Wire);
            let wire = packets.wire(payload);
            prop_assert!(payload >= 1 && wire + header >= size && wire <= size.max(header + 1));
        }
    }
}

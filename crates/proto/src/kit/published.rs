//! Published demotion thresholds for web search and data mining.
//!
//! Source: the ns-2 scripts of the authors of PIAS (NSDI 2015). In packets of 1460 bytes of payload, by the load offered:
//!
//! | load | web search | data mining |
//! |---|---|---|
//! | 0.5 | 1059 1412 1643 1869 2008 2115 2184 | 805 1106 1401 10693 11970 21162 22272 |
//! | 0.6 | 956 1381 1718 2028 2297 2551 2660 | 840 1232 1617 11950 12238 21494 25720 |
//! | 0.7 | 999 1305 1564 1763 1956 2149 2309 | 907 1301 1619 12166 12915 21313 26374 |
//! | 0.8 | 909 1329 1648 1960 2143 2337 2484 | 745 1083 1391 13689 14936 21149 27245 |
//! | 0.9 | 759 1132 1456 1737 2010 2199 2325 | 750 1083 1416 13705 14952 21125 28253 |

use base::Fraction;
use base::given::Offered;

/// Returns the thresholds, in bytes of payload, for the size distribution that the workloads offer
/// at its load, or the reason why there are none.
pub fn thresholds(all: &[Offered]) -> Result<[u64; 7], String> {
    let (table, load) = offered(all)?;
    Ok(table[row(load)].map(|packets| packets * PAYLOAD))
}

/// Returns the table for the offered size distribution, and its load.
fn offered(all: &[Offered]) -> Result<(&'static Table, Fraction), String> {
    let mut found: Option<(&Law, u64)> = None;
    for (one, load) in all.iter().filter_map(|one| Some((one, one.load?))) {
        let Some(law) = LAWS.iter().find(|law| law.points.iter().all(|point| passes(&one.sizes, point))) else { continue };
        match &mut found {
            Some((known, sum)) if known.name == law.name => *sum += load.ppb(),
            Some((known, _)) => return Err(format!("the workloads offer both {} and {}", known.name, law.name)),
            None => found = Some((law, load.ppb())),
        }
    }
    let (law, load) = found.ok_or("no workload offers web search or data mining at a load")?;
    Ok((&law.thresholds, Fraction(load)))
}

/// Returns the row of a load.
fn row(load: Fraction) -> usize {
    let tenths = (load.ppb() + 50_000_000) / 100_000_000;
    tenths.clamp(5, 9) as usize - 5
}

/// Returns whether a size distribution passes through a point, within [`TOLERANCE`].
pub(crate) fn passes(sizes: &[(u64, f64)], &(size, probability): &(u64, f64)) -> bool {
    let above = sizes.partition_point(|point| point.0 <= size);
    let seen = match (above.checked_sub(1).map(|i| sizes[i]), sizes.get(above)) {
        (None, _) => 0.0,
        (Some((_, p)), None) => p,
        (Some((x0, p0)), Some(&(x1, p1))) => p0 + (p1 - p0) * (size - x0) as f64 / (x1 - x0) as f64,
    };
    (seen - probability).abs() <= TOLERANCE
}

/// Thresholds in packets of [`PAYLOAD`], by load: 0.5 to 0.9.
pub(crate) type Table = [[u64; 7]; 5];

/// A size distribution with published thresholds.
pub(crate) struct Law {
    pub name: &'static str,
    /// Points by which it is recognized: (bytes, probability of at most that size).
    points: &'static [(u64, f64)],
    pub thresholds: Table,
}

/// Bytes of payload in a packet of the tables.
pub(crate) const PAYLOAD: u64 = 1460;
/// Largest distance of a distribution from a point.
const TOLERANCE: f64 = 0.02;

pub(crate) const LAWS: [Law; 2] = [
    Law {
        name: "web search",
        points: WEB_SEARCH.split_at(5).1,
        thresholds: [
            [1059, 1412, 1643, 1869, 2008, 2115, 2184],
            [956, 1381, 1718, 2028, 2297, 2551, 2660],
            [999, 1305, 1564, 1763, 1956, 2149, 2309],
            [909, 1329, 1648, 1960, 2143, 2337, 2484],
            [759, 1132, 1456, 1737, 2010, 2199, 2325],
        ],
    },
    Law {
        name: "data mining",
        points: DATA_MINING.split_at(4).1,
        thresholds: [
            [805, 1106, 1401, 10_693, 11_970, 21_162, 22_272],
            [840, 1232, 1617, 11_950, 12_238, 21_494, 25_720],
            [907, 1301, 1619, 12_166, 12_915, 21_313, 26_374],
            [745, 1083, 1391, 13_689, 14_936, 21_149, 27_245],
            [750, 1083, 1416, 13_705, 14_952, 21_125, 28_253],
        ],
    },
];

/// Sizes of web search in bytes of payload, as in the ns-2 scripts of PIAS.
pub(crate) const WEB_SEARCH: [(u64, f64); 12] = [
    (8_760, 0.0),
    (8_760, 0.15),
    (18_980, 0.2),
    (27_740, 0.3),
    (48_180, 0.4),
    (77_380, 0.53),
    (194_180, 0.6),
    (973_820, 0.7),
    (1_946_180, 0.8),
    (4_866_180, 0.9),
    (9_733_820, 0.97),
    (29_200_000, 1.0),
];
/// Sizes of data mining in bytes of payload, as in the ns-2 scripts of PIAS.
pub(crate) const DATA_MINING: [(u64, f64); 9] = [
    (1_460, 0.0),
    (1_460, 0.5),
    (2_920, 0.6),
    (4_380, 0.7),
    (10_220, 0.8),
    (389_820, 0.9),
    (3_076_220, 0.95),
    (97_333_820, 0.99),
    (973_333_820, 1.0),
];

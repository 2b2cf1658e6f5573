//! Links that lose packets at random (`loss` of a topology).

use base::{Fraction, LinkId, Rng, Streams};
use fabric::net::Net;

/// A link that loses packets. Losses are independent of each other and happen when the packet would arrive.
#[derive(Debug)]
pub struct Lossy {
    loss: Fraction,
    rng: Rng,
    lost: u64,
}

/// Returns the random losses of links, by link; empty if no link loses packets. Each link draws from its own
/// random stream, so the losses on one link do not shift those on another link.
pub fn lossy_links(net: &Net, streams: &mut Streams) -> Vec<Lossy> {
    if net.links().iter().all(|link| link.loss == Fraction::default()) {
        return Vec::new();
    }
    let links = net.links().iter().zip(0..);
    links.map(|(link, id)| Lossy { loss: link.loss, rng: streams.take("loss", &[id]), lost: 0 }).collect()
}

impl Lossy {
    /// Draws whether the packet that arrives now is lost.
    pub fn loses(&mut self) -> bool {
        let lost = self.rng.below(Fraction::ONE.ppb()) < self.loss.ppb();
        self.lost += u64::from(lost);
        lost
    }
}

/// Returns the number of packets that a link has lost at random.
pub fn lost(lossy: &[Lossy], link: LinkId) -> u64 {
    lossy.get(link.index()).map_or(0, |lossy| lossy.lost)
}

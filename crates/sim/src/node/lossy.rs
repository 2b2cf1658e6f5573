//! Links that lose packets at random (`loss` of a topology).

use base::{Fraction, LinkId, Rng, Streams};
use fabric::net::Net;

/// A link that loses packets. Each packet is lost by itself, when it would arrive.
#[derive(Debug)]
pub struct Lossy {
    loss: Fraction,
    rng: Rng,
    lost: u64,
}

/// By link; empty where no link loses packets. A link draws from a stream of its own, so the losses on one do not shift those on another.
pub fn lossy_links(net: &Net, streams: &mut Streams) -> Vec<Lossy> {
    if net.links().iter().all(|link| link.loss == Fraction::default()) {
        return Vec::new();
    }
    let links = net.links().iter().zip(0..);
    links.map(|(link, id)| Lossy { loss: link.loss, rng: streams.take("loss", &[id]), lost: 0 }).collect()
}

impl Lossy {
    /// Whether the packet that arrives now is lost.
    pub fn loses(&mut self) -> bool {
        let lost = self.rng.below(Fraction::ONE.ppb()) < self.loss.ppb();
        self.lost += u64::from(lost);
        lost
    }
}

/// Packets that a link has lost at random.
pub fn lost(lossy: &[Lossy], link: LinkId) -> u64 {
    lossy.get(link.index()).map_or(0, |lossy| lossy.lost)
}

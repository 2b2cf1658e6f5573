//! The sender's part in measuring deliveries, for controllers that keep a record of them.

use super::answer::{Answer, Blocks};
use super::congestion::Congestion;
use super::delivery::DeliveryAck;
use super::options::Config;
use super::sender::{Sender, seq};
use base::{Rng, Time};

impl<S> Sender<S> {
    /// Updates the record of deliveries, if the controller keeps one, before an ACK is processed.
    #[inline(always)]
    pub(crate) fn before_ack<C: Congestion<State = S>>(&mut self) {
        if let Some(deliveries) = C::deliveries(&mut self.control) {
            deliveries.before_ack(self.snd_nxt == self.end, self.window.cwnd);
        }
    }

    /// Updates the record of deliveries, if the controller keeps one, after an ACK was processed, and
    /// lets the controller set the window.
    #[inline(always)]
    pub(crate) fn measure<C: Congestion<State = S>>(
        &mut self,
        answer: &Answer,
        blocks: Option<&Blocks>,
        now: Time,
        config: &Config,
        control: &C,
        rng: &mut Rng,
    ) {
        let Some(deliveries) = C::deliveries(&mut self.control) else { return };
        let lost_below = self.sack.as_deref().map_or(0, |sack| sack.lost_below(config.smss));
        let echo = (config.timestamps || !answer.echo.resent).then_some(answer.echo.sent_at);
        let ack = DeliveryAck { now, snd_una: self.snd_una, blocks, lost_below, ece: answer.ece, echo };
        let Some(mut sample) = deliveries.on_ack(&ack) else { return };
        while let Some(range) = deliveries.lose_again() {
            sample.newly_lost += range.end - range.start;
            if let Some(sack) = &mut self.sack {
                sack.lose_again(range);
            }
        }
        sample.in_flight = deliveries.in_flight();
        (sample.srtt, sample.recovering) = (self.rtt.srtt(), seq(self.snd_una) <= self.recover);
        control.on_delivery(&mut self.control, &mut self.window, &sample, rng);
        self.window.cwnd = self.window.cwnd.min(config.max_window);
    }
}

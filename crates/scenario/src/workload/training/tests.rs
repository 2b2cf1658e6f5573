//! Tests of training steps.

use super::super::Drawn;
use super::super::testing::Bench;
use super::step::{Pass, passes};
use super::*;
use base::Time;
use base::params::Params as _;

type Set<'a> = &'a [(&'static str, &'a str)];

/// Two layers with 1 MB of gradients and 1 MB of activations, 10 us forward and 20 us backward.
const LAYERS: [(&str, &str); 5] =
    [("layers", "2"), ("activation", "1MB"), ("gradient", "1MB"), ("forward", "10us"), ("chunk", "1MB")];

fn bench(hosts: &str) -> Bench {
    Bench::new("star", &[("hosts", hosts)])
}
fn draw(hosts: &str, set: Set<'_>) -> Vec<Drawn> {
    bench(hosts).draw("training", &[set, &LAYERS].concat(), 1)
}
/// Returns the flows that a flow waits for, as source and destination, with delays in microseconds.
fn waits(flows: &[Drawn], of: &Drawn) -> Vec<(u32, u32, u64)> {
    let on = of.after.iter().flat_map(|after| &after.flows);
    on.map(|(on, delay)| (flows[*on as usize].src.0, flows[*on as usize].dst.0, delay.0 / 1_000_000)).collect()
}

#[test]
fn stages_run_one_forward_and_one_backward_pass_in_turn() {
    let text = |schedule, stage| {
        let passes = passes(schedule, 4, stage, 6);
        let word = |pass: &Pass| match pass {
            Pass::Forward(m) => format!("f{m}"),
            Pass::Backward(m) => format!("b{m}"),
        };
        passes.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    use Schedule::{GPipe, OneForwardOneBackward};
    // The stages of figure 4 of SC 2021, with six microbatches.
    assert_eq!(text(OneForwardOneBackward, 0), "f0 f1 f2 f3 b0 f4 b1 f5 b2 b3 b4 b5");
    assert_eq!(text(OneForwardOneBackward, 2), "f0 f1 b0 f2 b1 f3 b2 f4 b3 f5 b4 b5");
    assert_eq!(text(OneForwardOneBackward, 3), "f0 b0 f1 b1 f2 b2 f3 b3 f4 b4 f5 b5");
    for stage in 0..4 {
        assert_eq!(text(GPipe, stage), "f0 f1 f2 f3 f4 f5 b0 b1 b2 b3 b4 b5");
    }
    assert_eq!(passes(OneForwardOneBackward, 8, 0, 2).len(), 4, "fewer microbatches than stages");
}

#[test]
fn gradients_are_reduced_during_the_backward_pass() {
    let first = |flows: &[Drawn]| flows.iter().filter(|flow| flow.after.is_none()).map(|flow| flow.start).collect::<Vec<_>>();
    let set = [("data", "4"), ("bucket", "1MB"), ("iterations", "2"), ("optimizer", "5us")];
    let flows = draw("4", &set);
    // Two buckets of a layer each, in a ring of 2 * 3 steps, in two iterations.
    assert_eq!(flows.len(), 2 * 2 * 4 * 6);
    assert!(flows.iter().all(|flow| flow.size_bytes == 250_000 && flow.dst.0 == (flow.src.0 + 1) % 4));
    // The gradients of layer 1 are there after 2 * 10 us forward and 20 us backward.
    assert_eq!(first(&flows), [Time(40_000_000); 4]);
    // Those of layer 0 after another 20 us, and after the bucket of layer 1.
    let begins = |flow: &&Drawn| {
        let on = flow.after.iter().flat_map(|after| &after.flows);
        on.map(|(on, _)| flows[*on as usize].group).collect::<Vec<_>>().iter().all(|group| *group != flow.group)
    };
    let second: Vec<&Drawn> = flows.iter().filter(begins).collect();
    let not_before = |flow: &Drawn| flow.after.as_ref().map_or(0, |after| after.not_before.0 / 1_000_000);
    assert_eq!(second.iter().map(|flow| not_before(flow)).filter(|at| *at == 60).count(), 4);
    // The next iteration begins 5 us after the last bucket.
    let third = flows.iter().find(|flow| waits(&flows, flow).iter().any(|on| on.2 == 45)).unwrap();
    assert!(waits(&flows, third).iter().all(|on| on.2 == 45 && (on.0 == third.src.0 || on.1 == third.src.0)));
    // Without overlap, all gradients are reduced together.
    let flows = draw("4", &[("data", "4"), ("bucket", "1MB"), ("overlap", "false")]);
    assert!(flows.len() == 4 * 6 && flows.iter().all(|flow| flow.size_bytes == 500_000));
    assert_eq!(first(&flows), [Time(60_000_000); 4]);
}

#[test]
fn stages_send_activations_and_gradients() {
    let flows = draw("2", &[("pipeline", "2"), ("microbatches", "2")]);
    let of = |src: u32| flows.iter().filter(|flow| flow.src.0 == src).collect::<Vec<_>>();
    let [a, b, c, d] = [of(0)[0], of(0)[1], of(1)[0], of(1)[1]];
    assert_eq!(flows.len(), 4);
    assert_eq!(([a.start, b.start], [&a.after, &b.after]), ([Time(10_000_000), Time(20_000_000)], [&None, &None]));
    // Forward and backward pass of microbatch 0 on stage 1.
    assert_eq!(waits(&flows, c), [(0, 1, 30)]);
    // The passes of microbatch 1 follow those of microbatch 0.
    assert_eq!(waits(&flows, d), [(0, 1, 60), (0, 1, 30)]);
}

#[test]
fn tensor_groups_reduce_activations_within_their_server() {
    let server = [("per_server", "4"), ("local_rate", "800Gbps"), ("tensor", "4"), ("pipeline", "2")];
    let flows = draw("8", &server);
    // A quarter of the activations from each rank, forward and backward.
    assert_eq!(flows.len(), 8);
    assert!(flows.iter().all(|flow| flow.size_bytes == 250_000 && flow.src.0 % 4 == flow.dst.0 % 4));
    // Two all-reduces of 2 * 3/4 MB at 100 GB/s.
    let first: Vec<Time> = flows.iter().filter(|flow| flow.src.0 < 4).map(|flow| flow.start).collect();
    assert_eq!(first, [Time(10_000_000 + 2 * 15_000_000); 4]);
    // A rank waits for all ranks of its group.
    let back = flows.iter().find(|flow| flow.src.0 == 6).unwrap();
    let delay = 30 + 4 * 15;
    assert_eq!(waits(&flows, back), [0, 1, 2, 3].map(|rank| (rank, rank + 4, delay)));
    // A group on several servers sends its messages through the network: rings of 2 * 3 steps.
    let flows = draw("4", &[("tensor", "4"), ("layers", "1")]);
    assert_eq!(flows.len(), 4 * 4 * 6);
}

#[test]
fn experts_exchange_tokens_and_reduce_their_own_gradients() {
    let set = [("data", "2"), ("expert", "4"), ("dispatch", "4MB"), ("gradient", "3MB"), ("bucket", "100MB"), ("chunk", "10MB")];
    let set = [&LAYERS[..2], &LAYERS[3..4], &set].concat();
    let flows = bench("8").draw("training", &set, 1);
    let of = |bytes: u64| flows.iter().filter(|flow| flow.size_bytes == bytes).collect::<Vec<_>>();
    // Layer 1 has experts: four all-to-alls in two groups of 4 * 3 messages.
    let exchanged = of(1_000_000);
    assert!(exchanged.iter().filter(|flow| flow.src.0 / 4 == flow.dst.0 / 4).count() == 4 * 2 * 12);
    // 2 MB of the gradients of layer 1 in four groups of two replicas, 1 + 3 MB in a group of eight.
    let pairs = exchanged.iter().filter(|flow| flow.src.0 / 4 != flow.dst.0 / 4).count();
    assert_eq!((pairs, of(500_000).len(), flows.len()), (4 * 2 * 2, 8 * 14, 4 * 2 * 12 + 16 + 8 * 14));
    // Popularity depends on the seed, and not on the replica.
    let skewed = |seed| {
        let flows = bench("8").draw("training", &[&set[..], &[("skew", "1")]].concat(), seed);
        let mut to = [0; 8];
        let tokens = flows.iter().filter(|flow| flow.src.0 / 4 == flow.dst.0 / 4 && flow.size_bytes != 500_000);
        tokens.for_each(|flow| to[flow.dst.0 as usize] += flow.size_bytes);
        to
    };
    let (first, second) = (skewed(1), skewed(2));
    assert_eq!(first[..4], first[4..]);
    let sorted = |mut to: [u64; 8]| {
        to.sort_unstable();
        to
    };
    assert!(first != second && sorted(first) == sorted(second), "{first:?} {second:?}");
}

/// A scenario with 96 layers and nothing else.
struct Layers;
impl base::params::Reader for Layers {
    fn get(&mut self, key: &'static str) -> Option<base::params::Raw> {
        (key == "layers").then_some(base::params::Raw::Int(96))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        panic!("{key}: {message}");
    }
}

/// GPT-3: 96 layers, hidden size 12288, sequences of 2048 tokens.
#[test]
fn bytes_and_times_follow_from_the_model() {
    let model = |tensor, batch| {
        let params = Params::read(&mut Layers);
        Sizes::new(&Params { hidden: Some(12_288), tensor, batch, teraflops: 100, ..params }).unwrap()
    };
    let sizes = model(1, 1);
    // Equation 2: P = 12 l h^2 (1 + 13/12h + (V + s)/12lh), two bytes for each parameter.
    let parameters = 12.0 * 96.0 * 12_288f64.powi(2) * (1.0 + 13.0 / (12.0 * 12_288.0) + 53_248.0 / (12.0 * 96.0 * 12_288.0));
    assert_eq!((96 * sizes.gradient + sizes.words + sizes.positions) as f64 / 2.0, parameters.round());
    assert_eq!(sizes.activation, 2 * 2048 * 12_288);
    // Equation 3 counts four forward passes, as activations are computed again: F = 96 B s l h^2 (1 + s/6h + V/16lh).
    // Here, there are three, and the output layer has no second forward pass in equation 3 either.
    let layer = 24.0 * 2048.0 * 12_288f64.powi(2) * (1.0 + 2048.0 / (6.0 * 12_288.0));
    let output = 2.0 * 2048.0 * 12_288.0 * 51_200.0;
    assert!(sizes.forward.0.abs_diff((layer / 100.0) as u64) <= 1 && sizes.output.0 == (output / 100.0) as u64);
    let whole = 4.0 * 96.0 * layer + 3.0 * output;
    let equation =
        96.0 * 2048.0 * 96.0 * 12_288f64.powi(2) * (1.0 + 2048.0 / (6.0 * 12_288.0) + 51_200.0 / (16.0 * 96.0 * 12_288.0));
    assert!((whole / equation - 1.0).abs() < 1e-9, "{whole} {equation}");
    assert_eq!(sizes.backward(sizes.forward), sizes.forward * 2);
    let part = model(8, 4);
    assert_eq!((part.activation, part.words, part.positions), (4 * sizes.activation, sizes.words / 8, sizes.positions));
    // Each rank has the whole of 4 h of layer norms and of 2 h of biases after all-reduces.
    assert_eq!(8 * part.gradient - sizes.gradient, 2 * 7 * 6 * 12_288);
    assert!(part.forward.0.abs_diff(sizes.forward.0 / 2) <= 1);
    // Two experts for each token: 8 + 2 * 16 instead of 24.
    let more = 16.0 * 2048.0 * 12_288f64.powi(2) / 100.0;
    assert!((sizes.forward_experts.0 - sizes.forward.0).abs_diff(more as u64) <= 1);
}

/// A layer with gradients of 1 MB, words of 2 x 400 x 1000 bytes and positions of 2 x 100 x 1000 bytes.
#[test]
fn the_first_and_the_last_stage_have_embeddings() {
    let model = [("hidden", "1000"), ("vocabulary", "400"), ("sequence", "100"), ("bucket", "1GB"), ("data", "2")];
    // In a ring of two, each rank sends as much as its gradients. Ranks 0 and 1 are of the first stage.
    let of = |more: Set<'_>| {
        let mut sent = std::collections::BTreeMap::new();
        let flows = draw("6", &[&model, more].concat());
        let reduced = flows.iter().filter(|flow| flow.src.0 / 2 == flow.dst.0 / 2);
        reduced.for_each(|flow| *sent.entry(flow.src.0).or_default() += flow.size_bytes);
        sent.into_values().collect::<Vec<u64>>()
    };
    let (layer, words, positions) = (1_000_000, 800_000, 200_000);
    assert_eq!(of(&[]), [2 * layer + words + positions; 2]);
    let (first, last) = (layer + words + positions, layer + words);
    assert_eq!(of(&[("pipeline", "2")]), [first, first, last, last]);
}

#[test]
fn a_step_of_1024_ranks_fits_into_memory() {
    let job = [
        ("data", "16"),
        ("tensor", "8"),
        ("pipeline", "8"),
        ("layers", "32"),
        ("microbatches", "8"),
        ("hidden", "8192"),
        ("per_server", "8"),
        ("local_rate", "3600Gbps"),
        ("chunk", "64MiB"),
        ("bucket", "1GB"),
    ];
    let [flows, waits] = bench("1024").count("training", &job);
    // 7 x 2 x 8 messages between the stages of 128 pipelines, and a bucket in each of 64 rings of 16 ranks.
    assert_eq!(flows, 7 * 2 * 8 * 128 + 64 * 16 * 30);
    assert!(waits < 5 * flows, "{waits} waits of {flows} flows");
}

#[test]
fn what_cannot_run_is_refused() {
    let refused = |set: Set<'_>| bench("6").read("training", &[set, &LAYERS].concat()).err().unwrap();
    let cases: [(Set<'_>, &str); 7] = [
        (&[], "data: the job has one rank"),
        (&[("data", "2"), ("ranks", "4")], "ranks: `4` is not `data * tensor * pipeline * expert`, which is 2 x 1 x 1 x 1 = 2"),
        (&[("data", "4"), ("pipeline", "2")], "placement: the program has 8 ranks, but `placement` has hosts for 6"),
        (&[("pipeline", "3")], "pipeline: `3` stages do not divide 2 layers"),
        (&[("data", "6"), ("algorithm", "recursive")], "algorithm: `recursive` needs a power of two of ranks, but there are 6"),
        (&[("expert", "2"), ("all_to_all", "ring")], "all_to_all: `ring` is not an algorithm of `all_to_all`"),
        (&[("data", "2"), ("per_server", "2")], "placement: no message enters the network"),
    ];
    for (set, why) in cases {
        let found = bench("6").read("training", &[set, &LAYERS].concat()).err();
        assert_eq!(found.as_deref(), Some(why), "{set:?}");
    }
    let message = bench("6").read("training", &[("layers", "1"), ("data", "2")]).err().unwrap();
    assert_eq!(message, "hidden: neither bytes and times of a layer nor a model is given");
    let message = refused(&[("data", "6"), ("iterations", "1000"), ("bucket", "1B"), ("chunk", "1B")]);
    assert!(message.starts_with("iterations: the ranks send more than 4000000 messages"), "{message}");
}

//! Steps of training a transformer: forward and backward passes of microbatches through a pipeline,
//! with tensor, data and expert parallelism.
//!
//! Rank `((p * data + d) * expert + e) * tensor + t` has the stage p of the pipeline, the replica d, the
//! expert e and the part t of tensors. Tensor parallelism is between neighbouring ranks.
//!
//! | messages | bytes | when |
//! |---|---|---|
//! | all-reduce of the ranks of a tensor group | activations of a microbatch | twice in each layer, forward and backward |
//! | send to the next or the last stage | activations of a microbatch / `tensor` | after a stage, forward and backward |
//! | all-to-all of the ranks of an expert group | `dispatch` | before and after the experts of a layer, forward and backward |
//! | all-reduce of gradients | gradients of the layers of a bucket | when the last microbatch has passed these layers |
//!
//! `schedule = "gpipe"` runs all forward passes of a stage, then all backward passes. `1f1b` runs as many
//! forward passes as there are later stages, then one forward and one backward pass in turn, and then the
//! other backward passes. A rank does one pass at a time, and waits for the messages in it.
//!
//! Gradients of layers are reduced in buckets of at least `bucket` bytes, in the order of the backward
//! pass, one bucket of a rank after another: during the backward pass (`overlap`), or after it. The next
//! step of a rank begins when its passes and its buckets have ended, plus `optimizer`.
//!
//! Bytes and times are given (`activation`, `gradient`, `forward`), or follow from the model (`hidden` h,
//! `sequence` s, `batch` b, `vocabulary` V, `precision` q bytes, `teraflops`), for t ranks of a tensor group:
//!
//! | value | formula |
//! |---|---|
//! | `activation` | q b s h |
//! | `gradient` of a layer | q ((12 h² + 7 h) / t + 6 h) |
//! | gradients of word embeddings, at the first and the last stage | q V h / t |
//! | gradients of position embeddings, at the first stage | q s h |
//! | operations of the forward pass of a layer | (24 b s h² + 4 b s² h) / t |
//! | operations of the forward pass of the output layer | 2 b s h V / t |
//! | `backward` | twice `forward` |
//!
//! With t = 1 and one stage, gradients are those of the parameters of equation 2. With bfloat16, Megatron-LM reduces
//! gradients in four bytes (training/arguments.py): give twice the `gradient`.
//!
//! With `expert` above 1, every `expert_every`-th layer has experts, one on each rank of an expert group.
//! Two thirds of the gradients of such a layer are those of its expert, reduced between the `data`
//! replicas; all other gradients are reduced between the `data * expert` replicas.
//!
//! Source: Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
//! Megatron-LM", SC 2021: sections 2.2.1 (schedules), 2.3 (all-reduces of a layer), 3.2 (their bytes: 8 q b s h
//! (t-1)/t for a layer and a rank), 4.1 (sends of a part of the activations), 5.1 (equation 2: parameters), and
//! the appendix (operations). NVIDIA/Megatron-LM: order of ranks (core/parallel_state.py, `tp-cp-ep-dp-pp`),
//! parameters that a tensor group does not divide (core/tensor_parallel/layers.py,
//! core/models/common/embeddings/language_model_embedding.py). Lepikhin et al., GShard, ICLR 2021, section 2.1
//! (experts). Li et al., "PyTorch Distributed", VLDB 2020, and torch/csrc/distributed/c10d/reducer.hpp (buckets).
//!
//! Model: a tensor, expert or data group on one server takes the time of a ring over `local_rate`, from when
//! its last rank begins. Computations have no variation. Interleaved stages, sequence and context parallelism,
//! sharded optimizers, recomputation of activations, and the all-reduce of shared embeddings between the first
//! and the last stage are left out. The first bucket is as large as the others, whereas PyTorch's has 1 MiB
//! (`kDefaultFirstBucketBytes`). An all-to-all and the computation of the same layer do not overlap.
//!
//! Assumed: a computation of a layer is divided in two equal parts, each before one of its all-reduces. The
//! parts of activations that a stage receives are joined within the server in no time (section 4.1).
//! Experts are popular as in `collective`; with `skew`, popularity is drawn for each layer. Tasks of
//! parallel groups have the same name.

mod model;
mod step;

use super::collectives::planned::{PlanFlows, PlannedFlows};
use super::collectives::{Algorithm, CollectiveOp, Common};
use super::listed::{Hosts, once};
use super::program::Placed;
use super::{Draw, Env, MAX_TIME};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Bytes, Dur, Rng};
use model::Sizes;
use std::sync::Arc;
use step::Job;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "training steps of a transformer: pipeline, tensor, data and expert parallelism",
    source: "Narayanan et al., Megatron-LM, SC 2021",
    ..Meta::PLAIN
};

base::choice! {
    /// The order of forward and backward passes.
    pub enum Schedule {
        /// One forward and one backward pass in turn.
        OneForwardOneBackward = "1f1b",
        /// All forward passes, then all backward passes.
        GPipe = "gpipe",
    }
}

base::params! {
    /// Parameters of training steps.
    pub struct Params {
        ..common: Common {}
        /// Number of ranks, for a check: the product of `data`, `tensor`, `pipeline` and `expert`.
        ranks: Auto<u32> = "auto" in Auto::Set(2)..=Auto::Set(1_000_000), "the product", quiet;
        /// Number of replicas of the model.
        data: u32 = "1" in 1..=100_000, "SC 2021: d";
        /// Number of ranks of a tensor group.
        tensor: u32 = "1" in 1..=1_024, "SC 2021: t; takeaway 1: up to the GPUs of a server";
        /// Number of stages of the pipeline.
        pipeline: u32 = "1" in 1..=1_024, "SC 2021: p";
        /// Number of ranks of an expert group.
        expert: u32 = "1" in 1..=1_024, "no experts";
        /// Number of layers of the model.
        layers: u32 = "" in 1..=10_000, "";
        /// Number of microbatches of a replica in a step.
        microbatches: u32 = "1" in 1..=10_000, "SC 2021: m";
        /// Order of forward and backward passes.
        schedule: Schedule = "1f1b", "SC 2021 section 2.2.1";
        /// Activations of a microbatch between two layers; `auto`: from the model.
        activation: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000_000)), "SC 2021 section 3.2";
        /// Gradients of a layer on a rank; `auto`: from the model.
        gradient: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000_000)), "SC 2021 section 5.1, equation 2";
        /// Time of the forward pass of a layer for a microbatch; `auto`: from the model.
        forward: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(1000)), "SC 2021 appendix";
        /// Time of the backward pass of a layer for a microbatch; `auto`: twice `forward`.
        backward: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(1000)), "SC 2021 appendix";
        /// Hidden size of the model.
        hidden: Option<u32> = "none" in Some(1)..=Some(10_000_000), "no default model";
        /// Tokens of a sequence.
        sequence: u32 = "2048" in 1..=100_000_000, "SC 2021 section 5.1";
        /// Sequences of a microbatch.
        batch: u32 = "1" in 1..=1_000_000, "SC 2021: b";
        /// Size of the vocabulary; 0: no embeddings.
        vocabulary: u32 = "51200" in 0..=10_000_000, "SC 2021 section 5.1";
        /// Bytes of a value.
        precision: u32 = "2" in 1..=8, "SC 2021 section 5: mixed precision";
        /// Operations of a GPU in a picosecond, that is tera-operations per second.
        teraflops: u32 = "140" in 1..=100_000, "SC 2021 table 1: 135 to 163 on A100, with all communication";
        /// Number of layers with one layer with experts; the others have none.
        expert_every: u32 = "2" in 1..=10_000, "GShard section 2.1: every other layer";
        /// Number of experts that a token is sent to.
        top: u32 = "2" in 1..=1_024, "GShard section 2.1";
        /// All-to-all of a layer with experts: data of a rank for all ranks; `auto`: `top * activation / tensor`.
        dispatch: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000_000)), "GShard";
        /// Exponent of Zipf's law for the popularity of experts; 0: all alike.
        skew: f64 = "0" in 0.0..=10.0, "experts with equal load";
        /// Smallest bucket of gradients.
        bucket: Bytes = "25MiB" in Bytes(1)..=Bytes(1_000_000_000_000), "PyTorch: kDefaultBucketBytesCap";
        /// Whether gradients are reduced during the backward pass.
        overlap: bool = "true", "PyTorch";
        /// Algorithm of all-reduces; `auto`: `ring`.
        algorithm: Auto<Algorithm> = "auto", "NCCL: rings for large messages";
        /// Algorithm of all-to-alls; `auto`: `direct`.
        all_to_all: Auto<Algorithm> = "auto", "NCCL";
        /// Number of steps.
        iterations: u32 = "1" in 1..=1_000_000, "one step";
        /// Time between the gradients and the next step.
        optimizer: Dur = "0s" in Dur::ZERO..=MAX_TIME, "SC 2021 table 1: part of `teraflops`";
    }
}

impl Params {
    /// Returns the product of the parallel sizes.
    fn product(&self) -> u64 {
        [self.data, self.tensor, self.pipeline, self.expert].map(u64::from).into_iter().fold(1, u64::saturating_mul)
    }
    /// Returns the algorithm of an operation.
    fn algorithm(&self, op: CollectiveOp) -> Algorithm {
        let given = if op == CollectiveOp::AllToAll { self.all_to_all } else { self.algorithm };
        given.or(op.algorithms()[0])
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let (placed, sizes) = match placed(params, env) {
        Ok(found) => found,
        Err(problem) => return vec![problem],
    };
    // Groups of a kind may differ in their servers, so that the algorithm is checked for each.
    let job = Job::new(params, &placed, &sizes);
    if let Some((key, message, hint)) = job.problem() {
        return vec![Problem { key, message, hint }];
    }
    let problem = |key, message, hint: &str| vec![Problem { key, message, hint: hint.to_owned() }];
    match Training::new(params, env).draw {
        Ok(draw) if draw.flows.is_empty() => {
            let hint = "place ranks on several servers, or use several stages or replicas";
            problem("placement", "no message enters the network".to_owned(), hint)
        }
        Ok(_) => Vec::new(),
        Err(message) => problem("iterations", message, "use fewer iterations, microbatches or layers, or larger chunks"),
    }
}

/// Returns the hosts of the ranks, and the bytes and times of a layer.
fn placed(params: &Params, env: &Env<'_>) -> Result<(Placed, Sizes), Problem> {
    let problem = |key, message: String, hint: String| Err(Problem { key, message, hint });
    let product = params.product();
    let factors = format!("{} x {} x {} x {}", params.data, params.tensor, params.pipeline, params.expert);
    if let Auto::Set(ranks) = params.ranks
        && u64::from(ranks) != product
    {
        let message = format!("`{ranks}` is not `data * tensor * pipeline * expert`, which is {factors} = {product}");
        return problem("ranks", message, "change one of the sizes, or remove `ranks`".to_owned());
    }
    if product < 2 {
        return problem("data", "the job has one rank".to_owned(), "write `data = 2` or more".to_owned());
    }
    if !params.layers.is_multiple_of(params.pipeline) {
        let message = format!("`{}` stages do not divide {} layers", params.pipeline, params.layers);
        return problem("pipeline", message, "use a number of stages that divides the number of layers".to_owned());
    }
    let hosts = Hosts::of(env);
    let ranks = usize::try_from(product).unwrap_or(usize::MAX).min(1 << 24);
    let placed = match params.common.hosts.placed(ranks, &hosts) {
        Ok(placed) => placed,
        Err(message) => {
            let hint = format!("the job has {factors} = {product} ranks: use a larger network, or smaller sizes");
            return problem("placement", message, hint);
        }
    };
    Ok((placed, Sizes::new(params)?))
}

/// Training steps.
pub type Training = PlannedFlows<Params>;

impl PlanFlows for Params {
    fn plan(&self, env: &Env<'_>, popularity: Option<&mut Rng>) -> Result<Arc<Draw>, String> {
        let (placed, sizes) = placed(self, env).map_err(|problem| problem.message)?;
        let mut job = Job::new(self, &placed, &sizes);
        if let Some((_, message, _)) = job.problem() {
            return Err(message);
        }
        if let Some(rng) = popularity {
            job.shuffle(rng);
        }
        let key = (self, job.popularity().to_vec());
        let draw = || job.program(env)?.draw(&self.common.hosts, &Hosts::of(env), "operation");
        once("training", &key, env, draw, "training")
    }
    fn ignored(&self) -> Vec<&'static str> {
        let no_experts = self.expert == 1;
        let given = self.activation != Auto::Auto && self.gradient != Auto::Auto && self.forward != Auto::Auto;
        let unused = [
            ("expert_every", no_experts),
            ("dispatch", no_experts),
            ("all_to_all", no_experts),
            ("skew", no_experts),
            ("top", no_experts || self.dispatch != Auto::Auto && self.forward != Auto::Auto),
            ("schedule", self.pipeline == 1 && self.microbatches == 1),
            ("hidden", given),
            ("sequence", self.hidden.is_none()),
            ("batch", self.hidden.is_none()),
            ("vocabulary", self.hidden.is_none()),
            ("precision", self.hidden.is_none()),
            ("teraflops", self.hidden.is_none() || self.forward != Auto::Auto),
        ];
        let unused = unused.into_iter().filter(|(_, unused)| *unused).map(|(key, _)| key);
        unused.chain(self.common.ignored()).collect()
    }
}

#[cfg(test)]
mod tests;

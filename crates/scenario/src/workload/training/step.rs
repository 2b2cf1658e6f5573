//! The program of training steps.

use super::model::Sizes;
use super::{Params, Schedule};
use crate::workload::Env;
use crate::workload::collectives::messages::{Begun, Member, Messages, SlicedData, Step};
use crate::workload::collectives::{Algorithm, Collective, CollectiveOp, zipf};
use crate::workload::program::{Act, Placed, Program};
use crate::workload::tasks::{Moved, Parallelism, Task};
use base::{Dur, Rng};
use std::ops::Range;

/// A job that trains a model.
pub struct Job<'a> {
    p: &'a Params,
    placed: &'a Placed,
    sizes: &'a Sizes,
    /// By layer with experts: bytes to each expert in an all-to-all.
    popularity: Vec<Vec<u64>>,
}

/// A pass of a microbatch through a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// The forward pass of a microbatch.
    Forward(u32),
    /// The backward pass of a microbatch.
    Backward(u32),
}

/// Returns the passes of a stage, in order.
pub fn passes(schedule: Schedule, stages: u32, stage: u32, microbatches: u32) -> Vec<Pass> {
    let first = match schedule {
        Schedule::GPipe => microbatches,
        Schedule::OneForwardOneBackward => (stages - stage - 1).min(microbatches),
    };
    let mut passes: Vec<Pass> = (0..first).map(Pass::Forward).collect();
    passes.extend((first..microbatches).flat_map(|m| [Pass::Forward(m), Pass::Backward(m - first)]));
    passes.extend((microbatches - first..microbatches).map(Pass::Backward));
    passes
}

impl<'a> Job<'a> {
    /// Creates the job, with experts of popularity 1, 2, 3 and so on.
    pub fn new(p: &'a Params, placed: &'a Placed, sizes: &'a Sizes) -> Self {
        let count = if p.expert > 1 && p.skew > 0.0 { p.layers as usize } else { 0 };
        Job { p, placed, sizes, popularity: vec![zipf(sizes.dispatch, p.expert as usize, p.skew); count] }
    }
    /// Draws the popularity of the experts of each layer.
    pub fn shuffle(&mut self, rng: &mut Rng) {
        for sizes in &mut self.popularity {
            // Fisher-Yates shuffle.
            (1..sizes.len()).rev().for_each(|i| sizes.swap(i, rng.below(i as u64 + 1) as usize));
        }
    }
    /// Returns by layer the bytes to each expert; empty without a skew.
    pub fn popularity(&self) -> &[Vec<u64>] {
        &self.popularity
    }

    /// Returns the rank at these places.
    fn rank(&self, [p, d, e, t]: [u32; 4]) -> u32 {
        ((p * self.p.data + d) * self.p.expert + e) * self.p.tensor + t
    }
    fn ranks(&self) -> u32 {
        self.p.data * self.p.tensor * self.p.pipeline * self.p.expert
    }
    /// Returns the ranks of a stage.
    fn stage(&self, p: u32) -> Range<u32> {
        let each = self.ranks() / self.p.pipeline;
        p * each..(p + 1) * each
    }
    fn tensor_groups(&self, p: u32) -> Vec<Vec<u32>> {
        self.stage(p).collect::<Vec<_>>().chunks(self.p.tensor as usize).map(<[u32]>::to_vec).collect()
    }
    fn expert_groups(&self, p: u32) -> Vec<Vec<u32>> {
        let group = |(d, t)| (0..self.p.expert).map(|e| self.rank([p, d, e, t])).collect();
        (0..self.p.data).flat_map(|d| (0..self.p.tensor).map(move |t| (d, t))).map(group).collect()
    }
    /// Returns the groups that reduce gradients: of experts, or all others.
    fn data_groups(&self, p: u32, of_experts: bool) -> Vec<Vec<u32>> {
        let (p_, data, expert) = (p, self.p.data, self.p.expert);
        let whole = |t| (0..data).flat_map(|d| (0..expert).map(move |e| [p_, d, e, t])).map(|at| self.rank(at)).collect();
        let one = |(e, t)| (0..data).map(|d| self.rank([p_, d, e, t])).collect();
        match of_experts {
            false => (0..self.p.tensor).map(whole).collect(),
            true => (0..expert).flat_map(|e| (0..self.p.tensor).map(move |t| (e, t))).map(one).collect(),
        }
    }
    fn has_experts(&self, layer: u32) -> bool {
        self.p.expert > 1 && (layer + 1).is_multiple_of(self.p.expert_every)
    }
    fn members(&self, ranks: &[u32], begin: impl Fn(u32) -> u32) -> Vec<Member> {
        let member = |&rank: &u32| {
            let (server, slot) = (self.placed.server(rank), self.placed.slot(rank));
            Member { rank, begin: begin(rank), place: 0, server, slot }
        };
        ranks.iter().map(member).collect()
    }
    /// Returns a collective of groups like `group`.
    fn collective(&self, op: CollectiveOp, bytes: u64, sizes: Vec<u64>, group: &[u32]) -> Collective {
        let algorithm = self.p.algorithm(op);
        let cutting = self.p.common.cutting(op, algorithm, group.iter().map(|rank| self.placed.server(*rank)));
        Collective { op, algorithm, bytes, sizes, cutting }
    }

    /// Returns what is wrong with the algorithms for the groups of ranks: parameter, message and hint.
    pub fn problem(&self) -> Option<(&'static str, String, String)> {
        let check = |key, op, groups: Vec<Vec<u32>>| {
            let of_group = |group: &Vec<u32>| {
                let members = self.members(group, |_| 0);
                if is_local(&members) { None } else { self.collective(op, 1, Vec::new(), group).problem(&members) }
            };
            groups.iter().find_map(of_group).map(|(message, hint)| (key, message, hint))
        };
        let of_stage = |p: u32| {
            let reduce = || [self.tensor_groups(p), self.data_groups(p, false), self.data_groups(p, true)].concat();
            check("algorithm", CollectiveOp::AllReduce, reduce())
                .or_else(|| check("all_to_all", CollectiveOp::AllToAll, self.expert_groups(p)))
        };
        (0..self.p.pipeline).find_map(of_stage)
    }

    /// Returns the program of all ranks. The error is a complete message.
    pub fn program(&self, env: &Env<'_>) -> Result<Program, String> {
        let ranks = self.ranks();
        let program = Program::new(ranks as usize);
        let mut run = Run { job: self, env, program, iteration: 0, last: Vec::new(), reduced: Vec::new(), messages: 0 };
        run.last = (0..ranks).map(|rank| run.program.add(rank, Act::Compute(Dur::ZERO), Vec::new(), 0)).collect();
        for iteration in 0..self.p.iterations {
            run.iteration = iteration;
            run.reduced = vec![None; ranks as usize];
            run.step()?;
            // All iterations have as many messages.
            env.fit(run.messages / u64::from(iteration + 1) * u64::from(self.p.iterations))?;
        }
        Ok(run.program)
    }
}

/// Returns whether all members are on one server.
fn is_local(members: &[Member]) -> bool {
    members.iter().all(|member| member.server == members[0].server)
}

/// A program under construction.
struct Run<'a> {
    job: &'a Job<'a>,
    env: &'a Env<'a>,
    program: Program,
    iteration: u32,
    /// By rank: the last operation of its passes.
    last: Vec<u32>,
    /// By rank: the end of its last bucket of gradients.
    reduced: Vec<Option<u32>>,
    messages: u64,
}

impl Run<'_> {
    /// Adds a computation.
    fn computation(&mut self, name: String) -> u32 {
        self.program.task(Task { name, iteration: self.iteration, collective: None, parallelism: None })
    }
    /// Adds a collective or a message.
    fn communication(&mut self, name: String, moved: Moved, parallelism: Parallelism) -> u32 {
        let iteration = self.iteration;
        self.program.task(Task { name, iteration, collective: Some(moved), parallelism: Some(parallelism) })
    }
    /// Adds an operation of a rank that takes a time after its last operation and after others.
    fn compute(&mut self, rank: u32, time: Dur, more: &[u32]) -> u32 {
        let after = [&[self.last[rank as usize]], more].concat();
        let op = self.program.add(rank, Act::Compute(time), after, 0);
        self.last[rank as usize] = op;
        op
    }
    /// Adds a computation of each rank after its last operation.
    fn compute_all(&mut self, ranks: Range<u32>, time: Dur) {
        for rank in ranks {
            self.compute(rank, time, &[]);
        }
    }
    /// Adds a collective of members. Returns by member the operation that ends its part.
    fn collective(
        &mut self,
        name: String,
        parallelism: Parallelism,
        collective: &Collective,
        members: &[Member],
    ) -> Result<Vec<u32>, String> {
        let local = is_local(members);
        self.messages += if local { 2 * members.len() as u64 } else { collective.messages(members) };
        self.env.fit(self.messages)?;
        let task = self.communication(name, collective.op.moved(collective.bytes, members.len() as u32), parallelism);
        let ends = if local {
            collective.add_within_server(&mut self.program, task, members)
        } else {
            collective.add(&mut self.program, task, members)
        };
        members.iter().zip(&ends).for_each(|(member, end)| self.program.span(task, member.rank, member.begin, *end));
        Ok(ends)
    }
    /// Adds a collective of each group, after which the ranks go on.
    fn blocking(
        &mut self,
        name: &str,
        parallelism: Parallelism,
        collective: &Collective,
        groups: &[Vec<u32>],
    ) -> Result<(), String> {
        for group in groups.iter().filter(|group| group.len() > 1) {
            let begins: Vec<u32> = group.iter().map(|rank| self.compute(*rank, Dur::ZERO, &[])).collect();
            let first = group[0];
            let stride = group[1] - first;
            let members = self.job.members(group, |rank| begins[((rank - first) / stride) as usize]);
            let ends = self.collective(name.to_owned(), parallelism, collective, &members)?;
            group.iter().zip(ends).for_each(|(rank, end)| self.last[*rank as usize] = end);
        }
        Ok(())
    }

    /// Adds a training step of all stages.
    fn step(&mut self) -> Result<(), String> {
        let p = self.job.p;
        let orders: Vec<Vec<Pass>> = (0..p.pipeline).map(|stage| passes(p.schedule, p.pipeline, stage, p.microbatches)).collect();
        let mut done = vec![0; orders.len()];
        // By stage and microbatch: the operations that receive, by rank of the stage.
        let none = || vec![vec![None; p.microbatches as usize]; orders.len()];
        let mut arrived: [Vec<Vec<Option<Vec<u32>>>>; 2] = [none(), none()];
        while done.iter().zip(&orders).any(|(done, order)| *done < order.len()) {
            for stage in 0..p.pipeline {
                let at = stage as usize;
                let Some(&pass) = orders[at].get(done[at]) else { continue };
                let (forward, m) = match pass {
                    Pass::Forward(m) => (true, m),
                    Pass::Backward(m) => (false, m),
                };
                let is_first = if forward { stage == 0 } else { stage + 1 == p.pipeline };
                let received = arrived[usize::from(forward)][at][m as usize].take();
                if !is_first && received.is_none() {
                    continue;
                }
                done[at] += 1;
                let is_last_pass = done[at] == orders[at].len();
                let sent = self.pass(stage, forward, m, &received.unwrap_or_default(), is_last_pass)?;
                let to = if forward { stage + 1 } else { stage.wrapping_sub(1) };
                if let Some(to) = arrived[usize::from(forward)].get_mut(to as usize) {
                    to[m as usize] = Some(sent);
                }
            }
        }
        let optimizer = (p.optimizer > Dur::ZERO).then(|| self.computation("optimizer".to_owned()));
        for rank in 0..self.job.ranks() {
            let reduced: Vec<u32> = self.reduced[rank as usize].into_iter().collect();
            self.compute(rank, Dur::ZERO, &reduced);
            let op = self.compute(rank, p.optimizer, &[]);
            optimizer.iter().for_each(|task| self.program.span(*task, rank, op, op));
        }
        Ok(())
    }

    /// Adds a pass of a microbatch through a stage. Returns by rank of the stage the operation of the
    /// next stage that receives its results.
    fn pass(&mut self, stage: u32, forward: bool, m: u32, received: &[u32], is_last: bool) -> Result<Vec<u32>, String> {
        let (job, p, sizes) = (self.job, self.job.p, self.job.sizes);
        let ranks = job.stage(stage);
        let at_stage = if p.pipeline > 1 { format!(" at stage {stage}") } else { String::new() };
        let word = if forward { "forward" } else { "backward" };
        let first = ranks.start;
        let begins: Vec<u32> = ranks
            .clone()
            .map(|rank| self.compute(rank, Dur::ZERO, received.get((rank - first) as usize).map_or(&[], std::slice::from_ref)))
            .collect();
        let is_output = stage + 1 == p.pipeline && sizes.output > Dur::ZERO;
        if is_output && !forward {
            self.compute_all(ranks.clone(), sizes.output * 2);
        }
        let each = p.layers / p.pipeline;
        let mut layers: Vec<u32> = (stage * each..(stage + 1) * each).collect();
        if !forward {
            layers.reverse();
        }
        let mut buckets = Buckets::default();
        for layer in layers {
            self.layer(stage, layer, forward, &format!("{word} {m}"))?;
            if is_last {
                let experts = if job.has_experts(layer) { sizes.gradient / 3 * 2 } else { 0 };
                buckets.add([sizes.gradient - experts, experts]);
                // The embeddings follow the first layer. The output layer has the word embeddings too.
                if layer == 0 {
                    buckets.add([sizes.words + sizes.positions, 0]);
                } else if layer + 1 == p.layers && p.pipeline > 1 {
                    buckets.add([sizes.words, 0]);
                }
                let full = buckets.full(p.bucket.0);
                if p.overlap && full {
                    self.reduce(stage, &mut buckets)?;
                }
            }
        }
        if is_output && forward {
            self.compute_all(ranks.clone(), sizes.output);
        }
        let task = self.computation(format!("{word} {m}{at_stage}"));
        for (rank, begin) in ranks.clone().zip(begins) {
            self.program.span(task, rank, begin, self.last[rank as usize]);
        }
        if is_last {
            self.reduce(stage, &mut buckets)?;
        }
        let to = if forward { stage + 1 } else { stage.wrapping_sub(1) };
        if to >= p.pipeline {
            return Ok(Vec::new());
        }
        let what = if forward { "activations" } else { "gradients" };
        ranks.map(|rank| self.send(format!("send {what} {m}{at_stage}"), rank, job.stage(to).start + rank - first)).collect()
    }

    /// Adds the pass through a layer: computations, each followed by an all-reduce of the tensor
    /// group, and all-to-alls before and after the experts.
    fn layer(&mut self, stage: u32, layer: u32, forward: bool, name: &str) -> Result<(), String> {
        let (job, sizes) = (self.job, self.job.sizes);
        let has_experts = job.has_experts(layer);
        let time = if has_experts { sizes.forward_experts } else { sizes.forward };
        let time = if forward { time } else { sizes.backward(time) };
        let tensor = job.tensor_groups(stage);
        let experts = if has_experts { job.expert_groups(stage) } else { Vec::new() };
        let reduce = job.collective(CollectiveOp::AllReduce, sizes.activation, Vec::new(), &tensor[0]);
        let popularity = job.popularity.get(layer as usize).cloned().unwrap_or_default();
        let exchange =
            job.collective(CollectiveOp::AllToAll, sizes.dispatch, popularity, experts.first().map_or(&[], Vec::as_slice));
        // The experts are the second half of the forward pass, and the first of the backward pass.
        let second = if forward { 1 } else { 0 };
        let halves = [Dur(time.0 / 2), Dur(time.0 - time.0 / 2)];
        for (half, time) in halves.into_iter().enumerate() {
            let experts = if half == second { &experts[..] } else { &[] };
            self.blocking(&format!("all_to_all {name} layer {layer}"), Parallelism::Expert, &exchange, experts)?;
            self.compute_all(job.stage(stage), time);
            self.blocking(&format!("all_reduce {name} layer {layer}"), Parallelism::Tensor, &reduce, &tensor)?;
            self.blocking(&format!("all_to_all {name} layer {layer}"), Parallelism::Expert, &exchange, experts)?;
        }
        Ok(())
    }

    /// Adds the all-reduces of a bucket of gradients: first those of the experts.
    fn reduce(&mut self, stage: u32, buckets: &mut Buckets) -> Result<(), String> {
        let (number, bytes) = buckets.take();
        for (of_experts, bytes) in [(true, bytes[1]), (false, bytes[0])] {
            let groups = self.job.data_groups(stage, of_experts);
            let reduce = self.job.collective(CollectiveOp::AllReduce, bytes, Vec::new(), &groups[0]);
            for group in groups.iter().filter(|group| bytes > 0 && group.len() > 1) {
                let begin = |run: &mut Self, rank: u32| {
                    let after = std::iter::once(run.last[rank as usize]).chain(run.reduced[rank as usize]).collect();
                    run.program.add(rank, Act::Compute(Dur::ZERO), after, 0)
                };
                let begins: Vec<u32> = group.iter().map(|rank| begin(self, *rank)).collect();
                let stride = group[1] - group[0];
                let members = self.job.members(group, |rank| begins[((rank - group[0]) / stride) as usize]);
                let what = if of_experts { "expert gradients" } else { "gradients" };
                let at_stage = if self.job.p.pipeline > 1 { format!(" at stage {stage}") } else { String::new() };
                let name = format!("all_reduce {what} {number}{at_stage}");
                let ends = self.collective(name, Parallelism::Data, &reduce, &members)?;
                group.iter().zip(ends).for_each(|(rank, end)| self.reduced[*rank as usize] = Some(end));
            }
        }
        Ok(())
    }

    /// Adds the results of a pass that a rank sends to a rank of the next stage. The sender goes on at
    /// once. Returns the operation that ends when they have arrived.
    fn send(&mut self, name: String, from: u32, to: u32) -> Result<u32, String> {
        let p = self.job.p;
        let bytes = (self.job.sizes.activation / u64::from(p.tensor)).max(1);
        let cutting = p.common.cutting(CollectiveOp::Send, Algorithm::Direct, std::iter::empty());
        let most = cutting.chunk.0.saturating_mul(cutting.channels.into());
        let pieces = bytes.div_ceil(most).min(u64::from(u32::MAX / cutting.channels)) as u32;
        let data = SlicedData { sizes: vec![bytes], channels: cutting.channels, pieces };
        self.messages += u64::from(data.slices());
        self.env.fit(self.messages)?;
        let task = self.communication(name, CollectiveOp::Send.moved(bytes, 2), Parallelism::Pipeline);
        let begin = self.program.add(from, Act::Compute(Dur::ZERO), vec![self.last[from as usize]], 0);
        // The receiver is ready from the start.
        let ready = self.program.add(to, Act::Compute(Dur::ZERO), Vec::new(), 0);
        let members = self.job.members(&[from, to], |rank| if rank == from { begin } else { ready });
        let mut messages = Messages::new(&mut self.program, task, &members, data, cutting.window);
        for slice in 0..messages.slices() {
            messages.send(Step { src: 0, dst: 1, slice, blocks: &[0], sum: false, after: &[], begun: Begun::First, lane: 0 });
        }
        let ends = messages.end();
        self.program.span(task, from, begin, ends[0]);
        self.program.span(task, to, ready, ends[1]);
        Ok(ends[1])
    }
}

/// The gradients of a stage that are not reduced yet.
#[derive(Default)]
struct Buckets {
    /// Bytes of experts, and all others.
    bytes: [u64; 2],
    /// Number of buckets that are reduced.
    count: u32,
}

impl Buckets {
    fn add(&mut self, bytes: [u64; 2]) {
        (0..2).for_each(|i| self.bytes[i] += bytes[i]);
    }
    fn full(&self, least: u64) -> bool {
        self.bytes[0] + self.bytes[1] >= least
    }
    /// Empties the bucket. Returns its number and its bytes.
    fn take(&mut self) -> (u32, [u64; 2]) {
        self.count += 1;
        (self.count - 1, std::mem::take(&mut self.bytes))
    }
}

//! Rows of programs: their tasks, and the parts of ranks in them.

pub use scenario::workload::tasks::{Moved, Parallelism};

/// One task of a program: what a job does on several ranks at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskRow {
    /// The group of the flows of the task.
    pub group_id: u64,
    /// The workload, by index.
    pub workload: u16,
    /// The name.
    pub name: String,
    /// The number of the iteration of the job, from 0.
    pub iteration: u32,
    /// What the task moves; `None`: it is a computation.
    pub collective: Option<Moved>,
    /// The parallelism of a training job that makes its ranks communicate, if it is known.
    pub parallelism: Option<Parallelism>,
    /// Number of parts: one for each rank that takes part.
    pub parts: u32,
    /// Number of messages through the network.
    pub flows: u64,
    /// When the first rank began.
    pub start_ps: Option<u64>,
    /// When the first rank ended its part.
    pub first_finish_ps: Option<u64>,
    /// When the last rank ended its part; `None` if a rank did not.
    pub finish_ps: Option<u64>,
    /// The rank that ended last, or the last one that did not end.
    pub last_rank: u32,
}

impl TaskRow {
    /// Adds the part of a rank. Parts without an end make the task unfinished.
    pub fn add(&mut self, rank: u32, start_ps: Option<u64>, finish_ps: Option<u64>) {
        self.start_ps = self.start_ps.into_iter().chain(start_ps).min();
        if self.parts == 0 || finish_ps.is_none() {
            (self.finish_ps, self.last_rank) = (finish_ps, rank);
        } else if let (Some(last), Some(finish)) = (self.finish_ps, finish_ps)
            && finish > last
        {
            (self.finish_ps, self.last_rank) = (finish_ps, rank);
        }
        self.first_finish_ps = self.first_finish_ps.into_iter().chain(finish_ps).min();
        self.parts += 1;
    }
    /// Returns the time from the first start to the last end of a part.
    pub fn time_ps(&self) -> Option<u64> {
        self.finish_ps.zip(self.start_ps).map(|(finish, start)| finish - start)
    }
    /// Returns the algorithm bandwidth of nccl-tests: size over time, in bit/s. `None` for a
    /// computation, and for a collective within servers.
    pub fn algorithm_bandwidth_bps(&self) -> Option<f64> {
        self.bandwidth(|moved| moved.bytes)
    }
    /// Returns the bus bandwidth of nccl-tests: what each rank must move at least, over time, in
    /// bit/s. It can be compared with the rate of a link, whatever the operation and the number of
    /// ranks.
    pub fn bus_bandwidth_bps(&self) -> Option<f64> {
        self.bandwidth(|moved| moved.bus_bytes)
    }
    fn bandwidth(&self, bytes: impl Fn(&Moved) -> u64) -> Option<f64> {
        let moved = self.collective.as_ref().filter(|_| self.flows > 0)?;
        let time = self.time_ps().filter(|time| *time > 0)?;
        Some(bytes(moved) as f64 * 8e12 / time as f64)
    }
}

/// The part of one rank in a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartRow {
    /// The group of the flows of the task.
    pub group_id: u64,
    /// The workload, by index.
    pub workload: u16,
    /// The rank.
    pub rank: u32,
    /// The host of the rank, counted among hosts.
    pub host: u32,
    /// When the rank began.
    pub start_ps: Option<u64>,
    /// When the rank ended its part.
    pub finish_ps: Option<u64>,
}

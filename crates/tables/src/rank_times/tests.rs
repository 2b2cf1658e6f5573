//! Tests: times by hand, and those of real runs compared with a walk over all instants at which something changes.

use super::*;
use proptest::prelude::*;
use sim::outcome::Outcome;
use sim::scenario;
use sim::tasks::Moved;

const MOVED: Option<Moved> = Some(Moved { operation: "any", bytes: 1, bus_bytes: 1 });

/// The kinds of tasks, each with the parallelism of its row.
const KINDS: [(&str, Option<Parallelism>); 6] = [
    ("tensor", Some(Parallelism::Tensor)),
    ("expert", Some(Parallelism::Expert)),
    ("computation", None),
    ("data", Some(Parallelism::Data)),
    ("other", None),
    ("pipeline", Some(Parallelism::Pipeline)),
];

/// Returns a task of each kind, whose number is its group.
fn tasks(iteration: u32) -> Vec<TaskRow> {
    let of = |(group, (kind, parallelism)): (u64, (&str, Option<Parallelism>))| TaskRow {
        group_id: group + u64::from(iteration) * 10,
        name: kind.to_owned(),
        iteration,
        collective: MOVED.filter(|_| kind != "computation"),
        parallelism,
        ..TaskRow::default()
    };
    (0..).zip(KINDS).map(of).collect()
}

fn part(kind: &str, rank: u32, start: u64, finish: u64) -> PartRow {
    let group_id = KINDS.iter().position(|(name, _)| *name == kind).unwrap() as u64;
    PartRow { group_id, rank, start_ps: Some(start), finish_ps: Some(finish), ..PartRow::default() }
}

/// Returns the times of a rank: computation, tensor, expert, data, pipeline, other, bubble, waiting.
fn times(rank: &RankTime) -> [u64; 8] {
    let communication = [rank.tensor_ps, rank.expert_ps, rank.data_ps, rank.pipeline_ps, rank.other_ps];
    let [tensor, expert, data, pipeline, other] = communication;
    assert_eq!(rank.exposed_ps(), communication.iter().sum::<u64>());
    [rank.computation_ps, tensor, expert, data, pipeline, other, rank.bubble_ps, rank.waiting_ps]
}

#[test]
fn the_time_of_a_rank_is_split_by_what_it_does() {
    let parts = [
        // A pass from 10 to 60 waits for its tensor group from 20 to 30 and for its experts from 30 to 35. Gradients
        // are reduced from 50 to 80, and a message goes to the next stage from 60 to 90.
        part("computation", 0, 10, 60),
        part("tensor", 0, 20, 30),
        part("expert", 0, 30, 35),
        part("data", 0, 50, 80),
        part("pipeline", 0, 60, 90),
        // Idle until a message comes from 95 to 98. After the next pass, idle until another computation.
        part("pipeline", 0, 95, 98),
        part("computation", 0, 98, 100),
        part("computation", 0, 110, 120),
        // The other rank takes part in a collective of no group, and ends the job at 200.
        part("computation", 1, 0, 50),
        part("other", 1, 40, 200),
    ];
    let found = rank_times(&tasks(0), &parts, 200);
    assert_eq!(
        found.iter().map(|rank| (rank.iteration, rank.rank, rank.time_ps)).collect::<Vec<_>>(),
        [(None, 0, 200), (None, 1, 200), (Some(0), 0, 200), (Some(0), 1, 200)]
    );
    // The bubble: before 10, from 90 to 95, and after 120.
    assert_eq!(times(&found[0]), [35 + 2 + 10, 10, 5, 20, 10 + 3, 0, 10 + 5 + 80, 10]);
    assert_eq!(times(&found[1]), [50, 0, 0, 0, 0, 150, 0, 0]);
    // Iterations have the times of all work within them, even of other iterations.
    let mut later = parts.map(|part| PartRow { group_id: part.group_id + 10, ..part });
    later.iter_mut().for_each(|part| part.start_ps = part.start_ps.map(|start| start.max(75)));
    let of_two = rank_times(&[tasks(0), tasks(1)].concat(), &[&parts[..6], &later[6..8], &parts[8..]].concat(), 200);
    let second = of_two.iter().find(|rank| rank.iteration == Some(1) && rank.rank == 0).unwrap();
    assert_eq!((second.time_ps, times(second)), (22, [12, 0, 0, 0, 0, 0, 0, 10]));
}

#[test]
fn work_without_an_end_lasts_to_the_end_of_the_run() {
    let unfinished = PartRow { finish_ps: None, ..part("tensor", 0, 20, 0) };
    let never = PartRow { start_ps: None, finish_ps: None, ..part("computation", 1, 0, 0) };
    let found = rank_times(&tasks(0), &[part("computation", 0, 10, 20), unfinished, never], 100);
    assert_eq!(found[0].time_ps, 90);
    assert_eq!((times(&found[0]), times(&found[1])), ([10, 80, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 90, 0]));
    assert_eq!(rank_times(&tasks(0), &[part("data", 0, 10, 20)], 30).len(), 2);
    let none = tasks(0).into_iter().filter(|task| task.collective.is_some()).collect::<Vec<_>>();
    assert_eq!(rank_times(&none, &[part("data", 0, 10, 20)], 30), [], "nobody computes");
}

/// The kind of a task by its name: the plain way to know it.
fn kind(name: &str) -> usize {
    let found = KINDS.iter().position(|(kind, _)| *kind == name);
    found.unwrap_or_else(|| match name.split_whitespace().collect::<Vec<_>>()[..] {
        ["all_reduce", "forward" | "backward", ..] => 0,
        ["all_to_all", ..] => 1,
        ["forward" | "backward" | "optimizer", ..] => 2,
        ["all_reduce", ..] => 3,
        ["send", ..] => 5,
        _ => panic!("{name}"),
    })
}

/// Walks over all instants at which something changes in a span, and adds up what a rank does between them.
fn walk(tasks: &[TaskRow], parts: &[PartRow], rank: u32, (start, end): (u64, u64)) -> [u64; 8] {
    let own: Vec<(usize, u64, u64)> = parts
        .iter()
        .filter(|part| part.rank == rank)
        .map(|part| {
            let task = tasks.iter().find(|task| task.group_id == part.group_id).unwrap();
            (kind(&task.name), part.start_ps.unwrap(), part.finish_ps.unwrap())
        })
        .collect();
    let mut at: Vec<u64> = own.iter().flat_map(|(_, from, to)| [*from, *to]).chain([start, end]).collect();
    at.retain(|at| (start..=end).contains(at));
    at.sort_unstable();
    let mut sum = [0; 8];
    for pair in at.windows(2).filter(|pair| pair[0] < pair[1]) {
        let (from, to) = (pair[0], pair[1]);
        let doing = own.iter().filter(|(_, begin, finish)| *begin <= from && *finish >= to).map(|(kind, ..)| *kind).min();
        let worked = own.iter().any(|(_, begin, finish)| *begin < from && *finish > start && finish > begin);
        let message = own.iter().any(|(kind, begin, _)| *kind == 5 && *begin == to);
        let place = match doing {
            Some(kind) => [1, 2, 0, 3, 5, 4][kind],
            None if !worked || to == end || message => 6,
            None => 7,
        };
        sum[place] += to - from;
    }
    sum
}

/// Compares all times with the walk.
fn compare(tasks: &[TaskRow], parts: &[PartRow], end_ps: u64) {
    let found = rank_times(tasks, parts, end_ps);
    for rank in &found {
        let own = |part: &&PartRow| {
            let iteration = tasks.iter().find(|task| task.group_id == part.group_id).map(|task| task.iteration);
            rank.iteration.is_none() || rank.iteration == iteration
        };
        let start = parts.iter().filter(own).filter_map(|part| part.start_ps).min().unwrap();
        let end = parts.iter().filter(own).filter_map(|part| part.finish_ps).max().unwrap();
        assert_eq!(rank.time_ps, end - start);
        assert_eq!(times(rank), walk(tasks, parts, rank.rank, (start, end)), "{rank:?}");
        assert_eq!(times(rank).iter().sum::<u64>(), rank.time_ps, "{rank:?}");
    }
}

proptest! {
    #[test]
    fn times_are_those_of_a_walk(rows in prop::collection::vec((0u64..6, 0u32..2, 0u32..3, 0u64..30, 0u64..8), 1..30)) {
        let tasks = [tasks(0), tasks(1)].concat();
        let row = |(kind, iteration, rank, start, time): (u64, u32, u32, u64, u64)| PartRow {
            group_id: kind + u64::from(iteration) * 10,
            rank,
            start_ps: Some(start),
            finish_ps: Some(start + time),
            ..PartRow::default()
        };
        compare(&tasks, &rows.into_iter().map(row).collect::<Vec<_>>(), 50);
    }
}

/// Runs a training job on 8 hosts. A pass of a layer takes 30 us forward and 50 us backward.
fn run(engine: &str, [data, tensor, pipeline, expert]: [u32; 4], more: &str) -> Outcome {
    let text = format!(
        "engine = '{engine}'\n[topology]\nkind = 'leaf_spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         [workload.job]\nkind = 'training'\ndata = {data}\ntensor = {tensor}\npipeline = {pipeline}\nexpert = {expert}\n\
         layers = 4\nmicrobatches = 3\nper_server = 2\nlocal_rate = '100Gbps'\nactivation = '100KB'\n\
         gradient = '300KB'\nforward = '30us'\nbackward = '50us'\n{more}\n\
         [[system]]\ntransport = {{ kind = 'dcqcn', rto = '2ms' }}\nbuffer = 'pfc'\n"
    );
    let plan = scenario::load(&text, "t.toml", ".".as_ref(), &scenario::Options::default()).unwrap_or_else(|e| panic!("{e}"));
    sim::run(&plan.points[0].run, &mut |_| sim::Continue::Yes).unwrap()
}

/// Jobs of several sizes, with and without a failure of the link between a leaf and a spine.
#[test]
fn the_times_of_real_jobs_add_up() {
    const US: u64 = 1_000_000;
    let failure = "[[event]]\nat = '150us'\nlink = ['leaf0', 'spine0']\n";
    for [data, tensor, pipeline, expert] in [[2, 2, 2, 1], [4, 1, 2, 1], [1, 2, 4, 1], [8, 1, 1, 1], [2, 1, 2, 2]] {
        let dispatch = if expert > 1 { "dispatch = '50KB'\n" } else { "" };
        let mut idle = Vec::new();
        for (engine, iterations, event) in [("packet", 1, ""), ("packet", 1, failure), ("packet", 2, failure), ("flow", 1, "")] {
            let of = [data, tensor, pipeline, expert];
            let optimizer = if iterations > 1 { "optimizer = '7us'\n" } else { "" };
            let outcome = run(engine, of, &format!("iterations = {iterations}\n{optimizer}{dispatch}{event}"));
            let (tasks, parts) = (&outcome.tasks, &outcome.parts);
            compare(tasks, parts, outcome.counters.end_ps);
            let found = rank_times(tasks, parts, outcome.counters.end_ps);
            assert_eq!(found.len() as u32, (1 + iterations) * data * tensor * pipeline * expert);
            let window = outcome.counters.window.unwrap();
            for job in found.iter().filter(|rank| rank.iteration.is_none()) {
                // Whatever the network does: 3 microbatches, each through the stage's share of 4 layers. What follows messages
                // of the rank itself counts from their arrival, of which the rank learns up to 4.3 us later: the optimizer of
                // each iteration, and computations between the all-to-alls of experts.
                let passes = u64::from(iterations) * 3 * u64::from(4 / pipeline);
                let computes = passes * 80 * US + if iterations > 1 { 14 * US } else { 0 };
                let waits = if iterations > 1 { 2 } else { 0 } + if expert > 1 { 8 * passes } else { 0 };
                let expected = computes - waits * 43 * US / 10..=computes;
                assert!(expected.contains(&job.computation_ps), "{of:?} {engine} {event}: {job:?}");
                assert_eq!((job.tensor_ps > 0, job.expert_ps > 0), (tensor > 1, expert > 1), "{of:?} {engine} {event}");
                assert_eq!((job.data_ps > 0, job.other_ps), (data * expert > 1, 0), "{of:?} {engine} {event}");
                assert_eq!((job.waiting_ps, job.pipeline_ps > 0), (0, pipeline > 1), "{of:?} {engine} {event}");
                assert_eq!(job.time_ps, window.until_ps - window.from_ps, "the window is the job");
            }
            let jobs = found.iter().filter(|rank| rank.iteration.is_none());
            idle.push(jobs.map(|rank| rank.time_ps - rank.computation_ps).sum::<u64>());
        }
        assert!(idle[1] >= idle[0], "{idle:?}: a failure does not speed a job up");
    }
}

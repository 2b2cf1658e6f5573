//! Runs of whole scenarios against closed forms, papers, the slow oracle, and themselves.
//!
//! One program, since linking a program for each file takes longer than its tests: `cargo test -p flowloom-sim --test runs pfc` runs those
//! of one file.

mod both;
mod common;
#[path = "../../../engine/tests/reference/mod.rs"]
mod reference;

mod built;
mod cabled_hosts;
mod collectives;
mod conformance;
mod controllers;
mod credits;
mod dcpim;
mod dcqcn;
mod difs;
mod ends;
mod failures;
mod flow_engine;
mod flow_engine_spray;
mod fuzz;
mod homa;
mod hosts;
mod loss;
mod mptcp;
mod ndp;
mod nics;
mod oracle;
mod pdq;
mod pfc;
mod policies;
mod queues;
mod rates;
mod receivers;
mod replay;
mod routers;
mod sample;
mod sawtooth;
mod sird;
mod starvation;
mod theory;
mod uet;
mod uet_planes;
mod waiting;
mod why;
mod window;

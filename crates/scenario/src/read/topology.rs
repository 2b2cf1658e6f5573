//! Reading `[topology]`, and building the network of each variant.

use super::section::Reading;
use crate::plan::draft::{Built, Section};
use crate::plan::keys::Head;
use crate::plan::render::shown;
use crate::system::envs;
use crate::text::diag::Item;
use crate::text::part::{Part, kind_of, listed};
use crate::text::tree::Table;
use crate::topology::memory::{in_a_run, too_large, when_built};
use crate::topology::{AnyParams, AnyTopology, ROOM, Topology as _};
use base::HostId;
use fabric::net::NetBuilder;
use fabric::routes::Routes;
use std::sync::Arc;

impl Reading<'_> {
    /// Reads the topology in all variants; without variants if it cannot be read.
    pub fn topology(&mut self, whole: Part<'_>, head: &Head) -> Section<Built> {
        let none = || Section { name: "topology".to_owned(), at: whole.at, table: Table::default(), variants: Vec::new() };
        self.topology_variants(whole, head).unwrap_or_else(none)
    }

    fn topology_variants(&mut self, whole: Part<'_>, head: &Head) -> Option<Section<Built>> {
        let Some(entry) = whole.table.get("topology") else {
            let names = listed(ROOM.names());
            let hint = format!("add a table [topology] with `kind = \"...\"`: one of {names}");
            self.problems.push(Item::new(whole.at, "the scenario has no topology", "needs [topology]", hint).absent());
            return None;
        };
        let part = self.table_of(entry.key_at, &entry.node, "topology", "kind = \"single_tree\"")?;
        let kind = kind_of(&ROOM, None, part, &mut self.problems)?;
        part.refuse_unknown(kind.fields, &["kind"], &mut self.problems);
        let files = Arc::clone(self.files);
        let env = envs::topology(&files);
        // `check` and `run` keep the networks of all variants in memory; a run also keeps its state
        // for one of them.
        let (mut built, mut run) = (0u64, 0);
        let section = self.section(part, "topology", "topology", |this, part| {
            let before = this.problems.len();
            let params = AnyParams::read(kind.name, &mut this.reader(part, kind.fields))?;
            this.problems.extend(part.problems(params.check(&env)));
            if this.problems.len() > before {
                return None;
            }
            let machine = params.build(&env);
            let size = machine.size();
            built = built.saturating_add(when_built(size));
            run = in_a_run(size).max(run);
            if let Some(item) = too_large(part, size, built.saturating_add(run), this.memory) {
                this.problems.push(item);
                return None;
            }
            let parts = vec![shown("", kind, params.show(), Vec::new())];
            Some((this.build(part, params, &machine, head)?, parts))
        });
        Some(section)
    }

    fn build(&mut self, part: Part<'_>, params: AnyParams, machine: &AnyTopology, head: &Head) -> Option<Built> {
        let mut builder = NetBuilder::default();
        machine.build(&mut builder);
        let net = builder.build();
        if net.hosts().len() < 2 {
            let message = format!("a network needs at least two hosts, but this network has {}", net.hosts().len());
            self.problems.push(part.problem("kind", message, "too small", "add hosts"));
            return None;
        }
        let routes = Routes::new(&net, &[]);
        // Cables are bidirectional: if the first host reaches all hosts, all hosts reach each
        // other, unless a host with several NICs lies on a path.
        let mut all = (1..net.hosts().len() as u32).map(HostId);
        let apart = match net.multi_nic_host() {
            Some(_) => routes.unreachable().is_some(),
            None => all.any(|dst| routes.distance(net.hosts()[0], dst).is_none()),
        };
        let max_rtt = routes.max_rtt(&net, head.mtu.0, head.header.0);
        let full_rtt = routes.max_rtt(&net, head.mtu.0, head.mtu.0);
        Some(Built { params, net: Arc::new(net), routes: Arc::new(routes), max_rtt, full_rtt, apart })
    }
}

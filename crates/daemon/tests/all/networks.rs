// SPDX-License-Identifier: Apache-2.0
//! Machines that reach each other over a network that can be cut: namespaces of the kernel's, each with one address.

use crate::databases::postgres::Machine;
use metaslot_testkit::{Program, not_run};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::thread;

/// The machines, and what connects them. They go with the test.
#[derive(Debug)]
pub(crate) struct Networks {
    name: String,
    pub(crate) machines: Vec<Machine>,
}

fn ip(line: &str) -> bool {
    Program::new("ip").line(line).output().is_ok_and(|output| output.status == 0)
}

impl Networks {
    /// `None` where there is no right to make them.
    pub(crate) fn new(what: &str, count: usize) -> Option<Self> {
        let name = format!("metaslot-{}", std::process::id());
        let mut networks = Self { name, machines: Vec::new() };
        let name = networks.name.clone();
        let begun = ip(&format!("netns add {name}-0"))
            && ip(&format!("-n {name}-0 link add hub type bridge"))
            && ip(&format!("-n {name}-0 link set hub up"));
        if !(begun && (1..=count).all(|number| networks.add(number))) {
            not_run("metaslotd", what, "there is no right to make network namespaces, or no ip");
            return None;
        }
        Some(networks)
    }

    fn add(&mut self, number: usize) -> bool {
        let name = &self.name;
        let (network, address) = (format!("{name}-{number}"), format!("10.77.0.{number}"));
        let made = ip(&format!("netns add {network}"))
            && ip(&format!(
                "-n {name}-0 link add m{number} type veth peer name eth0 netns {network}"
            ))
            && ip(&format!("-n {name}-0 link set m{number} up"))
            && ip(&format!("-n {network} addr add {address}/24 dev eth0"))
            && ip(&format!("-n {network} link set eth0 up"))
            && ip(&format!("-n {network} link set lo up"));
        self.machines.push(Machine { network: Some(network), address });
        made && self.join(number)
    }

    /// The machine of this number is heard by the others, beginning with 1.
    pub(crate) fn join(&self, number: usize) -> bool {
        ip(&format!("-n {}-0 link set m{number} master hub", self.name))
    }

    /// Nothing comes from it or gets to it, and it is not told so.
    pub(crate) fn cut(&self, number: usize) -> bool {
        ip(&format!("-n {}-0 link set m{number} nomaster", self.name))
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        for number in 0..=self.machines.len() {
            ip(&format!("netns del {}-{number}", self.name));
        }
    }
}

/// Does something on a machine; threads that it starts are there, too.
pub(crate) fn on<R: Send>(machine: &Machine, work: impl FnOnce() -> R + Send) -> R {
    let name = machine.network.as_ref().expect("it has a network of its own");
    let network = File::open(format!("/run/netns/{name}")).expect("it is there");
    let moved = move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("the thread moves");
        work()
    };
    thread::scope(|scope| scope.spawn(moved).join().expect("it ends"))
}

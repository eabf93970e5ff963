// SPDX-License-Identifier: Apache-2.0
//! Results for tests.

use super::report::{Arm, Door, FilledResult, KernelResult, PortResult, Window};

pub(crate) fn window(operations: u64, cpu_seconds: f64) -> Window {
    Window {
        operations,
        pending: 0,
        seconds: 0.5,
        cpu_seconds,
        p50_ns: 1000.0,
        p99_ns: 2000.0,
        batches: operations / 8,
        batched: operations,
    }
}

pub(crate) fn kernel() -> KernelResult {
    let port = |name: &str, instructions, ns| PortResult {
        name: name.to_owned(),
        instructions,
        ns: vec![ns; 3],
    };
    KernelResult {
        available: true,
        library: "AWS-LC".to_owned(),
        raw_ns: vec![400.0, 420.0, 380.0],
        lanes: vec![
            FilledResult { filled: 1, ns: vec![800.0, 840.0, 760.0] },
            FilledResult { filled: 8, ns: vec![100.0, 105.0, 95.0] },
        ],
        ports: vec![port("vector ALU", 100.0, 0.2), port("vector shift", 150.0, 0.4)],
        source: "executed".to_owned(),
        foreign_cpu: None,
    }
}

pub(crate) fn arm(threads: usize, with: f64, without: f64) -> Arm {
    Arm {
        door: Door::Blocking,
        threads,
        keys: 1,
        depth: 1,
        with: vec![window(1000, with); 5],
        without: vec![window(1000, without); 5],
    }
}

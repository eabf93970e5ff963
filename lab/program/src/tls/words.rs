// SPDX-License-Identifier: Apache-2.0
//! What follows from the figures of this run, in sentences.

use super::options::Server;
use super::view::{Cell, Gain, View};
use crate::table::digits;

/// What batches can gain, and what they gain.
pub(super) fn gains(view: &View<'_>) -> Vec<String> {
    let cells = view.cells();
    let sentences = cells.iter().filter_map(|cell| Some(sentence(cell, &view.gain(cell)?)));
    let mut lines: Vec<String> = sentences.collect();
    if lines.is_empty() {
        lines.push(
            "Amdahl's limit needs the servers 'loop' and 'haproxy', and connections beyond 1; the cost of a pause needs 1 as well."
                .to_owned(),
        );
    }
    lines
}

fn sentence(cell: &Cell, gain: &Gain) -> String {
    let time = |nanoseconds: f64| format!("{} µs", digits(nanoseconds / 1e3));
    let percent = |share: f64| format!("{} %", digits(100.0 * share));
    let limit = gain.limit();
    let mut text = format!(
        "{}, {}, {} connections: a handshake with the key in a file costs {}, its signature {} of that ({}); in batches that costs {}. \
         Amdahl's limit is × {}, measured is × {}: {} of the limit",
        cell.server.word(),
        cell.key,
        cell.connections,
        time(gain.whole),
        percent(gain.share()),
        time(gain.signing),
        time(gain.batched),
        digits(limit),
        digits(gain.measured),
        percent(gain.measured / limit),
    );
    if let (Some(pause), Some(with)) = (gain.pause, gain.limit_with_pause()) {
        let more = format!(
            "; a pause alone adds {}, with which the limit is × {}: {} of that one",
            time(pause),
            digits(with),
            percent(gain.measured / with)
        );
        text.push_str(&more);
    }
    text + "."
}

/// What the names mean.
pub(super) fn who(view: &View<'_>) -> Vec<String> {
    let settings = &view.experiment.manifest.provenance.settings;
    let mut lines = vec![
        "file: the key in a file, libcrypto signs; file-jobs: the same with ssl-mode-async in HAProxy; token: a key of the token by metaslot.so, every signature at once; jobs: the same with \
         async-jobs = yes, and ssl-mode-async in HAProxy; no-lanes: a key of the token, lanes = false; daemon: a key of the token in \
         metaslotd, whose processor time counts as the server's".to_owned(),
        "threads and java ask the module itself, in a thread for each connection, and wait".to_owned(),
        format!(
            "{}: the signature alone, by the loop of openssl speed, with as many jobs as there are connections",
            Server::Loop.word()
        ),
        "Processor time is the server's with all its processes; the clients are outside. Figures of token, jobs and daemon stand here only where \
         the module's counters rose by a signature for each handshake."
            .to_owned(),
    ];
    lines.extend(settings.iter().map(|(name, value)| format!("{name}: {value}")));
    lines
}

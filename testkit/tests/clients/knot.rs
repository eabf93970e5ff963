// SPDX-License-Identifier: Apache-2.0
//! Knot DNS: it makes a zone's keys in the token, and signs the zone.

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{TestToken, USER_PIN, check, free_port};

use crate::processes::until;
use crate::recipe;

const CLIENT: &str = "Knot DNS";
const NEEDS: &[&str] = &["keymgr", "kzonesign", "pkcs11-tool"];

/// A zone, what Knot is told of it, and a key that it makes in the token.
fn prepare(token: &mut TestToken, algorithm: &str, port: u16) -> Result<()> {
    token.spy()?;
    let home = token.home().display();
    for directory in ["zones", "signed"] {
        std::fs::create_dir(token.path(directory))?;
    }
    let changes = [("123456", USER_PIN), ("ECDSAP256SHA256", algorithm)];
    let page = recipe::block(token, "Knot DNS", 0, &changes)?;
    token.write(
        "knot.conf",
        format!(
            "server:\n    rundir: \"{home}\"\n    user: root:root\n    listen: 127.0.0.1@{port}\n\
             database:\n    storage: \"{home}\"\n{page}zone:\n  - domain: example.test\n    \
             storage: \"{home}/zones\"\n    file: zone\n    dnssec-signing: on\n    dnssec-policy: signed\n"
        ),
    )?;
    let names: String = (0..50).map(|name| format!("name{name} IN A 192.0.2.1\n")).collect();
    let text = format!(
        "$TTL 300\n@ IN SOA ns.example.test. admin.example.test. 1 3600 600 86400 300\n\
         @ IN NS ns.example.test.\nns IN A 192.0.2.1\n{names}"
    );
    token.write("zones/zone", text)?;
    let changes = [("ECDSAP256SHA256", algorithm)];
    recipe::command(token, ("Knot DNS", 1), "keymgr ", &changes)?.run().map(drop)
}

/// How many signatures a file has.
fn signatures(token: &TestToken, name: &str) -> Result<usize> {
    let zone = std::fs::read_to_string(token.path(name)).context("read the zone")?;
    Ok(zone.matches("RRSIG").count())
}

fn signs(what: &str, algorithm: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
        prepare(token, algorithm, 53)?;
        recipe::command(token, ("Knot DNS", 1), "kzonesign ", &[])?.run()?;
        let signatures = signatures(token, "signed/zone")?;
        ensure!(signatures > 100, "{signatures} signatures");
        std::fs::copy(token.path("signed/zone"), token.path("zones/zone")).context("copy")?;
        token.program("kzonesign").line("-c knot.conf --verify example.test").run()?;
        token.called(summary)
    });
}

#[test]
fn a_server_signs_its_zone() {
    let needs: Vec<&str> = NEEDS.iter().copied().chain(["knotd"]).collect();
    check(CLIENT, "knotd", &needs, |token| {
        let port = free_port()?;
        prepare(token, "ECDSAP256SHA256", port)?;
        let server = token.program("knotd").line("-c knot.conf").serve(port, token.home())?;
        // It writes the zone when that is signed.
        until("no signed zone", || Ok(signatures(token, "zones/zone")? > 100))?;
        token.called("knot-ec")?;
        drop(server);
        token.program("kzonesign").line("-c knot.conf --verify example.test").run().map(drop)
    });
}

#[test]
fn a_zone_is_signed_with_p256() {
    signs("keymgr, kzonesign, P-256", "ECDSAP256SHA256", "knot-ec");
}

#[test]
fn a_zone_is_signed_with_rsa() {
    signs("keymgr, kzonesign, RSA", "RSASHA256", "knot");
}

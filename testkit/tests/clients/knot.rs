// SPDX-License-Identifier: Apache-2.0
//! Knot DNS: it makes a zone's keys in the token, and signs the zone.

use anyhow::ensure;
use metaslot_testkit::{USER_PIN, check};

use crate::recipe;

const CLIENT: &str = "Knot DNS";
const NEEDS: &[&str] = &["keymgr", "kzonesign", "pkcs11-tool"];

fn signs(what: &str, algorithm: &str, summary: &str) {
    check(CLIENT, what, NEEDS, |token| {
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
                "server:\n    rundir: \"{home}\"\n    user: root:root\ndatabase:\n    storage: \"{home}\"\n\
                 {page}zone:\n  - domain: example.test\n    \
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
        recipe::command(token, ("Knot DNS", 1), "keymgr ", &changes)?.run()?;
        recipe::command(token, ("Knot DNS", 1), "kzonesign ", &[])?.run()?;
        let zone = std::fs::read_to_string(token.path("signed/zone"))?;
        let signatures = zone.matches("RRSIG").count();
        ensure!(signatures > 100, "{signatures} signatures in\n{zone}");
        token.write("zones/zone", &zone)?;
        token.program("kzonesign").line("-c knot.conf --verify example.test").run()?;
        token.called(summary)
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

// SPDX-License-Identifier: Apache-2.0
//! The same steps over every other module: what is true of one of them is here, as data.

use super::*;
use metaslot_testkit::{check, left_out, not_run};
use std::os::unix::fs::MetadataExt as _;

/// Another module, and what is to be expected of it.
pub(super) struct Other {
    /// Its name in our configuration.
    pub(super) name: &'static str,
    pub(super) library: &'static str,
    /// What else has to be on the machine.
    pub(super) programs: &'static [&'static str],
    pub(super) label: &'static str,
    pub(super) manufacturer: &'static str,
    /// Makes its token, and says what else its section has.
    pub(super) prepare: fn(&mut TestToken) -> Result<String>,
    /// What a shell does before any program runs with its token, in namespaces of its own.
    alone: &'static str,
    /// What a shell does to start its daemons; their numbers go to `daemons.pid`.
    pub(super) daemons: &'static str,
    /// What its token is to list, of what is its own.
    pub(super) lists: &'static [CK_MECHANISM_TYPE],
    /// How its RSA keys sign.
    pub(super) signs: &'static [CK_MECHANISM_TYPE],
    pub(super) has_curves: bool,
    /// How its AES keys encrypt.
    pub(super) ciphers: &'static [CK_MECHANISM_TYPE],
    /// Whether the token says that a wrong PIN was tried.
    pub(super) counts_pins: bool,
}

const SOFT: Other = Other {
    name: "softhsm",
    library: SOFTHSM,
    programs: &["softhsm2-util"],
    label: LABEL,
    manufacturer: "SoftHSM project",
    prepare: |token| {
        let tool =
            token.program("softhsm2-util").args(["--init-token", "--free", "--label", LABEL]);
        tool.args(["--pin", USER_PIN, "--so-pin", SO_PIN]).run()?;
        Ok(String::new())
    },
    alone: "",
    daemons: "",
    lists: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKM_ECDSA, CKM_AES_GCM, CKM_ECDH1_DERIVE],
    signs: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS],
    has_curves: true,
    ciphers: &[CKM_AES_CBC, CKM_AES_CBC_PAD],
    counts_pins: true,
};

const NSS: Other = Other {
    name: "nss",
    library: nss::SOFTOKEN,
    programs: &[],
    label: nss::TOKEN,
    manufacturer: "Mozilla Foundation",
    prepare: nss::prepared,
    alone: "",
    daemons: "",
    lists: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKM_ECDSA, CKM_AES_GCM, CKM_ECDH1_DERIVE],
    signs: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS],
    has_curves: true,
    ciphers: &[CKM_AES_CBC, CKM_AES_CBC_PAD],
    counts_pins: false,
};

/// openCryptoki has one directory for its tokens, one socket and one daemon: in namespaces of its own each test has them.
const CRYPTOKI: Other = Other {
    name: "opencryptoki",
    library: "/usr/lib/x86_64-linux-gnu/pkcs11/libopencryptoki.so",
    programs: &["pkcsslotd", "unshare"],
    label: "ock",
    manufacturer: "IBM Corp.",
    prepare: |token| by_pkcs11_tool(token, &CRYPTOKI, "0"),
    alone: r#"
        all=$HOME/opencryptoki
        for directory in run/lock/opencryptoki/swtok lib/swtok/TOK_OBJ etc; do mkdir -p "$all/$directory"; done
        printf 'version opencryptoki-3.8\nslot 0\n{\nstdll = libpkcs11_sw.so\n}\n' >"$all/etc/opencryptoki.conf"
        chgrp -R pkcs11 "$all"
        chmod -R 770 "$all"
        mount --bind "$all/lib" /var/lib/opencryptoki
        mount --bind "$all/etc" /etc/opencryptoki
        mount --bind "$all/run" /run
        mount -t tmpfs tmpfs /dev/shm
    "#,
    daemons: r#"
        rm -f /run/pkcsslotd.socket
        pkcsslotd -f &
        echo $! >"$HOME/daemons.pid"
        until [ -S /run/pkcsslotd.socket ]; do sleep 0.01; done
    "#,
    lists: &[CKM_RSA_PKCS, CKM_RSA_PKCS_OAEP, CKM_RSA_PKCS_PSS, CKM_AES_CBC_PAD, CKM_SHA256_HMAC],
    signs: &[CKM_RSA_PKCS],
    has_curves: false,
    ciphers: &[CKM_AES_CBC, CKM_AES_CBC_PAD],
    counts_pins: true,
};

/// A TPM in software, behind the usual daemon: a TPM alone has room for three keys, and a caller.
const TPM: Other = Other {
    name: "tpm",
    library: "/usr/lib/x86_64-linux-gnu/pkcs11/libtpm2_pkcs11.so",
    programs: &["swtpm", "tpm2-abrmd", "dbus-daemon", "tpm2_dictionarylockout"],
    label: "tpm",
    manufacturer: "IBM",
    prepare: |token| {
        for directory in ["tpm", "tpm-store"] {
            std::fs::create_dir(token.path(directory))?;
        }
        let bus = format!("unix:path={}", token.path("bus").display());
        token.set("DBUS_SESSION_BUS_ADDRESS", &bus);
        token.set("SWTPM_PORT", free_ports()?.to_string());
        token.set("TPM2_PKCS11_STORE", token.path("tpm-store"));
        token.set("TPM2_PKCS11_TCTI", "tabrmd:bus_type=session");
        token.set("TSS2_LOG", "all+NONE");
        by_pkcs11_tool(token, &TPM, "1")
    },
    alone: r#"
        rm -f "$HOME/bus"
        dbus-daemon --session --nofork --address="$DBUS_SESSION_BUS_ADDRESS" 2>"$HOME/bus.log" &
        until [ -S "$HOME/bus" ]; do sleep 0.01; done
    "#,
    // To a TPM that ends without a word, as here, each login that there was may have been a wrong one.
    daemons: r#"
        swtpm socket --tpm2 --tpmstate "dir=$HOME/tpm" --flags not-need-init,startup-clear --seccomp action=none \
            --server "type=tcp,bindaddr=127.0.0.1,port=$SWTPM_PORT" --ctrl "type=tcp,bindaddr=127.0.0.1,port=$((SWTPM_PORT + 1))" &
        echo $! >"$HOME/daemons.pid"
        until grep -q "$(printf '0100007F:%04X 00000000:0000 0A' "$SWTPM_PORT")" /proc/net/tcp; do sleep 0.01; done
        tpm2-abrmd --allow-root --session --tcti="swtpm:host=127.0.0.1,port=$SWTPM_PORT" &
        echo $! >>"$HOME/daemons.pid"
        until pkcs11-tool --module /usr/lib/x86_64-linux-gnu/pkcs11/libtpm2_pkcs11.so --list-slots; do sleep 0.01; done
        tpm2_dictionarylockout --tcti="$TPM2_PKCS11_TCTI" --setup-parameters --max-tries=100 --clear-lockout
    "#,
    lists: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_ECDSA_SHA256, CKM_AES_CBC],
    signs: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS],
    has_curves: true,
    // It lists how AES keys are made, and makes none.
    ciphers: &[],
    counts_pins: false,
};

/// Where kryoptic comes from: it is at crates.io.
pub(super) const BUILT_APART: &str = "cargo xtask kryoptic builds it";

pub(super) const KRYOPTIC: Other = Other {
    name: "kryoptic",
    library: concat!(env!("CARGO_MANIFEST_DIR"), "/../target/kryoptic/libkryoptic.so"),
    programs: &[],
    label: "kry",
    manufacturer: "Kryoptic Project",
    prepare: |token| {
        let database = token.path("kryoptic.sql").display().to_string();
        let slot = format!("[[slots]]\nslot = 1\ndbtype = \"sqlite\"\ndbargs = \"{database}\"\n");
        let conf = token.write("kryoptic.conf", slot)?;
        token.set("KRYOPTIC_CONF", conf);
        by_pkcs11_tool(token, &KRYOPTIC, "1")
    },
    alone: "",
    daemons: "",
    lists: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_ECDSA_SHA256, CKM_AES_GCM, CKM_ECDH1_DERIVE],
    signs: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS],
    has_curves: true,
    ciphers: &[CKM_AES_CBC, CKM_AES_CBC_PAD],
    counts_pins: false,
};

/// A free port with a free one after it, where a TPM is controlled.
fn free_ports() -> Result<u16> {
    loop {
        let port = metaslot_testkit::free_port()?;
        if std::net::TcpListener::bind(("127.0.0.1", port.wrapping_add(1))).is_ok() {
            return Ok(port);
        }
    }
}

/// Makes a token as its users do.
fn by_pkcs11_tool(token: &TestToken, other: &Other, slot: &str) -> Result<String> {
    let tool = || token.program("pkcs11-tool").args(["--module", other.library, "--slot", slot]);
    tool().args(["--init-token", "--label", other.label, "--so-pin", SO_PIN]).run()?;
    let officer = ["--login", "--login-type", "so", "--so-pin", SO_PIN];
    tool().args(officer).args(["--init-pin", "--new-pin", USER_PIN]).run()?;
    Ok(String::new())
}

/// Why a module cannot be tested here.
pub(super) fn missing(other: &Other) -> Option<String> {
    if !Path::new(other.library).exists() {
        return Some(format!("{} is not installed", other.library));
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !other.daemons.is_empty() && !is_root {
        return Some(String::from("only root has a namespace for its daemons"));
    }
    let program = other.programs.iter().find(|name| find_program(name).is_none())?;
    Some(format!("{program} is not installed"))
}

/// Our configuration with the module in it, and its PIN in a file.
pub(super) fn prepared(token: &mut TestToken, other: &Other, more: &str) -> Result<()> {
    if !other.daemons.is_empty() {
        // Its daemons end with it, whatever happens.
        let unshare = "unshare --mount --ipc --pid --fork --kill-child --mount-proc sh -euc";
        let daemons = token
            .write("daemons.sh", format!("{{ {} }} >\"$HOME/daemons.log\" 2>&1", other.daemons))?;
        let script = format!("{}\n. {}\n\"$@\"", other.alone, daemons.display());
        let command = unshare.split(' ').chain([script.as_str(), "sh"]).map(Into::into);
        token.within(command);
    }
    let settings = (other.prepare)(token)?;
    let pin = token.write("foreign-pin", format!("{USER_PIN}\n"))?.display().to_string();
    let section = format!("name = \"{}\"\nmodule = \"{}\"", other.name, other.library);
    configure(token, &format!("{section}\npin-source = \"file:{pin}\"\n{settings}\n{more}"))
}

/// Every step over one module. `more`: further settings.
fn steps_over(other: &Other, name: &str, more: &str) {
    let what =
        format!("steps over {}{}{more}", other.name, if more.is_empty() { "" } else { ", " });
    let prepare = |token: &mut TestToken| prepared(token, other, more);
    match missing(other).filter(|_| !is_inside()) {
        Some(_) if other.name == KRYOPTIC.name => left_out(CLIENT, &what, BUILT_APART),
        Some(reason) => not_run(CLIENT, &what, &reason),
        None => apart(CLIENT, &what, name, prepare, || steps::all(other)),
    }
}

#[test]
fn softhsm_does_every_step() {
    steps_over(&SOFT, "modules::softhsm_does_every_step", "");
}

#[test]
fn softoken_of_nss_does_every_step() {
    steps_over(&NSS, "modules::softoken_of_nss_does_every_step", "");
}

#[test]
fn opencryptoki_does_every_step() {
    steps_over(&CRYPTOKI, "modules::opencryptoki_does_every_step", "");
}

#[test]
fn kryoptic_does_every_step() {
    steps_over(&KRYOPTIC, "modules::kryoptic_does_every_step", "");
}

#[test]
fn tpm_does_every_step() {
    steps_over(&TPM, "modules::tpm_does_every_step", "");
}

/// As [`SOFT`], in a process of its own: what p11-kit's protocol carries.
const ISOLATED: Other = Other {
    programs: &["softhsm2-util", "p11-kit"],
    lists: &[CKM_RSA_PKCS, CKM_SHA256_RSA_PKCS, CKM_RSA_PKCS_PSS, CKM_ECDSA, CKM_AES_CBC],
    ..SOFT
};

#[test]
fn isolated_softhsm_does_every_step() {
    steps_over(&ISOLATED, "modules::isolated_softhsm_does_every_step", "isolated = true");
}

/// A key of a module is used before a fork, in the child, and afterwards in the parent.
fn forks(other: &Other, more: &str) {
    let what = format!("fork over {} {more}", other.name);
    match missing(other) {
        Some(_) if other.name == KRYOPTIC.name => return left_out(CLIENT, &what, BUILT_APART),
        Some(reason) => return not_run(CLIENT, &what, &reason),
        None => {}
    }
    check(CLIENT, &what, &["gcc"], |token| {
        prepared(token, other, more)?;
        compiled(token, "fork.c", "fork", "-ldl")?;
        let program = token.program("./fork").arg(token.module());
        let program = program.args([other.label, USER_PIN]);
        program.run()?.with(&["parent and child have signed"]).map(|_| ())
    });
}

/// Not a TPM's: its module calls its daemon by GLib, which a forked child cannot use.
#[test]
fn forked_child_begins_anew_with_every_module() {
    [&SOFT, &NSS, &CRYPTOKI].into_iter().for_each(|other| forks(other, ""));
    forks(&ISOLATED, "isolated = true");
}

#[test]
fn forked_child_begins_anew_with_kryoptic() {
    forks(&KRYOPTIC, "");
}

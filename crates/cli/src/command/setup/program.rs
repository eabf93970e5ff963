// SPDX-License-Identifier: Apache-2.0
//! The programs that `metaslot setup` knows. A program is a row here and a file in `crates/cli/setup`, where `= NAME`
//! begins a file of its configuration, `= /NAME` one that Debian's package of the program includes, `= user` who serves, `= certificate` what
//! else is said where one is made, `= shows` that it shows no key without one in the token,
//! `= start` how it is started with the latter, `= unit` its unit of systemd's and what is typed before that is started, `= test` how it tests the machine's own configuration, `= then` what is typed without them, `= no ed25519` what of it takes no such key
//! from a token, `= proxy FILE` its configuration as a TLS proxy, which `= proxy check` checks, and a unit has by `= proxy service` and a shell starts by `= proxy daemon`,
//! and `= verify PROCESS` runs it until PROCESS has signed. A section whose name ends in `by provider` is in the place of the one without where a
//! provider is the bridge.

use crate::failure::{Failure, Result};
use clap::ValueEnum;
use std::path::Path;

/// The names in a recipe that stand for something of the key's or its token's.
const OF_KEY: [&str; 14] = [
    "bare", "barepem", "uri", "keyuri", "tokenuri", "token", "serial", "label", "id", "slot",
    "family", "pem", "sshkey", "kind",
];

/// How the names of sections begin that make a TLS proxy of it.
const OF_PROXY: &str = "proxy ";

/// How the names of sections end that are a provider's.
const BY_PROVIDER: &str = " by provider";

/// A program, and what it needs to use a key of a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// What is looked for in the search path.
    pub(super) command: &'static str,
    /// What it is in a Debian system.
    pub(super) package: &'static str,
    pub(super) bridge: Bridge,
    /// What it needed before there was a provider of ours.
    usual: Bridge,
    /// The file of OpenSSL's configuration with a provider.
    own: &'static str,
    text: &'static str,
}

/// What of OpenSSL's it needs, and the configuration for that.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(super) enum Bridge {
    #[value(skip)]
    None,
    /// our provider
    #[value(name = "metaslot")]
    Own,
    /// Our provider, and keys of files.
    #[value(skip)]
    All,
    /// pkcs11-provider
    #[value(name = "pkcs11-provider")]
    Provider,
    /// libp11's engine
    Engine,
}

impl Bridge {
    /// The recipe that has its configuration.
    const fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Own => include_str!("../../../setup/metaslot.txt"),
            Self::All => include_str!("../../../setup/all.txt"),
            Self::Engine => include_str!("../../../setup/openssl.txt"),
            Self::Provider => include_str!("../../../setup/provider.txt"),
        }
    }

    pub(super) const fn is_provider(self) -> bool {
        matches!(self, Self::Own | Self::All | Self::Provider)
    }
}

const fn row(
    name: &'static str,
    command: &'static str,
    package: &'static str,
    bridge: Bridge,
    own: &'static str,
    text: &'static str,
) -> Program {
    Program { name, command, package, bridge, usual: bridge, own, text }
}

/// Names, in the order of the help text.
pub(super) const PROGRAMS: &[Program] = &[
    row(
        "openssl",
        "openssl",
        "openssl",
        Bridge::Engine,
        "metaslot-openssl.cnf",
        include_str!("../../../setup/openssl.txt"),
    ),
    row(
        "nginx",
        "nginx",
        "nginx",
        Bridge::Engine,
        "nginx-openssl.cnf",
        include_str!("../../../setup/nginx.txt"),
    ),
    row(
        "apache",
        "apache2",
        "apache2",
        Bridge::Engine,
        "apache-openssl.cnf",
        include_str!("../../../setup/apache.txt"),
    ),
    row(
        "stunnel",
        "stunnel4",
        "stunnel4",
        Bridge::Engine,
        "stunnel-openssl.cnf",
        include_str!("../../../setup/stunnel.txt"),
    ),
    row(
        "postgresql",
        "psql",
        "postgresql-client",
        Bridge::Engine,
        "postgresql-openssl.cnf",
        include_str!("../../../setup/postgresql.txt"),
    ),
    row(
        "curl",
        "curl",
        "curl",
        Bridge::Engine,
        "curl-openssl.cnf",
        include_str!("../../../setup/curl.txt"),
    ),
    row(
        "osslsigncode",
        "osslsigncode",
        "osslsigncode",
        Bridge::Engine,
        "osslsigncode-openssl.cnf",
        include_str!("../../../setup/osslsigncode.txt"),
    ),
    row(
        "java",
        "keytool",
        "default-jre-headless",
        Bridge::None,
        "",
        include_str!("../../../setup/java.txt"),
    ),
    row(
        "nss",
        "modutil",
        "libnss3-tools",
        Bridge::None,
        "",
        include_str!("../../../setup/nss.txt"),
    ),
    row(
        "gnutls",
        "p11tool",
        "gnutls-bin",
        Bridge::None,
        "",
        include_str!("../../../setup/gnutls.txt"),
    ),
    row(
        "p11-kit",
        "p11-kit",
        "p11-kit",
        Bridge::None,
        "",
        include_str!("../../../setup/p11-kit.txt"),
    ),
    row("ssh", "ssh", "openssh-client", Bridge::None, "", include_str!("../../../setup/ssh.txt")),
    row("git", "git", "git", Bridge::None, "", include_str!("../../../setup/git.txt")),
    row("knot", "keymgr", "knot", Bridge::None, "", include_str!("../../../setup/knot.txt")),
    row(
        "strongswan",
        "pki",
        "strongswan-pki",
        Bridge::None,
        "",
        include_str!("../../../setup/strongswan.txt"),
    ),
    row(
        "haproxy",
        "haproxy",
        "haproxy",
        Bridge::Provider,
        "haproxy-openssl.cnf",
        include_str!("../../../setup/haproxy.txt"),
    ),
    row(
        "mariadb",
        "mariadbd",
        "mariadb-server",
        Bridge::Provider,
        "mariadb-openssl.cnf",
        include_str!("../../../setup/mariadb.txt"),
    ),
    row(
        "postgres",
        "pg_ctlcluster",
        "postgresql",
        Bridge::Provider,
        "postgres-openssl.cnf",
        include_str!("../../../setup/postgres.txt"),
    ),
    row(
        "openvpn",
        "openvpn",
        "openvpn",
        Bridge::None,
        "",
        include_str!("../../../setup/openvpn.txt"),
    ),
];

/// Programs of OpenSSL with keys of files, which its own command shows.
pub(super) const ALL: Program = row(
    "openssl",
    "openssl",
    "openssl",
    Bridge::All,
    "all-openssl.cnf",
    include_str!("../../../setup/all.txt"),
);

/// What stands in its configuration: files, and what is to be done with them.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Name and content.
    pub(super) files: Vec<(&'static str, String)>,
    /// The same, where Debian's package of the program includes them.
    pub(super) included: Vec<(&'static str, String)>,
    pub(super) then: Vec<String>,
    /// How it is started with what it includes.
    pub(super) start: Vec<String>,
}

/// A run of a program that shows that it uses the key.
#[derive(Debug)]
pub(super) struct Proof {
    /// What the process calls itself that uses the module.
    pub(super) process: &'static str,
    /// For `sh`, in a directory of its own.
    pub(super) script: String,
}

impl Program {
    pub(super) fn find(name: &str) -> Result<&'static Self> {
        if let Some(program) = PROGRAMS.iter().find(|program| program.name == name) {
            return Ok(program);
        }
        let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        Err(Failure::usage(format!("no recipe for '{name}'"))
            .hint(format!("there is one for {}", names.join(", "))))
    }

    /// The same program by another bridge.
    pub(super) fn by(self, bridge: Bridge) -> Result<Self> {
        let all = [Bridge::Own, Bridge::Provider, Bridge::Engine];
        let takes = |bridge: &Bridge| match self.usual {
            Bridge::None => false,
            Bridge::Engine => true,
            _ => bridge.is_provider(),
        };
        if takes(&bridge) {
            return Ok(Self { bridge, ..self });
        }
        let name = |bridge: &Bridge| {
            bridge.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
        };
        let what = format!("{} finds no keys by {}", self.name, name(&bridge));
        let others: Vec<_> = all.iter().filter(|bridge| takes(bridge)).map(name).collect();
        Err(Failure::usage(what).hint(match others.is_empty() {
            true => "it speaks to the module itself: leave out --bridge".to_owned(),
            false => format!("it does by {}", others.join(" and ")),
        }))
    }

    /// Whether it can use our provider.
    pub(super) fn takes_own(&self) -> bool {
        self.usual != Bridge::None
    }

    /// Whether it has another user's rights already when it reads its key.
    pub(super) fn reads_late(&self) -> bool {
        self.bridge.is_provider() && self.usual == Bridge::Provider
    }

    /// The file of OpenSSL's configuration.
    pub(super) const fn file(&self) -> Option<&'static str> {
        match self.bridge {
            Bridge::None => None,
            // They name the file of the PIN.
            Bridge::Own | Bridge::All | Bridge::Provider => Some(self.own),
            Bridge::Engine => Some("openssl.cnf"),
        }
    }

    /// With values in the place of `{name}`.
    pub(super) fn plan(&self, values: &[(&str, String)]) -> Plan {
        let mut plan = Plan::default();
        let configuration = sections(self.bridge.text()).take(1);
        let configuration = configuration.filter_map(|(_, content)| Some((self.file()?, content)));
        let own = self.sections().filter(|(name, _)| *name != "openssl.cnf");
        for (name, content) in configuration.chain(own) {
            let content = filled(content, values);
            let lines = || content.lines().map(str::to_owned).collect();
            let file = (name, content.trim_end().to_owned() + "\n");
            match name {
                "then" => plan.then = lines(),
                "start" => plan.start = lines(),
                "user" | "unit" | "test" | "certificate" | "shows" | "no ed25519" => {}
                _ if name.starts_with("verify ") || name.starts_with(OF_PROXY) => {}
                _ if name.starts_with('/') => plan.included.push(file),
                _ => plan.files.push(file),
            }
        }
        plan
    }

    /// Whether a file of its configuration has the certificate's name.
    pub(super) fn names_certificate(&self) -> bool {
        self.plan(&[]).files.iter().any(|(_, content)| content.contains("{cert}"))
    }

    /// Whether what it is told says anything of a key.
    pub(super) fn names_key(&self) -> bool {
        self.says(&OF_KEY)
    }

    /// Whether what it is told says anything of these.
    pub(super) fn says(&self, names: &[&str]) -> bool {
        let Plan { files, included, then, start } = self.plan(&[]);
        let files = files.into_iter().chain(included).map(|file| file.1);
        let said: String = files.chain(then).chain(start).collect();
        names.iter().any(|name| said.contains(&format!("{{{name}}}")))
    }

    /// Refuses a certificate that is not there: the program does not start where its configuration names it.
    pub(super) fn needs(&self, cert: &str) -> Result<()> {
        if Path::new(cert).is_file() {
            return Ok(());
        }
        let what = format!("there is no certificate {cert}, which {} needs", self.name);
        let line =
            format!("metaslot cert selfsign LABEL --dns NAME --out FILE {}", self.certificate());
        let hint = format!("{}; then --cert FILE; or --new LABEL", line.trim_end());
        Err(Failure::failed(what).hint(hint))
    }

    /// Refuses a label that would mean something where the recipe has it.
    pub(super) fn take_name(&self, what: &str, name: &str) -> Result<()> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@+:/-".contains(&byte);
        if !self.text.contains(&format!("{{{what}}}")) || name.bytes().all(plain) {
            return Ok(());
        }
        let what = if what == "token" { "token" } else { "key" };
        let message = format!(
            "the label of {what} '{name}' means something in {}'s configuration",
            self.name
        );
        Err(Failure::failed(message).hint(match what {
            "token" => "give it another one, of letters and digits: metaslot token rename",
            _ => "give it another one, of letters and digits: metaslot key set --label",
        }))
    }

    /// The user whose processes use the key, where that is not the user who starts the program.
    pub(super) fn user(&self) -> Option<&'static str> {
        self.section("user")
    }

    /// What of it takes no Ed25519 key from a token, as far as is known.
    pub(super) fn without_ed25519(&self) -> Option<&'static str> {
        self.section("no ed25519")
    }

    /// What is said of its purpose where a certificate is made, and whether that goes into the token.
    pub(super) fn certificate(&self) -> &'static str {
        self.section("certificate").unwrap_or_default()
    }

    /// That it shows no key without a certificate in the token.
    pub(super) fn shows_by_certificate(&self) -> Option<&'static str> {
        self.section("shows")
    }

    /// Its unit of systemd's, and what is typed before that is started.
    pub(super) fn unit(&self) -> Option<(&'static str, &'static str)> {
        self.section("unit").map(|text| text.split_once('\n').unwrap_or((text, "")))
    }

    /// How it tests the machine's own configuration.
    pub(super) fn test(&self) -> Option<&'static str> {
        self.section("test")
    }

    fn section(&self, wanted: &str) -> Option<&'static str> {
        self.sections().find(|(name, _)| *name == wanted).map(|(_, content)| content.trim())
    }

    /// How running it shows that it uses the key.
    pub(super) fn proof(&self, values: &[(&str, String)]) -> Option<Proof> {
        self.sections().find_map(|(name, content)| {
            let process = name.strip_prefix("verify ")?;
            Some(Proof { process, script: filled(content, values) })
        })
    }

    /// Of a TLS proxy the file, the command lines and the lines of a unit, by their names.
    pub(super) fn proxy<'a>(
        &'a self,
        values: &'a [(&str, String)],
    ) -> impl Iterator<Item = (&'static str, String)> {
        self.sections().filter_map(|(name, content)| {
            Some((name.strip_prefix(OF_PROXY)?, filled(content, values).trim_end().to_owned()))
        })
    }

    /// Those of its bridge.
    fn sections(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let by_provider = self.bridge.is_provider();
        let text = self.text;
        let is_replaced = move |name: &str| {
            by_provider
                && sections(text).any(|(other, _)| other.strip_suffix(BY_PROVIDER) == Some(name))
        };
        sections(text).filter_map(move |(name, content)| match name.strip_suffix(BY_PROVIDER) {
            Some(name) => by_provider.then_some((name, content)),
            None => (!is_replaced(name)).then_some((name, content)),
        })
    }
}

fn sections(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n= ").map(|section| {
        let section = section.strip_prefix("= ").unwrap_or(section);
        section.split_once('\n').unwrap_or((section, ""))
    })
}

fn filled(text: &str, values: &[(&str, String)]) -> String {
    let replace =
        |text: String, (name, value): &(&str, String)| text.replace(&format!("{{{name}}}"), value);
    values.iter().fold(text.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_recipe_is_filled() {
        let names = "module engine provider source needs cnf directory bare barepem uri keyuri tokenuri token label id slot cert family kind pem agent sshkey credential pinfile metaslot serial port pin";
        let values: Vec<(&str, String)> =
            names.split(' ').map(|name| (name, "VALUE".to_owned())).collect();
        let bridges = [Bridge::Own, Bridge::Provider, Bridge::Engine];
        filled_out(&ALL, &values);
        for program in PROGRAMS {
            filled_out(program, &values);
            bridges.iter().filter_map(|bridge| program.by(*bridge).ok()).for_each(|program| {
                filled_out(&program, &values);
                let file = program.file().expect("it has one");
                let of_bridge =
                    program.plan(&values).files.iter().filter(|row| row.0 == file).count();
                assert_eq!(of_bridge, 1, "{}: {file}", program.name);
            });
        }
    }

    fn filled_out(program: &Program, values: &[(&str, String)]) {
        let plan = program.plan(values);
        assert!(!plan.then.is_empty(), "{}", program.name);
        assert_eq!(plan.included.is_empty(), plan.start.is_empty(), "{}", program.name);
        // A kill between two files leaves none that wants a variable of the unit's without it.
        let unit = plan.included.iter().position(|file| file.0.contains(".service.d/"));
        assert!(unit.is_none_or(|at| at == 0), "{}", program.name);
        let all = plan.files.iter().chain(&plan.included).map(|file| &file.1);
        let Proof { process, script } = program.proof(values).expect("it is run");
        // The kernel keeps so much of a name.
        assert!(process.len() <= 15 && !process.contains(' '), "{process}");
        let all = all.chain(&plan.then).chain(&plan.start).chain([&script]);
        for text in all {
            let open = text
                .match_indices('{')
                .find(|(at, _)| text[at + 1..].starts_with(|next: char| next.is_ascii_lowercase()));
            assert!(open.is_none(), "{}: {text}", program.name);
        }
        assert!(program.file().is_none_or(|file| plan.files[0].0 == file), "{}", program.name);
    }

    /// What is set up later, in the same directory, changes nothing of what was set up before.
    #[test]
    fn no_two_programs_write_one_file_but_that_of_the_engine() {
        let by = [Bridge::Own, Bridge::Provider, Bridge::Engine];
        let of = |program: &Program| {
            let ways = by.iter().filter_map(|bridge| program.by(*bridge).ok()).chain([*program]);
            let files: Vec<_> = ways.flat_map(|way| way.plan(&[]).files).map(|row| row.0).collect();
            files.into_iter().collect::<BTreeSet<_>>()
        };
        let mut all = BTreeMap::new();
        for (program, file) in PROGRAMS
            .iter()
            .chain([&ALL])
            .flat_map(|it| of(it).into_iter().map(|file| (it.name, file)))
        {
            let other = all.insert(file, program).filter(|_| file != "openssl.cnf");
            assert_eq!(other, None, "{program} writes {file}, too");
        }
    }
}

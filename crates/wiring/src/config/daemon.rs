// SPDX-License-Identifier: Apache-2.0
//! What `metaslotd` is told: `[daemon]`, a `[[client]]` for each service that has keys without a PIN, and where the PINs of tokens are.

use super::provider::mechanisms;
use super::service::{Peer, Selector, selectors};
use super::setting::{
    Complaint, Setting, absolute, apply, at, boolean, set, table, text, texts, wrong,
};
use crate::environment::directory;
use metaslot_ck::{
    CK_ATTRIBUTE_TYPE, CK_MECHANISM_TYPE, CKA_DECAPSULATE, CKA_DECRYPT, CKA_DERIVE,
    CKA_ENCAPSULATE, CKA_ENCRYPT, CKA_SIGN, CKA_SIGN_RECOVER, CKA_UNWRAP, CKA_VERIFY,
    CKA_VERIFY_RECOVER, CKA_WRAP, Error,
};
use metaslot_foreign::pin_of_file;
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::store::Name;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::DeValue;

/// The daemon.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DaemonConfig {
    /// The socket of p11-kit's protocol.
    pub socket: Option<PathBuf>,
    /// That of OpenSSH's agent protocol.
    pub agent: Option<PathBuf>,
    /// Where clients of other machines connect by TLS.
    pub listen: Option<ListenConfig>,
    /// A group whose members may connect, beside the daemon's own user and root.
    pub group: Option<String>,
    /// How many connections the processes of one user have at a time.
    pub connections: usize,
    /// How many bytes the clients of one user take together.
    pub memory: usize,
    /// Who has which keys without a PIN.
    pub clients: Vec<ClientConfig>,
    /// Whether it puts a fence around itself.
    pub fence: bool,
}

/// Where clients of other machines connect, and by what both sides prove who they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenConfig {
    /// An address and a port.
    pub address: SocketAddr,
    /// The daemon's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// That certificate's key.
    pub key: PathBuf,
    /// The authorities of clients' certificates.
    pub client_ca: PathBuf,
}

/// One `[[client]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientConfig {
    services: Vec<Selector>,
    /// The label of the token.
    pub token: String,
    /// The labels of its keys, and of what belongs to them; `None` for all.
    pub keys: Option<Vec<String>>,
    /// What may be done with them: attributes such as `CKA_SIGN`.
    pub uses: Vec<CK_ATTRIBUTE_TYPE>,
    /// By which mechanisms; `None` for all.
    pub mechanisms: Option<Vec<CK_MECHANISM_TYPE>>,
}

impl ClientConfig {
    /// Whether a peer is one of its services.
    ///
    /// # Errors
    /// Where it is not known: without a file to spare, say.
    pub fn is(&self, peer: &Peer) -> io::Result<bool> {
        let process = match peer {
            Peer::Process(process) => process,
            Peer::Named(names) => return Ok(self.named(names).is_some()),
        };
        let mut is = Ok(false);
        for service in &self.services {
            match service.is(process) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                unknown => is = unknown,
            }
        }
        is
    }

    /// The first of its names that a certificate has.
    #[must_use]
    pub fn named(&self, names: &[String]) -> Option<&str> {
        self.services.iter().find_map(|service| service.named(names))
    }

    /// Whether it is known by its program.
    pub(super) fn looks_at_programs(&self) -> bool {
        self.services.iter().any(|service| matches!(service, Selector::Program(_)))
    }

    /// Whether peers of other machines may be its services.
    fn names_peers(&self) -> bool {
        self.services.iter().any(|service| matches!(service, Selector::Tls(_)))
    }

    /// Looks its users up, where there are such users: later their file may be out of reach.
    pub fn settle(&mut self) {
        self.services.iter_mut().for_each(Selector::settle);
    }

    /// The users that it names and that were not there when they were looked up.
    pub fn unknown_users(&self) -> impl Iterator<Item = &str> {
        self.services.iter().filter_map(|service| match service {
            Selector::User(user) => Some(user.as_str()),
            _ => None,
        })
    }
}

/// By which the daemon itself opens a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnLogin {
    /// Where the PIN is.
    pub pin: PinSource,
    /// Whose it is; `None` for the user without a name.
    pub identity: Option<Name>,
}

/// Where a PIN is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PinSource {
    /// In a file.
    File(PathBuf),
    /// In a credential that systemd passes to the daemon, by its name.
    Credential(String),
    /// With who starts the daemon on a terminal.
    Ask,
}

impl PinSource {
    /// The PIN.
    ///
    /// # Errors
    /// `CKR_PIN_INCORRECT` where there is none; the detail says why.
    pub fn read(&self) -> metaslot_ck::Result<Secret> {
        match self {
            Self::File(path) => pin_of_file(path),
            Self::Credential(name) => match directory(c"CREDENTIALS_DIRECTORY") {
                Some(directory) => pin_of_file(&directory.join(name)),
                None => {
                    detail::set(format_args!("systemd has passed no credential {name}"));
                    Err(Error::PIN_INCORRECT)
                }
            },
            Self::Ask => {
                detail::set(format_args!("the daemon asks for it"));
                Err(Error::PIN_INCORRECT)
            }
        }
    }

    /// What stands there instead may be the PIN, and is not repeated.
    pub(super) fn parse(value: &Spanned<DeValue<'_>>) -> Result<Self, Complaint> {
        let is_name =
            |name: &&str| !name.is_empty() && !name.contains('/') && !name.starts_with('.');
        let said = text(value).ok();
        let source = match said.and_then(|said| said.split_once(':')) {
            Some(("file", path)) if path.starts_with('/') => Some(Self::File(path.into())),
            Some(("credential", name)) => {
                Some(name).filter(is_name).map(|name| Self::Credential(name.to_owned()))
            }
            _ => (said == Some("ask")).then_some(Self::Ask),
        };
        let takes =
            "must be a file such as \"file:/run/keys/pin\", \"credential:NAME\", or \"ask\"";
        source.ok_or_else(|| at(value, takes))
    }
}

/// What a key may be allowed, by the names of the configuration.
const USES: &[(&str, &[CK_ATTRIBUTE_TYPE])] = &[
    ("sign", &[CKA_SIGN, CKA_SIGN_RECOVER]),
    ("verify", &[CKA_VERIFY, CKA_VERIFY_RECOVER]),
    ("encrypt", &[CKA_ENCRYPT, CKA_ENCAPSULATE]),
    ("decrypt", &[CKA_DECRYPT, CKA_DECAPSULATE]),
    ("wrap", &[CKA_WRAP]),
    ("unwrap", &[CKA_UNWRAP]),
    ("derive", &[CKA_DERIVE]),
];

/// What a `[daemon]` section says, and of `listen` what is to be put together.
struct Daemon {
    config: DaemonConfig,
    address: Option<SocketAddr>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
}

const SETTINGS: &[Setting<Daemon>] = &[
    ("socket", |daemon, value| set(&mut daemon.config.socket, Some(absolute(value)?))),
    ("agent", |daemon, value| set(&mut daemon.config.agent, Some(absolute(value)?))),
    ("listen", |daemon, value| set(&mut daemon.address, Some(address(value)?))),
    ("certificate", |daemon, value| set(&mut daemon.certificate, Some(absolute(value)?))),
    ("key", |daemon, value| set(&mut daemon.key, Some(absolute(value)?))),
    ("client-ca", |daemon, value| set(&mut daemon.client_ca, Some(absolute(value)?))),
    ("group", |daemon, value| set(&mut daemon.config.group, Some(text(value)?.to_owned()))),
    ("fence", |daemon, value| set(&mut daemon.config.fence, boolean(value)?)),
    ("connections", |daemon, value| set(&mut daemon.config.connections, count(value)?)),
    ("memory", |daemon, value| set(&mut daemon.config.memory, count(value)? << 20)),
];

/// What a section says of a client.
struct Draft {
    services: Option<Vec<Selector>>,
    token: Option<String>,
    keys: Option<Vec<String>>,
    uses: Option<Vec<CK_ATTRIBUTE_TYPE>>,
    mechanisms: Option<Vec<CK_MECHANISM_TYPE>>,
}

const CLIENT_SETTINGS: &[Setting<Draft>] = &[
    ("services", |client, value| set(&mut client.services, Some(selectors(value)?))),
    ("token", |client, value| set(&mut client.token, Some(text(value)?.to_owned()))),
    ("keys", |client, value| {
        set(&mut client.keys, Some(texts(value, "keys is a list of labels")?))
    }),
    ("operations", |client, value| set(&mut client.uses, Some(uses(value)?))),
    ("mechanisms", |client, value| {
        let all = mechanisms(value, "mechanisms is a list of them")?;
        set(&mut client.mechanisms, Some(all))
    }),
];

impl DaemonConfig {
    pub(super) const USUAL: Self = Self {
        socket: None,
        agent: None,
        listen: None,
        group: None,
        connections: 512,
        memory: 256 << 20,
        clients: Vec::new(),
        fence: true,
    };

    /// A `[daemon]` section, which says something of what was said before.
    pub(super) fn read(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let settings = table(section, "daemon is a section")?;
        let config = std::mem::replace(self, Self::USUAL);
        let mut daemon =
            Daemon { config, address: None, certificate: None, key: None, client_ca: None };
        apply(settings, "the daemon has no setting", SETTINGS, &mut daemon)?;
        let Daemon { config, address, certificate, key, client_ca } = daemon;
        *self = config;
        match (address, certificate, key, client_ca) {
            (None, None, None, None) => {}
            (Some(address), Some(certificate), Some(key), Some(client_ca)) => {
                self.listen = Some(ListenConfig { address, certificate, key, client_ca });
            }
            _ => {
                let reason = "listen, certificate, key and client-ca belong together";
                return Err(at(section, reason));
            }
        }
        Ok(())
    }

    /// What is missing where clients of other machines are named and cannot connect, or could connect and are not named.
    #[must_use]
    pub fn unreachable(&self) -> Option<&'static str> {
        let names = self.clients.iter().any(ClientConfig::names_peers);
        match (&self.listen, names) {
            (None, true) => {
                Some("[[client]]: no client is \"tls:NAME\" without listen in [daemon]")
            }
            (Some(_), false) => {
                Some("listen: no [[client]] names a \"tls:NAME\", so none is served there")
            }
            _ => None,
        }
    }

    /// One `[[client]]`. What it may do is said: nothing is a default that somebody did not think of.
    pub(super) fn add_client(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let settings = table(section, "a client is a section")?;
        let mut draft =
            Draft { services: None, token: None, keys: None, uses: None, mechanisms: None };
        apply(settings, "a client has no setting", CLIENT_SETTINGS, &mut draft)?;
        let needs = |what: &str| at(section, &format!("a client needs {what}"));
        self.clients.push(ClientConfig {
            services: draft.services.ok_or_else(|| needs("services"))?,
            token: draft.token.ok_or_else(|| needs("a token"))?,
            keys: draft.keys,
            uses: draft.uses.ok_or_else(|| needs("operations"))?,
            mechanisms: draft.mechanisms,
        });
        Ok(())
    }
}

/// An address of this machine: no name, whose address would be looked up.
fn address(value: &Spanned<DeValue<'_>>) -> Result<SocketAddr, Complaint> {
    let takes = "must be an address and a port such as \"192.0.2.1:7443\" or \"[::]:7443\"";
    text(value)?.parse().map_err(|_| wrong(value, takes))
}

/// A number that is not 0.
fn count(value: &Spanned<DeValue<'_>>) -> Result<usize, Complaint> {
    let count = match value.get_ref() {
        DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let possible = count.filter(|count| (1..=1 << 20).contains(count));
    possible.ok_or_else(|| wrong(value, "must be a number from 1 to 1048576"))
}

fn uses(value: &Spanned<DeValue<'_>>) -> Result<Vec<CK_ATTRIBUTE_TYPE>, Complaint> {
    let known = || USES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let DeValue::Array(names) = value.get_ref() else {
        return Err(wrong(value, &format!("operations is a list of {}", known())));
    };
    let mut all = Vec::new();
    for name in names.iter() {
        let word = text(name)?;
        let row = USES.iter().find(|(known, _)| *known == word);
        let (_, attributes) =
            row.ok_or_else(|| wrong(name, &format!("an operation is one of {}", known())))?;
        all.extend_from_slice(attributes);
    }
    Ok(all)
}

/// The names of the settings of `[daemon]`.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    super::setting::names(SETTINGS)
}

/// The names of the settings of a `[[client]]`.
#[cfg(test)]
pub(super) fn client_names() -> Vec<&'static str> {
    super::setting::names(CLIENT_SETTINGS)
}

#[cfg(test)]
mod tests {
    use super::super::service::Process;
    use super::super::tests::parse;
    use super::*;

    use metaslot_ck::CKM_ECDSA;

    const TOKEN: &str = "[[token]]\npath = \"/a\"\n";

    fn daemon(text: &str) -> Result<DaemonConfig, String> {
        let read = parse(&format!("{TOKEN}{text}"));
        read.map(|config| config.daemon).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_client_has_what_is_said_and_no_more() {
        let text = "[daemon]\nsocket = \"/run/metaslotd/socket\"\nconnections = 16\n[[client]]\n\
                    services = [\"user:4294967293\"]\ntoken = \"web\"\nkeys = [\"site\"]\noperations = [\"sign\"]\n\
                    [[client]]\nservices = []\ntoken = \"web\"\noperations = []\n\
                    mechanisms = [\"CKM_ECDSA\"]\n";
        let daemon = daemon(text).expect("it is right");
        assert_eq!(daemon.socket, Some(PathBuf::from("/run/metaslotd/socket")));
        assert_eq!((daemon.connections, daemon.memory), (16, 256 << 20));
        let [one, two] = &daemon.clients[..] else { panic!("two clients") };
        assert_eq!(one.uses, [CKA_SIGN, CKA_SIGN_RECOVER]);
        assert_eq!(one.keys, Some(vec![String::from("site")]));
        let of = |user| Peer::Process(Process::new(user, None));
        let is = |one: &ClientConfig, user| one.is(&of(user)).expect("no file is needed");
        assert!(is(one, 4_294_967_293) && !is(one, 4_294_967_292));
        assert_eq!((&one.mechanisms, &two.mechanisms), (&None, &Some(vec![CKM_ECDSA])));
        assert!(two.uses.is_empty() && !is(two, 0));
    }

    #[test]
    fn a_wrong_section_is_an_error_of_its_line() {
        for (text, reason) in [
            ("[daemon]\nsocket = \"socket\"", "line 4: must be an absolute path"),
            ("[daemon]\nmemory = 0", "line 4: must be a number from 1 to 1048576"),
            ("[daemon]\nlisten = \"web1:1\"", "line 4: must be an address and a port"),
            ("[daemon]\nlisten = \"[::]:1\"", "belong together"),
            ("[daemon]\nkey = \"/k\"", "belong together"),
            ("[daemon]\nport = 1", "line 4: the daemon has no setting \"port\""),
            ("[[client]]\ntoken = \"a\"\noperations = []", "a client needs services"),
            ("[[client]]\nservices = []\noperations = []", "a client needs a token"),
            ("[[client]]\nservices = []\ntoken = \"a\"", "a client needs operations"),
            ("[[client]]\noperations = [\"all\"]", "line 4: an operation is one of sign, verify"),
            ("[[client]]\nkeys = \"a\"", "line 4: keys is a list of labels"),
            ("[[client]]\nmechanisms = \"a\"", "line 4: mechanisms is a list of them"),
            ("[[client]]\nmechanisms = [\"a\"]", "line 4: must be a mechanism such as"),
            ("[[client]]\nservices = [\"nginx\"]", "line 4: must be \"user:NAME\""),
        ] {
            let said = daemon(text).expect_err("it is wrong");
            assert!(said.contains(reason), "{said}");
        }
    }

    #[test]
    fn who_is_named_by_a_certificate_has_to_get_here() {
        let listen = "[daemon]\nlisten = \"127.0.0.1:7443\"\ncertificate = \"/c\"\nkey = \"/k\"\n\
                      client-ca = \"/a\"\n";
        let client = "[[client]]\nservices = [\"tls:web1\"]\ntoken = \"web\"\noperations = []\n";
        let daemon = |text: &str| daemon(text).expect("it is right");
        let both = daemon(&format!("{listen}{client}"));
        let port = both.listen.as_ref().map(|listen| listen.address.port());
        assert_eq!((port, both.unreachable()), (Some(7443), None));
        let names = |name: &str| both.clients[0].named(&[String::from(name)]).is_some();
        assert!(names("web1") && !names("web2"));
        assert!(daemon(listen).unreachable().is_some_and(|lack| lack.starts_with("listen")));
        assert!(daemon(client).unreachable().is_some_and(|lack| lack.contains("without listen")));
    }

    #[test]
    fn a_pin_is_in_a_file_or_a_credential_and_never_repeated() {
        let read = |source: &str| {
            let config = parse(&format!("{TOKEN}pin-source = \"{source}\"\n"));
            config.map(|mut config| config.tokens.remove(0).pin_source)
        };
        let good = |source: &str| read(source).expect("it is right");
        assert_eq!(good("file:/run/pin"), Some(PinSource::File(PathBuf::from("/run/pin"))));
        assert_eq!(good("credential:web"), Some(PinSource::Credential(String::from("web"))));
        assert_eq!(good("ask"), Some(PinSource::Ask));
        let names = ["credential:", "credential:../web", "credential:.web"];
        for wrong in ["12345678", "file:pin", "asked", "ask:", ":"].into_iter().chain(names) {
            let said = read(wrong).expect_err("it is wrong").to_string();
            assert!(
                said.contains("line 3: must be a file") && !said.contains("12345678"),
                "{said}"
            );
        }
    }
}

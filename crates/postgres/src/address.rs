// SPDX-License-Identifier: Apache-2.0
//! Where a token is: a URL as PostgreSQL's own programs take it, and the token's name.

use std::fmt;
use std::net::ToSocketAddrs as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, TargetSessionAttrs};

/// How long one host may take to answer.
const CONNECT: Duration = Duration::from_secs(5);
/// What the token is called where the URL does not say.
const USUAL_NAME: &str = "metaslot";
/// The certificates that the system trusts: Debian's place, and that of Fedora and its kin.
const SYSTEM: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Where a token is. It has no password.
#[derive(Clone, Debug)]
pub struct Address {
    pub(crate) config: Config,
    /// What the token is called in the database.
    pub(crate) token: String,
    /// The certificates that may vouch for the server.
    pub(crate) roots: PathBuf,
    /// Our own certificate and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    text: String,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Address {
    type Err = String;

    /// What is wrong is said without the URL: a password may be in it.
    fn from_str(text: &str) -> Result<Self, String> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let mut own = Own::default();
        let rest: Vec<_> = query.split('&').filter(|pair| !own.take(pair)).collect();
        let url = format!("{place}?{}", rest.join("&"));
        let url = url.trim_end_matches('?');
        let mut config: Config = url.parse().map_err(|_| {
            String::from(match place.parse::<Config>() {
                Ok(_) => "has a parameter that is not known, or a value of one that is none",
                Err(_) => "is no URL such as postgresql://user@host/database?token=web",
            })
        })?;
        if config.get_password().is_some() {
            return Err(String::from("a password does not belong in the URL: set password-source"));
        }
        let token = own.token.unwrap_or_else(|| USUAL_NAME.to_owned());
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !((1..=63).contains(&token.len()) && token.bytes().all(is_plain)) {
            return Err(String::from("the token's name is 1 to 63 letters, digits, and '-_.'"));
        }
        secure(&mut config, own.mode.as_deref())?;
        if !own.attributes.is_none_or(|name| ["read-write", "primary"].contains(&&*name)) {
            return Err(String::from("target_session_attrs is always read-write"));
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name(config.get_application_name().unwrap_or("metaslot").to_owned());
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let system = SYSTEM.iter().map(PathBuf::from).find(|file| file.exists());
        let roots = own.roots.or(system).unwrap_or_else(|| SYSTEM[0].into());
        let identity = match (own.certificate, own.key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(String::from("sslcert and sslkey belong together")),
        };
        Ok(Self { config, token, roots, identity, text: text.to_owned() })
    }
}

/// What is not for the database's own client.
#[derive(Default)]
struct Own {
    token: Option<String>,
    mode: Option<String>,
    attributes: Option<String>,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Own {
    /// Whether a parameter was one of these.
    fn take(&mut self, pair: &str) -> bool {
        let Some((name, value)) = pair.split_once('=') else { return pair.is_empty() };
        let value = decoded(value);
        match name {
            "token" => self.token = Some(value),
            "sslmode" => self.mode = Some(value),
            "target_session_attrs" => self.attributes = Some(value),
            "sslrootcert" => self.roots = Some(value.into()),
            "sslcert" => self.certificate = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            _ => return false,
        }
        true
    }
}

/// Over TCP there is TLS, and the server proves its name; sockets of this machine have neither.
fn secure(config: &mut Config, mode: Option<&str>) -> Result<(), String> {
    let is_local = |host: &Host| matches!(host, Host::Unix(_));
    let local = config.get_hosts().iter().filter(|host| is_local(host)).count();
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(String::from("it names no host"));
    }
    if local > 0 && local < config.get_hosts().len() {
        return Err(String::from("its hosts are either names or directories of sockets"));
    }
    match mode {
        Some("verify-full") | None => {}
        Some("disable") if local > 0 => {}
        Some(_) => return Err(String::from("sslmode is always verify-full over TCP")),
    }
    // The names that certificates are compared with.
    if local == 0 && config.get_hosts().is_empty() {
        return Err(String::from("it names no host that a certificate could be of"));
    }
    config.ssl_mode(if local > 0 { SslMode::Disable } else { SslMode::Require });
    config.channel_binding(ChannelBinding::Disable);
    Ok(())
}

impl Address {
    /// The same with the addresses of its hosts: where names cannot be looked up any more.
    ///
    /// # Errors
    /// Which name has no address.
    pub(crate) fn looked_up(&self) -> Result<Config, String> {
        let mut config = self.config.clone();
        let is_local = self.config.get_ssl_mode() == SslMode::Disable;
        if is_local || !self.config.get_hostaddrs().is_empty() {
            return Ok(config);
        }
        // Each address needs its host's name and port.
        let mut all = Vec::new();
        let ports = self.config.get_ports();
        let mut failed = None;
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            let Host::Tcp(name) = host else { continue };
            let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
            match (name.as_str(), port).to_socket_addrs() {
                Ok(found) => all.extend(found.map(|found| (name.clone(), found))),
                Err(error) => failed = Some(format!("{name}: {error}")),
            }
        }
        if all.is_empty() {
            return Err(failed.unwrap_or_else(|| String::from("no host has an address")));
        }
        config = without_hosts(&self.config);
        for (name, found) in all {
            config.host(name).hostaddr(found.ip()).port(found.port());
        }
        Ok(config)
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Files that are read when a connection is made.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        let identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        let roots = (self.config.get_ssl_mode() != SslMode::Disable).then_some(&self.roots);
        roots.into_iter().chain(identity).map(PathBuf::as_path).collect()
    }

    /// The ports of its hosts; none where these are sockets of this machine.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        match self.config.get_ssl_mode() {
            SslMode::Disable => Vec::new(),
            _ if self.config.get_ports().is_empty() => vec![5432],
            _ => self.config.get_ports().to_vec(),
        }
    }
}

/// All but hosts and ports, which can only be added to.
fn without_hosts(from: &Config) -> Config {
    let mut config = Config::new();
    from.get_user().map(|user| config.user(user));
    from.get_dbname().map(|name| config.dbname(name));
    from.get_options().map(|options| config.options(options));
    from.get_application_name().map(|name| config.application_name(name));
    from.get_connect_timeout().map(|time| config.connect_timeout(*time));
    from.get_tcp_user_timeout().map(|time| config.tcp_user_timeout(*time));
    config.ssl_mode(from.get_ssl_mode());
    config.ssl_negotiation(from.get_ssl_negotiation());
    config.keepalives(from.get_keepalives());
    config.keepalives_idle(from.get_keepalives_idle());
    from.get_keepalives_interval().map(|time| config.keepalives_interval(time));
    from.get_keepalives_retries().map(|times| config.keepalives_retries(times));
    config.target_session_attrs(from.get_target_session_attrs());
    config.channel_binding(from.get_channel_binding());
    config.load_balance_hosts(from.get_load_balance_hosts());
    config
}

/// A value of a URL's query.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = &after[if byte.is_some() { 2 } else { 0 }..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_which_token() {
        let url = "postgresql://keys@one,two:6432/vault?token=web&sslrootcert=%2Fca.pem";
        let address: Address = url.parse().expect("it is right");
        assert_eq!((address.token.as_str(), address.roots.as_path()), ("web", "/ca.pem".as_ref()));
        assert_eq!(address.config.get_hosts().len(), 2);
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.to_string(), url);
        let local: Address = "postgresql:///vault?host=/run/db".parse().expect("it is right");
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!((local.token.as_str(), local.ports()), (USUAL_NAME, Vec::new()));
    }

    #[test]
    fn the_host_that_takes_writes_is_asked_for_as_in_other_programs() {
        for asked in ["", "?target_session_attrs=primary", "?target_session_attrs=read-write"] {
            let url = format!("postgresql://keys@one,two/vault{asked}");
            let address: Address = url.parse().expect("it is right");
            assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        }
    }

    #[test]
    fn what_is_not_verified_is_refused_and_a_password_not_repeated() {
        for (url, says) in [
            ("postgresql://u:geheim@h/d", "password-source"),
            ("postgresql://h/d?password=geheim", "password-source"),
            ("postgresql://h/d?sslmode=disable", "verify-full"),
            ("postgresql://h/d?sslmode=require", "verify-full"),
            ("postgresql://h/d?host=/run/db", "either"),
            ("postgresql:///d", "no host"),
            ("postgresql://h/d?token=a%20b", "name"),
            ("postgresql://h/d?sslcert=/c", "together"),
            ("postgresql://h/d?geheim=1", "a parameter that is not known"),
            ("mysql://h/d?token=a", "no URL"),
            ("postgresql://h/d?target_session_attrs=any", "always read-write"),
        ] {
            let said = url.parse::<Address>().expect_err(url);
            assert!(said.contains(says) && !said.contains("geheim"), "{url}: {said}");
        }
    }
}

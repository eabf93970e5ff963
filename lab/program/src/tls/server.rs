// SPDX-License-Identifier: Apache-2.0
//! The servers' programs and configurations.

use super::options::Server;
use super::rows::{Arm, TlsKey};
use crate::token::PIN;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a server's configuration depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) arm: Arm,
    pub(super) key: TlsKey,
    pub(super) module: &'a Path,
    /// Its own directory.
    pub(super) home: &'a Path,
    /// The certificate, the key, and both in one file.
    pub(super) files: [&'a Path; 3],
    pub(super) port: u16,
    pub(super) workers: u16,
    pub(super) threads: u16,
}

/// The server of threads.
pub(super) const THREADS: &str = include_str!("../../../../examples/tls_server.c");
const JAVA: &str = include_str!("../../../../examples/TlsServer.java");

impl Server {
    const ALL: [Self; 6] =
        [Self::Loop, Self::Haproxy, Self::Nginx, Self::Apache, Self::Threads, Self::Java];

    /// The level of the factor.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Apache => "apache",
            Self::Threads => "threads",
            Self::Java => "java",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|server| server.word() == word)
    }

    /// Where it is installed; an empty path where it is compiled here.
    pub(super) fn program(self) -> Option<PathBuf> {
        let name = match self {
            Self::Loop | Self::Threads => return Some(PathBuf::new()),
            Self::Java => "java",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Apache => "apache2",
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
        places.map(|directory| directory.join(name)).find(|file| file.is_file())
    }

    /// Whether it can run OpenSSL's jobs.
    pub(super) const fn has_jobs(self) -> bool {
        matches!(self, Self::Loop | Self::Haproxy)
    }

    /// Whether it asks the module itself, in threads that wait: no OpenSSL of its own stands between.
    pub(super) const fn has_threads(self) -> bool {
        matches!(self, Self::Threads | Self::Java)
    }

    /// Whether it is measured with a daemon, too: one that has processes, which find each other there.
    pub(super) const fn has_processes(self) -> bool {
        matches!(self, Self::Nginx)
    }

    /// The user that it has to be, where it may not be root.
    pub(super) const fn user(self) -> Option<&'static str> {
        match self {
            Self::Apache => Some("www-data"),
            _ => None,
        }
    }

    /// Its configuration.
    pub(super) fn configuration(self, site: Site<'_>) -> String {
        match self {
            Self::Loop | Self::Threads => String::new(),
            Self::Java => JAVA.to_owned(),
            Self::Haproxy => haproxy(site),
            Self::Nginx => nginx(site),
            Self::Apache => apache(site),
        }
    }

    /// How it is started with that.
    pub(super) fn arguments(self, command: &mut Command, site: Site<'_>, file: &Path) {
        let home = site.home;
        match self {
            Self::Loop => {}
            Self::Threads => threads(command, site),
            Self::Java => {
                let store = if site.arm == Arm::File { "p12" } else { "cfg" };
                command.arg(file).args([site.port.to_string(), site.threads.to_string()]);
                command.arg(site.files[0].with_extension(store)).arg(pin());
            }
            Self::Haproxy => {
                command.arg("-db").arg("-f").arg(file);
            }
            Self::Nginx => {
                command.arg("-p").arg(home).arg("-e").arg(home.join("error.log"));
                command.arg("-c").arg(file);
            }
            Self::Apache => {
                command.arg("-DFOREGROUND").arg("-f").arg(file);
            }
        }
    }
}

fn pin() -> String {
    String::from_utf8_lossy(PIN).into_owned()
}

fn threads(command: &mut Command, site: Site<'_>) {
    let Site { arm, key, module, files: [certificate, private, _], port, threads, .. } = site;
    command.args([port.to_string(), threads.to_string()]).arg(certificate);
    match arm {
        Arm::File => command.arg(private),
        _ => command.arg(module).args([&*pin(), key.name]),
    };
}

/// What SunPKCS11 is configured with. The key may do what the certificate's says.
pub(super) fn sun_pkcs11(module: &Path) -> String {
    let module = module.display();
    format!(
        "name = metaslot\nlibrary = {module}\nslot = 0\n\
         attributes(*, CKO_PRIVATE_KEY, *) = {{ CKA_SIGN = true }}\n"
    )
}

fn haproxy(site: Site<'_>) -> String {
    let Site { arm, files: [_, _, both], port, workers, .. } = site;
    let jobs = if matches!(arm, Arm::Jobs | Arm::FileJobs) { "    ssl-mode-async\n" } else { "" };
    format!(
        "global\n    nbthread {workers}\n    maxconn 2000\n{jobs}defaults\n    mode http\n    timeout client 20s\n    \
         timeout server 20s\n    timeout connect 20s\nfrontend site\n    \
         bind 127.0.0.1:{port} ssl crt {} ssl-min-ver TLSv1.3\n    \
         http-request return status 200 content-type text/plain string \"hello\"\n",
        both.display()
    )
}

fn nginx(site: Site<'_>) -> String {
    let Site { home, files: [certificate, key, _], port, workers, .. } = site;
    let (home, certificate, key) = (home.display(), certificate.display(), key.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("{what}_temp_path {home}/tmp;\n"))
        .collect();
    format!(
        "daemon off;\nuser root;\nworker_processes {workers};\npid {home}/nginx.pid;\nenv METASLOT_CONF;\nenv OPENSSL_CONF;\n\
         events {{ worker_connections 2048; }}\nhttp {{\naccess_log off;\n{temporary}\
         server {{ listen 127.0.0.1:{port} ssl;\nssl_protocols TLSv1.3;\nssl_session_tickets off;\n\
         ssl_certificate {certificate};\nssl_certificate_key {key};\n\
         location / {{ return 200 \"hello\\n\"; }} }} }}\n"
    )
}

fn apache(site: Site<'_>) -> String {
    let Site { home, files: [certificate, key, _], port, .. } = site;
    let (home, certificate, key) = (home.display(), certificate.display(), key.display());
    let module =
        |name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n");
    let modules: String = ["mpm_prefork", "authz_core", "ssl", "alias"].map(module).concat();
    format!(
        "ServerRoot {home}\nServerName localhost\nPidFile {home}/apache.pid\nListen 127.0.0.1:{port}\n{modules}\
         Mutex file:{home} default\nErrorLog {home}/error.log\nKeepAlive Off\nStartServers 64\nMinSpareServers 64\n\
         MaxSpareServers 256\nServerLimit 256\nMaxRequestWorkers 256\nSSLEngine on\nSSLProtocol TLSv1.3\nSSLSessionTickets off\n\
         SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\nRedirect 404 /\nErrorDocument 404 \"hello\"\n"
    )
}

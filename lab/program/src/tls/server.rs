// SPDX-License-Identifier: Apache-2.0
//! The servers' programs and configurations.

use super::options::Server;
use super::rows::Arm;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a server's configuration depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) arm: Arm,
    /// Its own directory.
    pub(super) home: &'a Path,
    /// The certificate, the key, and both in one file.
    pub(super) files: [&'a Path; 3],
    pub(super) port: u16,
    pub(super) workers: u16,
}

impl Server {
    /// The level of the factor.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Apache => "apache",
        }
    }

    pub(super) fn of(word: &str) -> Option<Self> {
        [Self::Loop, Self::Haproxy, Self::Nginx, Self::Apache]
            .into_iter()
            .find(|server| server.word() == word)
    }

    /// Where it is installed; nothing where it is none.
    pub(super) fn program(self) -> Option<PathBuf> {
        let name = match self {
            Self::Loop => return Some(PathBuf::new()),
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
            Self::Loop => String::new(),
            Self::Haproxy => haproxy(site),
            Self::Nginx => nginx(site),
            Self::Apache => apache(site),
        }
    }

    /// How it is started with that.
    pub(super) fn arguments(self, command: &mut Command, home: &Path, file: &Path) {
        match self {
            Self::Loop => {}
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

fn haproxy(site: Site<'_>) -> String {
    let Site { arm, files: [_, _, both], port, workers, .. } = site;
    let jobs = if arm == Arm::Jobs { "    ssl-mode-async\n" } else { "" };
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

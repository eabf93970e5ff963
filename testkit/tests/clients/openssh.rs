// SPDX-License-Identifier: Apache-2.0
//! OpenSSH: public keys from the token, its agent, logins to a local sshd, scp, and certificates.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, Result, ensure};
use metaslot_testkit::{Server, TestToken, USER_PIN, check, command, free_port, openssl_provider};

use super::openssl_provider::{counted, rose};
use super::openssl_provider_all::configure_all;
use crate::recipe;

const PAGE: (&str, usize) = ("OpenSSH", 0);
const CLIENT: &str = "OpenSSH";
const NEEDS: &[&str] = &["ssh", "sshd", "ssh-keygen", "ssh-agent", "ssh-add", "scp", "pkcs11-tool"];

/// An RSA and a P-256 key pair, and a script that types the PIN.
fn prepare(token: &mut TestToken) -> Result<()> {
    token.key_pair("rsa:2048", "01", "rsa")?;
    token.key_pair("EC:prime256v1", "02", "ec")?;
    let script = token.write("askpass", format!("#!/bin/sh\necho {USER_PIN}\n"))?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700))?;
    token.set("SSH_ASKPASS", script);
    token.set("SSH_ASKPASS_REQUIRE", "force");
    Ok(())
}

/// The public keys in OpenSSH's form, listed without a PIN.
fn public_keys(token: &TestToken) -> Result<String> {
    let keys = recipe::command(token, PAGE, "ssh-keygen", &[])?.run()?.text();
    ensure!(keys.contains("ssh-rsa ") && keys.contains("ecdsa-sha2-nistp256 "), "{keys}");
    Ok(keys)
}

/// A local sshd that lets in who has a key of `authorized`, with a host key in a file.
fn sshd(token: &TestToken, authorized: &str, more: &str) -> Result<(Server, u16)> {
    token.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "host"]).run()?;
    let host = token.path("host");
    sshd_as(token, authorized, &format!("HostKey {}\n{more}", host.display()))
}

/// The same, where `more` says what its host key is.
fn sshd_as(token: &TestToken, authorized: &str, more: &str) -> Result<(Server, u16)> {
    let port = free_port()?;
    let home = token.home().display();
    token.write("authorized", authorized)?;
    token.write(
        "sshd_config",
        format!(
            "Port {port}\nListenAddress 127.0.0.1\nPidFile {home}/sshd.pid\n\
             AuthorizedKeysFile {home}/authorized\nStrictModes no\nUsePAM no\n\
             PermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nSubsystem sftp internal-sftp\n{more}"
        ),
    )?;
    // sshd insists on this directory, which a system's own service otherwise makes.
    drop(std::fs::create_dir_all("/run/sshd"));
    let program = token.program("sshd").args(["-D", "-e", "-f"]).arg(token.path("sshd_config"));
    Ok((program.serve(port, token.home())?, port))
}

fn options(token: &TestToken) -> Vec<String> {
    let known = format!("UserKnownHostsFile={}", token.path("known").display());
    ["-F", "/dev/null", "-o", &known, "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn me() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".into())
}

#[test]
fn public_keys_are_listed_without_a_pin() {
    check(CLIENT, "ssh-keygen -D", NEEDS, |token| {
        prepare(token)?;
        token.spy()?;
        public_keys(token)?;
        token.asked("openssh-keygen").map(drop)
    });
}

#[test]
fn login_with_a_key_in_the_token() {
    check(CLIENT, "ssh -I", NEEDS, |token| {
        prepare(token)?;
        token.spy()?;
        let keys = public_keys(token)?;
        for key in keys.lines() {
            let (_server, port) = sshd(token, key, "")?;
            let options = format!("ssh {} -p {port}", options(token).join(" "));
            let changes =
                [("ssh", &*options), ("user@host", &*format!("{}@127.0.0.1 echo inside", me()))];
            recipe::command(token, PAGE, "ssh -I", &changes)?.run()?.with(&["inside"])?;
            std::fs::remove_file(token.path("host"))?;
        }
        token.called("openssh-client")
    });
}

/// With our provider for OpenSSL in mode `all`.
#[test]
fn what_a_client_sends_is_encrypted_by_the_module() {
    let (provider, command) = (openssl_provider(), command());
    let needs = [NEEDS, &["openssl", &provider, &command]].concat();
    check(CLIENT, "ssh -c aes256-gcm@openssh.com", &needs, |token| {
        if !token.is_ours() {
            return Ok(());
        }
        token.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "own"]).run()?;
        let key = std::fs::read_to_string(token.path("own.pub"))?;
        let (_server, port) = sshd(token, &key, "")?;
        configure_all(token)?;
        for (cipher, mechanism) in
            [("aes256-gcm@openssh.com", "CKM_AES_GCM"), ("aes128-ctr", "CKM_AES_CTR")]
        {
            let before = counted(token)?;
            let ssh = token.program("ssh").args(options(token)).line("-i own -c").arg(cipher);
            let ssh = ssh.args(["-p", &port.to_string(), &format!("{}@127.0.0.1", me()), "cat"]);
            let sent = "what is sent\n".repeat(10_000);
            let came = ssh.input(sent.clone()).run()?.text();
            ensure!(came == sent, "{cipher}: {} bytes came back", came.len());
            rose(token, mechanism, &before)?;
        }
        Ok(())
    });
}

#[test]
fn agent_serves_logins_and_copies() {
    check(CLIENT, "ssh-agent, ssh and scp", NEEDS, |token| {
        prepare(token)?;
        token.spy()?;
        let (_server, port) = sshd(token, &public_keys(token)?, "")?;
        let script = format!(
            "set -e\nssh-add -s {module}\nssh-add -l\nssh {options} -p {port} {me}@127.0.0.1 echo \
             inside\nscp -q {options} -P {port} {me}@127.0.0.1:{home}/pin copied\nssh-add -e \
             {module}\nssh-add -l || true\n",
            module = token.module().display(),
            options = options(token).join(" "),
            me = me(),
            home = token.home().display(),
        );
        token.write("session", script)?;
        let directory = token.module().parent().context("a module without directory")?;
        token
            .program("ssh-agent")
            .args(["-P", &format!("{}/*", directory.display()), "sh", "session"])
            .run()?
            .with(&["Card added", "RSA", "ECDSA", "inside", "Card removed", "no identities"])?;
        ensure!(std::fs::read_to_string(token.path("copied"))? == USER_PIN, "not what was copied");
        token.called("openssh-agent")
    });
}

#[test]
fn certificate_is_signed_by_an_authority_in_the_token() {
    check(CLIENT, "user certificate", NEEDS, |token| {
        prepare(token)?;
        token.spy()?;
        let authority = public_keys(token)?;
        let authority = authority.lines().next().context("no key")?;
        token.write("ca.pub", authority)?;
        token.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "user"]).run()?;
        let changes = [("-n user", &*format!("-V +1h -n {}", me()))];
        recipe::command(token, PAGE, "-s ca.pub", &changes)?.run()?;
        let trusted = format!("TrustedUserCAKeys {}\n", token.path("ca.pub").display());
        let (_server, port) = sshd(token, "", &trusted)?;
        token
            .program("ssh")
            .args(options(token))
            .args(["-i", "user", "-p", &port.to_string(), &format!("{}@127.0.0.1", me())])
            .args(["echo", "inside"])
            .run()?
            .with(&["inside"])?;
        token.called("openssh-ca")
    });
}

/// The agent that sshd asks, with the token's keys in it; the socket is relative to the test's directory, since a socket's path is short.
fn agent(token: &mut TestToken) -> Result<Server> {
    let directory = token.module().parent().context("a module without directory")?;
    let agent = token
        .program("ssh-agent")
        .args(["-D", "-a", "agent", "-P", &format!("{}/*", directory.display())])
        .serve_socket(&token.path("agent"), token.home())?;
    token.set("SSH_AUTH_SOCK", "agent");
    recipe::command(token, PAGE, "ssh-add", &[])?.run()?;
    Ok(agent)
}

#[test]
fn an_authority_in_the_agent_signs_certificates() {
    check(CLIENT, "ssh-keygen -U", NEEDS, |token| {
        prepare(token)?;
        token.key_pair("EC:edwards25519", "03", "edwards")?;
        token.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "user"]).run()?;
        let _agent = agent(token)?;
        let keys = token.program("ssh-add").arg("-L").run()?.text();
        ensure!(keys.lines().count() == public_keys(token)?.lines().count(), "{keys}");
        for key in keys.lines() {
            token.write("ca.pub", key)?;
            token.program("ssh-keygen").line("-U -s ca.pub -I test -V +1h -n me user.pub").run()?;
            let made = token.program("ssh-keygen").line("-L -f user-cert.pub").run()?;
            let kind = key.split(' ').next().unwrap_or_default().trim_start_matches("ssh-");
            made.with(&[&format!("(using {}", kind.replace("rsa", "rsa-sha2-512"))])?;
        }
        Ok(())
    });
}

#[test]
fn a_server_proves_itself_by_keys_in_the_token() {
    check(CLIENT, "host keys, HostKeyAgent", NEEDS, |token| {
        prepare(token)?;
        token.spy()?;
        let _agent = agent(token)?;
        let keys = token.program("ssh-add").arg("-L").run()?.text();
        token.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "user"]).run()?;
        let mut hosts = String::new();
        for (number, key) in keys.lines().enumerate() {
            let file = token.write(&format!("host{number}.pub"), key)?;
            hosts += &format!("{}\nHostKey ", file.display());
        }
        // One line for each of them.
        let hosts = hosts.trim_end_matches("\nHostKey ");
        let agent = token.path("agent").display().to_string();
        let changes = [("/etc/ssh/host0.pub", hosts), ("/run/ssh-agent.sock", &*agent)];
        let hosts = recipe::block(token, "OpenSSH", 1, &changes)?;
        let user = std::fs::read_to_string(token.path("user.pub"))?;
        let (_server, port) = sshd_as(token, &user, &hosts)?;
        for algorithm in ["rsa-sha2-512", "ecdsa-sha2-nistp256"] {
            let known: String =
                keys.lines().map(|key| format!("[127.0.0.1]:{port} {key}\n")).collect();
            token.write("known", known)?;
            let ssh = token.program("ssh").args(["-F", "/dev/null", "-i", "user"]);
            ssh.arg("-o")
                .arg(format!("UserKnownHostsFile={}", token.path("known").display()))
                .args(["-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR"])
                .args(["-o", &format!("HostKeyAlgorithms={algorithm}"), "-p", &port.to_string()])
                .args([&format!("{}@127.0.0.1", me()), "echo", "inside"])
                .run()?
                .with(&["inside"])?;
        }
        token.called("openssh-host")
    });
}

// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup`

mod credential;
mod daemon;
mod edwards;
mod files;
mod fresh;
mod plain;
mod program;
mod proxy;
mod service;
mod tested;
mod tree;
mod values;
mod verify;

use super::arguments::TokenArg;
use super::bridges;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Output, Report};
use crate::pin::{Role, Source, only_as_user};
use crate::places;
use credential::Credential;
use files::{apply, before, kept, may_be_included};
pub(crate) use fresh::run as run_command;
use fresh::{Chosen, Wanted};
use metaslot_ck::CKF_LOGIN_REQUIRED;
use program::{ALL, Bridge, Plan, Program, Proof};
pub(crate) use proxy::{Proxy, TokenKey, check_paths, is_user, may_read, own_user, runs};
use serde_json::{Value, json};
use std::env;
use std::mem;
use std::path::{Path, PathBuf};
use tested::Test;
use values::{Said, pin_file};
use verify::{Run, Used, verify};

const EXAMPLES: &str = "\
Examples:
  metaslot setup nginx --key site --cert /etc/nginx/site.pem --pin-source /etc/metaslot/pin
  metaslot setup java --apply --directory ~/java
  metaslot setup openssl --apply --verify --pin-source pin
  metaslot setup nginx --apply --new site --dns www.example.org --enable";

/// Names of the programs, as the first argument has them.
pub(crate) fn programs() -> impl Iterator<Item = &'static str> {
    program::PROGRAMS.iter().map(|program| program.name)
}

/// Arguments of `setup`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// openssl, nginx, apache, stunnel, postgresql, curl, osslsigncode, java, nss, gnutls, p11-kit, ssh, git, knot,
    /// strongswan, openvpn; and servers that read PEM files: haproxy, mariadb, postgres
    #[arg(value_name = "PROGRAM")]
    program: String,
    /// The key: a PKCS#11 URI or its label [default: the only one there is]
    #[arg(long, value_name = "URI|LABEL")]
    key: Option<String>,
    /// The file with its certificate, as the program reads it [default: site.pem, or the new one]
    #[arg(long, value_name = "FILE")]
    cert: Option<String>,
    /// A file with the user PIN, which the URI or OpenSSL's configuration then names [default: METASLOT_PIN_SOURCE, where
    /// that is a file and without --new; otherwise the program asks, if it can]
    #[arg(long, value_name = "FILE", value_parser = file_of_pin)]
    pin_source: Option<PathBuf>,
    /// The PIN's file is encrypted as a credential of the program's systemd unit, whose file is then named
    #[arg(long, conflicts_with = "verify")]
    credential: bool,
    /// Write the files; without it they are printed
    #[arg(long)]
    apply: bool,
    /// Make what is missing for it: a token, whose PINs are in files of the directory, a key pair of this label, and a
    /// certificate that it signs itself
    #[arg(long, value_name = "LABEL", requires = "apply", conflicts_with = "key")]
    new: Option<String>,
    /// The new certificate's name in the DNS; several times for several
    #[arg(long, value_name = "NAME", requires = "new")]
    dns: Vec<String>,
    /// Write files where Debian's package of the program includes them, too: the program then serves with the key
    #[arg(long, requires = "apply")]
    enable: bool,
    /// Run the program with what was written, and say whether its process signed with the key
    #[arg(long)]
    verify: bool,
    /// What of OpenSSL's finds the key [default: metaslot, where that is installed and the program takes a bridge]
    #[arg(long, value_name = "BRIDGE")]
    bridge: Option<Bridge>,
    /// The key is in metaslotd, which listens there: the program has neither the token's file nor its PIN
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "/run/metaslotd/socket")]
    #[arg(conflicts_with_all = ["pin_source", "credential", "new", "verify"])]
    daemon: Option<PathBuf>,
    /// What is done by the module
    #[arg(long, default_value = "keys", value_name = "MODE")]
    mode: Mode,
    /// Where the files are [default: /etc/metaslot for root, ~/.config/metaslot otherwise]
    #[arg(long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArg,
}

/// What programs of OpenSSL do by the module.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Mode {
    /// what is done with the key in the token
    Keys,
    /// whatever it can do, with keys of files, too: openssl only, whose file is for every program
    All,
}

/// The file of a PIN's source, as the other commands take it.
fn file_of_pin(text: &str) -> std::result::Result<PathBuf, String> {
    match Source::parse(text) {
        Ok(Source::File(path)) => Ok(path.into()),
        Ok(_) => Err(String::from("programs read the PIN from a file, and not from a command")),
        Err(failure) => Err(failure.message().to_owned()),
    }
}

/// Where the variable says that the PIN is; a new token has one of its own.
fn pin_of_environment(args: &Args) -> Result<Option<PathBuf>> {
    let is_there = args.new.is_none() && args.daemon.is_none();
    let source = env::var(Role::User.variable()).ok().filter(|_| is_there);
    let pin = source.and_then(|source| file_of_pin(&source).ok());
    // What is set up logs in as the user.
    pin.is_some().then(only_as_user).transpose()?;
    Ok(pin)
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    of_daemon(args)?;
    let program = &chosen(args, app.named_module())?;
    let directory = directory(args.directory.as_deref())?;
    let is_here = in_path(program.command);
    possible(args, program, is_here, &directory)?;
    args.daemon.as_deref().map_or(Ok(()), |socket| daemon::takes(program, socket))?;
    let mut chosen = Chosen {
        key: args.key.clone(),
        cert: whole_name(args.cert.as_deref().unwrap_or("site.pem")),
        pin: match &args.pin_source {
            Some(pin) => Some(pin.clone()),
            None => pin_of_environment(args)?,
        },
    };
    let of_new = args.new.as_ref().map(|_| Path::new(""));
    let credential =
        args.credential.then(|| Credential::of(program, chosen.pin.as_deref().or(of_new)));
    let credential = credential.transpose()?;
    let test = args.enable.then(|| Test::of(program, credential.as_ref())).flatten();
    test.as_ref().map_or(Ok(()), Test::before)?;
    if rustix::process::geteuid().is_root() {
        // What root's services read, they read with other rights; PINs have a mode of their own.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    }
    plain_paths(args, program, &directory, &chosen)?;
    if let Some(label) = &args.new {
        chosen = make(app, args, label, chosen.pin, program, &directory)?;
    }
    let said = Said {
        token: &args.token,
        is_run: args.verify,
        is_daemons: args.daemon.is_some(),
        chosen: &chosen,
        credential: credential.as_ref(),
        module: app.named_module(),
        program,
        directory: &directory,
    };
    let found = said.find(app)?;
    let pin_of_credential = credential.as_ref().zip(chosen.pin.as_deref());
    let plan = planned(args, program, &found.values, pin_of_credential)?;
    if args.apply && program.names_certificate() {
        before(&directory, &plan)?;
        program.needs(&chosen.cert)?;
    }
    let is_its_own = args.daemon.is_none() && (args.apply || args.verify);
    if let Some(token) = found.token.as_ref().filter(|_| is_its_own) {
        service::may_use(program, app, token)?;
    }
    // What fails between the files and the run would leave them enabled.
    let run_with = chosen.pin.as_deref().filter(|_| args.verify);
    let pin = run_with.map(|path| pin_file(path, program)).transpose()?;
    let enabled = args.enable.then(|| kept(&directory, &plan)).transpose()?;
    if args.enable && args.verify {
        // From now on it waits for what takes the files back.
        tree::signal().map_err(|error| Failure::io("cannot wait for signals", &error))?;
    }
    let written = match &test {
        Some(test) => test.apply(&directory, &plan)?,
        None if args.apply => apply(&directory, &plan)?,
        None => Vec::new(),
    };
    let proved = args.verify.then(|| {
        let (directory, values, public) = (&*directory, &*found.values, &*found.public);
        let asks = found.token.as_ref().is_none_or(|token| token.has(CKF_LOGIN_REQUIRED));
        let run = Run { directory, plan: &plan, values, pin: pin.as_deref(), asks, public };
        verify(program, &run).or_else(|failed| failed.after(enabled))
    });
    let proved = proved.transpose()?;
    if args.apply && plan.files.is_empty() {
        let name = program.name;
        app.output.note(&format!(
            "there is no file to write for {name}: what is to be done is said below"
        ));
    }
    report(app.output, &directory, &plan, &written, proved.as_ref())?;
    if !is_here {
        app.output.note(&format!(
            "note: {} is not installed here: apt-get install {}",
            program.name, program.package
        ));
    }
    Ok(())
}

/// Begins anew where the key is looked up in a daemon.
fn of_daemon(args: &Args) -> Result<()> {
    let Some(socket) = &args.daemon else { return Ok(()) };
    if args.enable {
        return Err(daemon::cannot_enable(Program::find(&args.program)?));
    }
    if daemon::is_asked() { Ok(()) } else { Err(daemon::ask(socket)) }
}

/// What the recipe comes to, with what is asked for besides.
fn planned(
    args: &Args,
    program: &Program,
    values: &[(&str, String)],
    credential: Option<(&Credential, &Path)>,
) -> Result<Plan> {
    let mut plan = program.plan(values);
    if args.enable {
        plan.files.append(&mut plan.included);
        plan.then = mem::take(&mut plan.start);
    }
    if let Some(socket) = &args.daemon {
        daemon::add_to(&mut plan, program, values, socket)?;
    }
    if let Some((credential, pin)) = credential {
        credential.add_to(&mut plan, &pin_file(pin, program)?, args.enable);
    }
    Ok(plan)
}

/// The program with its keys in the token, or with those of files.
fn chosen(args: &Args, module: Option<&Path>) -> Result<Program> {
    let program = Program::find(&args.program)?;
    match args.mode {
        Mode::All => with_files(args, program),
        Mode::Keys => bridged(program, args.bridge, module),
    }
}

/// Programs with keys of files.
fn with_files(args: &Args, program: &Program) -> Result<Program> {
    if program.name != ALL.name {
        return Err(Failure::usage(format!("there is no file for {} alone", program.name))
            .hint("metaslot setup openssl --mode all writes one for every program"));
    }
    if args.key.is_some() || args.new.is_some() || args.bridge.is_some_and(|it| it != Bridge::Own) {
        return Err(Failure::usage("with --mode all keys are in files, and found by our provider")
            .hint("leave out --key, --new and --bridge"));
    }
    Ok(ALL)
}

/// The program by the bridge that was chosen, or by our own provider where that is installed.
fn bridged(program: &Program, chosen: Option<Bridge>, module: Option<&Path>) -> Result<Program> {
    match chosen {
        Some(bridge) => program.by(bridge),
        None if program.takes_own() && bridges::own(module).is_ok() => program.by(Bridge::Own),
        None => Ok(*program),
    }
}

/// Refuses what this machine, or this user, cannot do.
fn possible(args: &Args, program: &Program, is_here: bool, directory: &Path) -> Result<()> {
    if !is_here && (args.apply || args.verify) {
        return Err(Failure::failed(format!("{} is not installed", program.name)).hint(format!(
            "apt-get install {}, or have it printed, without --apply",
            program.package
        )));
    }
    if args.verify && program.bridge == Bridge::Provider && !bridges::pkcs11_provider() {
        return Err(Failure::failed("OpenSSL's provider for PKCS#11 is not installed")
            .hint("apt-get install pkcs11-provider (Debian 12: from bookworm-backports)"));
    }
    if args.enable {
        let plan = program.plan(&[]);
        if plan.included.is_empty() {
            return Err(Failure::failed(format!("{} includes no files of others", program.name))
                .hint("leave out --enable: what is to be done is said then"));
        }
        may_be_included(program.name, &plan)?;
    }
    if args.apply || args.verify { own(directory) } else { Ok(()) }
}

/// Before anything is made. Elsewhere the PIN's file stands in a URI, which escapes.
fn plain_paths(args: &Args, program: &Program, directory: &Path, chosen: &Chosen) -> Result<()> {
    let room = if args.verify { env::temp_dir() } else { PathBuf::new() };
    let named = [
        ("directory", directory.display().to_string()),
        ("cert", chosen.cert.clone()),
        ("room", room.display().to_string()),
    ];
    let is_named = args.verify || program.bridge.is_provider();
    plain::check(&named, chosen.pin.as_deref().filter(|_| is_named))
}

/// Makes what is missing.
fn make(
    app: &App,
    args: &Args,
    label: &str,
    pin: Option<PathBuf>,
    program: &Program,
    directory: &Path,
) -> Result<Chosen> {
    fresh::check_names(label, &args.dns)?;
    check(args, program, directory)?;
    let (token, cert) = (args.token.uri()?, args.cert.as_deref());
    fresh::make(app, Wanted { label, names: &args.dns, token, cert, pin }, program, directory)
}

/// What would be refused later: before anything is made.
fn check(args: &Args, program: &Program, directory: &Path) -> Result<()> {
    let mut plan = program.plan(&[]);
    if args.enable {
        plan.files.append(&mut plan.included);
    }
    before(directory, &plan)?;
    if program.bridge == Bridge::Engine {
        bridges::engine()?;
    }
    args.pin_source.as_deref().map_or(Ok(()), |path| pin_file(path, program).map(drop))
}

/// The whole name of a file that is there: a program runs in another directory. What is not there is left as it is said.
fn whole_name(path: &str) -> String {
    let whole = std::path::absolute(path).ok().filter(|whole| whole.exists());
    whole.map_or_else(|| path.to_owned(), |whole| whole.display().to_string())
}

/// Where files of ours are.
pub(crate) fn directory(said: Option<&Path>) -> Result<PathBuf> {
    let home = || env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    let user = || {
        let config = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
        config.map_or_else(|| home().join(".config"), PathBuf::from).join("metaslot")
    };
    let directory = match said {
        Some(said) => said.to_owned(),
        None if rustix::process::geteuid().is_root() => PathBuf::from("/etc/metaslot"),
        None => user(),
    };
    let directory = std::path::absolute(directory)
        .map_err(|error| Failure::io("cannot find a directory", &error))?;
    match directory.ancestors().find(|part| part.exists()) {
        Some(part) if !part.is_dir() => {
            Err(Failure::failed(format!("{} is no directory", part.display()))
                .hint("the files are written into one: say another --directory"))
        }
        _ => Ok(directory),
    }
}

/// Root writes nothing where another user could change it: root's services load what it names.
pub(crate) fn own(directory: &Path) -> Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    match is_root.then(|| places::in_others_hands(directory)).flatten() {
        None => Ok(()),
        Some((place, why)) => {
            let what = format!("{} {why}", place.display());
            Err(Failure::failed(format!("{what}, who could change what root's services load"))
                .hint("say another --directory, or do it as that user"))
        }
    }
}

fn in_path(command: &str) -> bool {
    program_path(command).is_some()
}

fn program_path(command: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let all = env::split_paths(&path).chain(more).map(|directory| directory.join(command));
    all.into_iter().find(|file| file.is_file())
}

fn report(
    output: Output,
    directory: &Path,
    plan: &Plan,
    written: &[&str],
    proved: Option<&(Proof, Vec<Used>)>,
) -> Result<()> {
    let mut text = String::new();
    let mut files: Vec<Value> = Vec::new();
    for (at, (name, content)) in plan.files.iter().enumerate() {
        let path = directory.join(name).display().to_string();
        let state = written.get(at).copied();
        text += &match (state, proved) {
            (Some(state), _) => format!("{state} {path}\n"),
            (None, None) => format!("# {path}\n{content}\n"),
            (None, Some(_)) => String::new(),
        };
        files.push(json!({"path": path, "content": content, "state": state}));
    }
    if proved.is_none() || !written.is_empty() {
        text += "# then\n";
        text.extend(plan.then.iter().map(|line| format!("{line}\n")));
    }
    if let Some((proof, used)) = proved {
        text.extend(used.iter().map(|Used { pid, function, calls }| {
            format!("verified: {} (process {pid}): {function}, {calls} times\n", proof.process)
        }));
    }
    let uris = plan.files.iter().map(|file| directory.join(file.0).display().to_string());
    let mut json = json!({"files": files, "then": plan.then});
    if let Some((proof, used)) = proved {
        let process = |Used { pid, function, calls }: &Used| json!({"pid": pid, "function": function, "calls": calls});
        json["verified"] = json!({
            "process": proof.process,
            "processes": used.iter().map(process).collect::<Vec<Value>>(),
        });
    }
    output.print(&Report { text, json, uris: uris.collect() })
}

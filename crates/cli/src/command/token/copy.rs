// SPDX-License-Identifier: Apache-2.0
//! `metaslot token backup` and `metaslot token restore`

use super::examine::{Findings, Opened, Who, lines, tell};
use super::init::first_free;
use super::place::{Place, Usual};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::output::Report;
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use metaslot_ck::{CKF_TOKEN_INITIALIZED, CKU_SO, CKU_USER, Error, SlotId};
use metaslot_client::{Examined, Remark};
use metaslot_memory::Secret;
use serde_json::json;
use std::env::temp_dir;
use std::fs::{self, File};
use std::io::{self, IsTerminal, stdout};
use std::path::{Path, PathBuf, absolute};
use std::process;

const BACKUP_EXAMPLES: &str = "\
Examples:
  metaslot token backup web.token
  metaslot token backup --token web --pin-source /etc/metaslot/pin /backup/web-$(date +%F).token
  metaslot token backup - --pin-source /etc/metaslot/pin | ssh backup 'cat > web.token'";

const RESTORE_EXAMPLES: &str = "\
Examples:
  metaslot token restore web.token";

/// Arguments of `token backup`.
#[derive(clap::Args, Debug)]
#[command(after_help = BACKUP_EXAMPLES)]
pub(crate) struct BackupArgs {
    /// The file, which must not be there; '-' for standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    who: Who,
}

/// Arguments of `token restore`.
#[derive(clap::Args, Debug)]
#[command(after_help = RESTORE_EXAMPLES)]
pub(crate) struct RestoreArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The slot [default: the first without a token]
    #[arg(long, value_name = "N")]
    slot: Option<u64>,
    /// Beside the tokens that there are: a [[token]] of its own in a drop-in of the configuration
    #[arg(long, conflicts_with = "slot")]
    new: bool,
    /// Use the SO PIN
    #[arg(long, conflicts_with = "pin_source")]
    so: bool,
    /// The place of the user PIN that the token had: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pin_source: Option<String>,
    /// The SO PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE", requires = "so")]
    so_pin_source: Option<String>,
}

pub(crate) fn backup(app: &App, args: &BackupArgs) -> Result<()> {
    if args.file == Path::new("-") {
        return to_standard_output(app, &args.who);
    }
    let file = args.file.display().to_string();
    if args.file.symlink_metadata().is_ok() {
        let message = format!("{file} is there already");
        return Err(Failure::failed(message).hint("a file is never replaced: give another name"));
    }
    let opened = args.who.open(app)?;
    let examined = copied(app, &opened, &args.file, false)?;
    app.output.print(&Report {
        text: format!("{}: {} objects copied into {file}\n", opened.token.name(), examined.objects),
        json: json!({
            "token": opened.token.uri().to_string(),
            "file": file,
            "objects": examined.objects,
        }),
        uris: vec![file],
    })
}

/// By a file that has no name any more before its first byte leaves.
fn to_standard_output(app: &App, who: &Who) -> Result<()> {
    if app.output.json {
        return Err(Failure::usage("'-' and --json go to one place").hint("give a file's name"));
    }
    if stdout().is_terminal() {
        return Err(Failure::usage("a token is not written to a terminal")
            .hint("give a file's name, or send standard output somewhere"));
    }
    let opened = who.open(app)?;
    let path = temp_dir().join(format!("metaslot-backup-{}", process::id()));
    copied(app, &opened, &path, false)?;
    let cannot = |error: io::Error| Failure::io("cannot write the copy", &error);
    let file = File::open(&path);
    fs::remove_file(&path).map_err(cannot)?;
    let written = file.and_then(|mut file| io::copy(&mut file, &mut stdout().lock()));
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(cannot(error)),
        _ => Ok(()),
    }
}

impl RestoreArgs {
    const fn role(&self) -> Role {
        if self.so { Role::So } else { Role::User }
    }
}

pub(crate) fn restore(app: &App, args: &RestoreArgs) -> Result<()> {
    let name = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let (examined, slot, host) = if args.new {
        let place = Place::find(&name)?;
        let pin = restored_pin(args)?;
        let added = place.add()?;
        let host = app.host(&Uri::default())?;
        let (examined, slot) = restored(app, host, added.token(host)?, args, pin)?;
        added.keep(app.output);
        (examined, slot, host)
    } else {
        let usual = Usual::look();
        let host = app.host(&Uri::default())?;
        let token = first_free(host, args.slot)?;
        if token.has(CKF_TOKEN_INITIALIZED) {
            let message = format!("slot {} already has {}", token.slot, token.name());
            return Err(Failure::failed(message)
                .hint("a token is never replaced: '--new' gives this one a slot of its own; or move the other one's files away"));
        }
        let (examined, slot) = restored(app, host, token, args, restored_pin(args)?)?;
        usual.keep()?;
        (examined, slot, host)
    };
    let made = host.tokens()?.into_iter().find(|token| token.slot == slot);
    let made = made.ok_or_else(|| Failure::failed(format!("slot {slot} is gone")))?;
    if let Some(problem) = &made.problem {
        // Reading takes files that the disk may have no room for.
        let what = format!("the token is restored into slot {slot}, and cannot be read: {problem}");
        return Err(
            Failure::failed(what).hint("'metaslot token list' says whether it can be read now")
        );
    }
    let uri = made.uri().to_string();
    let objects = examined.objects;
    app.output.print(&Report {
        text: format!("{}: {objects} objects restored into slot {slot}\n{uri}\n", made.name()),
        json: json!({"token": super::list::json(&made), "objects": objects}),
        uris: vec![uri],
    })
}

/// The PIN of the token in the file.
fn restored_pin(args: &RestoreArgs) -> Result<Secret> {
    if !args.so {
        pin::only_as_user()?;
    }
    let option = if args.so { &args.so_pin_source } else { &args.pin_source };
    let source = Source::find(args.role(), option.as_deref(), &Uri::default())?;
    pin::existing(args.role(), &args.file.display().to_string(), None, source.as_ref())
}

/// What came, and the slot in which it is.
fn restored(
    app: &App,
    host: &Host,
    token: Token,
    args: &RestoreArgs,
    pin: Secret,
) -> Result<(Examined, SlotId)> {
    let slot = token.slot;
    let opened = Opened { host, token, role: args.role(), pin };
    Ok((copied(app, &opened, &args.file, true)?, slot))
}

/// Copies, and says what stands in the way.
fn copied(app: &App, opened: &Opened<'_>, file: &Path, restore: bool) -> Result<Examined> {
    let path = absolute(file).map_err(|error| Failure::io("cannot find the file", &error))?;
    let mut findings = Findings::new();
    let mut told = |remark: Remark| tell(app.output, &mut findings, remark);
    let user = if opened.role == Role::So { CKU_SO } else { CKU_USER };
    let whose = (opened.token.slot, user, opened.pin.expose());
    let copied = opened.host.module().copy_token(whose, &path, restore, &mut told);
    let copied = copied.ok_or_else(|| Failure::failed("the module cannot do that"))?;
    let examined = copied.map_err(|error| match restore && error.code == Error::PIN_INCORRECT {
        true => Failure::from(error)
            .without_detail()
            .hint("nothing was restored; the PIN is the one that the copy had"),
        false => opened.host.login_failure(&opened.token, opened.role, error),
    })?;
    if findings.is_empty() {
        return Ok(examined);
    }
    app.output.note(lines(&findings).trim_end());
    let (what, hint) = match restore {
        true => ("the file is not as it should be; nothing was made", "take an older one"),
        false => (
            "the token is not as it should be; no copy was made",
            "'metaslot token verify' says the same, 'metaslot token repair' takes out what is damaged",
        ),
    };
    Err(Failure::failed(what).hint(hint))
}

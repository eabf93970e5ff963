// SPDX-License-Identifier: Apache-2.0
//! `metaslot token verify` and `metaslot token repair`

use crate::app::App;
use crate::command::arguments::{NamedArg, TokenArg};
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::output::{Output, Report};
use crate::pin::{self, Role, Source};
use crate::uri::Uri;
use metaslot_ck::{CKU_SO, CKU_USER};
use metaslot_client::{Examined, Remark};
use metaslot_memory::Secret;
use serde_json::{Value, json};

const VERIFY_EXAMPLES: &str = "\
Examples:
  metaslot token verify
  metaslot token verify web --json";

const REPAIR_EXAMPLES: &str = "\
Examples:
  cp -a /var/lib/metaslot /var/lib/metaslot.before
  metaslot token repair web";

/// Arguments of `token verify`.
#[derive(clap::Args, Debug)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    who: Who,
}

/// Arguments of `token repair`.
#[derive(clap::Args, Debug)]
#[command(after_help = REPAIR_EXAMPLES)]
pub(crate) struct RepairArgs {
    #[command(flatten)]
    named: NamedArg,
    #[command(flatten)]
    who: Who,
    /// Take out what is damaged without asking
    #[arg(long)]
    yes: bool,
}

/// The token, and the PIN that opens it.
#[derive(clap::Args, Debug)]
pub(super) struct Who {
    #[command(flatten)]
    token: TokenArg,
    /// Use the SO PIN
    #[arg(long, conflicts_with = "pin_source")]
    so: bool,
    /// The user PIN's place: a file, 'file:/path' or '|command' [default: ask]
    #[arg(long, value_name = "SOURCE")]
    pin_source: Option<String>,
    /// The SO PIN's place [default: ask]
    #[arg(long, value_name = "SOURCE", requires = "so")]
    so_pin_source: Option<String>,
}

/// A token, and a PIN that opens it.
pub(super) struct Opened<'a> {
    pub(super) host: &'a Host,
    pub(super) token: Token,
    pub(super) role: Role,
    pub(super) pin: Secret,
}

/// What one look found.
struct Found {
    examined: Examined,
    findings: Findings,
}

/// With which object what is wrong; `None` for the token as a whole.
pub(super) type Findings = Vec<(Option<u64>, String)>;

/// Shows how far it is, and keeps what is found.
pub(super) fn tell(output: Output, findings: &mut Findings, remark: Remark) -> bool {
    output.progress(remark.done, remark.total, "objects");
    if !remark.what.is_empty() {
        findings.push((remark.object, remark.what));
    }
    true
}

/// A line for each.
pub(super) fn lines(findings: &Findings) -> String {
    let line = |(object, what): &(Option<u64>, String)| match object {
        Some(object) => format!("object {object}: {what}\n"),
        None => format!("token: {what}\n"),
    };
    findings.iter().map(line).collect()
}

pub(crate) fn verify(app: &App, args: &VerifyArgs) -> Result<()> {
    let opened = args.who.open_named(app, &args.named)?;
    let found = opened.examine(app.output, false)?;
    app.output.print(&found.report(&opened.token))?;
    if found.findings.is_empty() {
        return Ok(());
    }
    let failure = Failure::failed(format!("{} is not as it should be", opened.token.name()));
    Err(failure
        .hint("a copy of the file is best; 'metaslot token repair' takes out what is damaged, or says why not"))
}

pub(crate) fn repair(app: &App, args: &RepairArgs) -> Result<()> {
    let opened = args.who.open_named(app, &args.named)?;
    let found = opened.examine(app.output, false)?;
    if found.findings.is_empty() {
        return app.output.print(&found.report(&opened.token));
    }
    if !args.yes {
        app.output.note(found.report(&opened.token).text.trim_end());
        confirm(&opened.token)?;
    }
    let found = opened.examine(app.output, true)?;
    app.output.print(&found.report(&opened.token))
}

fn confirm(token: &Token) -> Result<()> {
    if !pin::is_interactive() {
        return Err(Failure::failed("nothing was changed")
            .hint("--yes takes out what is damaged without asking"));
    }
    let question = format!("take the damaged objects out of {} for good?", token.name());
    if pin::confirm(&question)? { Ok(()) } else { Err(Failure::failed("nothing was changed")) }
}

impl Who {
    pub(super) fn open<'a>(&self, app: &'a App) -> Result<Opened<'a>> {
        self.opened(app, &self.token.uri()?)
    }

    fn open_named<'a>(&self, app: &'a App, named: &NamedArg) -> Result<Opened<'a>> {
        self.opened(app, &named.or(self.token.uri())?)
    }

    fn opened<'a>(&self, app: &'a App, uri: &Uri) -> Result<Opened<'a>> {
        let token = app.token(uri)?;
        let host = app.host(uri)?;
        let (role, option) = match self.so {
            true => (Role::So, self.so_pin_source.as_deref()),
            false => (Role::User, self.pin_source.as_deref()),
        };
        let source = Source::find(role, option, uri)?;
        let pin = token.pin(role, source.as_ref())?;
        Ok(Opened { host, token, role, pin })
    }
}

impl Opened<'_> {
    fn examine(&self, output: Output, repair: bool) -> Result<Found> {
        let user = if self.role == Role::So { CKU_SO } else { CKU_USER };
        let mut findings = Findings::new();
        let mut told = |remark: Remark| tell(output, &mut findings, remark);
        let module = self.host.module();
        let slot = self.token.slot;
        let examined = module.examine_token(slot, user, self.pin.expose(), repair, &mut told);
        let examined = examined.ok_or_else(|| Failure::failed("the module cannot do that"))?;
        let examined =
            examined.map_err(|error| self.host.login_failure(&self.token, self.role, error))?;
        Ok(Found { examined, findings })
    }
}

impl Found {
    fn report(&self, token: &Token) -> Report {
        let Examined { objects, unverified, removed, .. } = self.examined;
        let uri = token.uri().to_string();
        let mut text = lines(&self.findings);
        text += &match (self.findings.len(), removed) {
            (0, _) => format!("{}: {objects} objects, nothing is wrong\n", token.name()),
            (_, 0) => format!("{}: {objects} objects\n", token.name()),
            (_, removed) => {
                format!("{}: {removed} of {objects} objects taken out\n", token.name())
            }
        };
        if unverified > 0 {
            text += &format!("{unverified} of them made without a login: they can be anybody's\n");
        }
        let finding =
            |(object, what): &(Option<u64>, String)| json!({"object": object, "problem": what});
        Report {
            text,
            json: json!({
                "token": uri,
                "objects": objects,
                "unverified": unverified,
                "sound": self.findings.is_empty(),
                "findings": self.findings.iter().map(finding).collect::<Vec<Value>>(),
                "removed": removed,
            }),
            uris: vec![uri],
        }
    }
}
